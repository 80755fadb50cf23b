package debug

import (
	"fmt"
	"strconv"
	"strings"
)

// Wanted reports whether an environment asks for debug mode. A value of TRACEDIFF_DEBUG decides: 1, true, yes and on, in any
// case, turn debug mode on, and every other value turns it off. Without TRACEDIFF_DEBUG, the same four values of DEBUG turn
// debug mode on; other values of DEBUG belong to other tools.
func Wanted(env func(string) string) bool {
	value := env("TRACEDIFF_DEBUG")
	if value == "" {
		value = env("DEBUG")
	}
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// Unknown returns a warning for a value of TRACEDIFF_DEBUG that is neither on nor off, or "".
func Unknown(env func(string) string) string {
	value := env("TRACEDIFF_DEBUG")
	switch strings.ToLower(value) {
	case "", "0", "false", "no", "off":
		return ""
	}
	if Wanted(env) {
		return ""
	}
	return "TRACEDIFF_DEBUG is neither on (1, true, yes, on) nor off (0, false, no, off): debug mode is off"
}

// PassesWanted is TRACEDIFF_DEBUG_PASSES of an environment: the number of passes to show in full; 0 if not set or not a
// number.
func PassesWanted(env func(string) string) int { return number(env("TRACEDIFF_DEBUG_PASSES")) }

// LayersWanted is TRACEDIFF_DEBUG_LAYERS of an environment: the number of layers of a pass to show tensor by tensor; 0 if
// not set or not a number.
func LayersWanted(env func(string) string) int { return number(env("TRACEDIFF_DEBUG_LAYERS")) }

// Wrong returns a warning for each of the two variables whose value is not a number of 1 or more.
func Wrong(env func(string) string) []string {
	var said []string
	for _, v := range []struct {
		name, what string
		shown      int
	}{{"PASSES", "passes", Passes}, {"LAYERS", "layers", Layers}} {
		if value := env("TRACEDIFF_DEBUG_" + v.name); value != "" && number(value) == 0 {
			said = append(said, fmt.Sprintf("TRACEDIFF_DEBUG_%s is not a number of %s, 1 or more: the first %d are shown in full", v.name, v.what, v.shown))
		}
	}
	return said
}

func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
