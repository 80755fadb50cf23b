package debug

import (
	"fmt"
	"strconv"
	"strings"
)

// Wanted reports whether an environment asks for debug mode. TRACEDIFF_DEBUG decides where it is set: 1, true, yes or on, in
// any case, turn it on, all else off. Where it is not set, DEBUG does with the same four; its other values belong to other
// tools.
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

// Unknown returns what is to be said of a value of TRACEDIFF_DEBUG that is neither on nor off; "" where there is nothing to
// say.
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

// PassesWanted is TRACEDIFF_DEBUG_PASSES of an environment: how many passes are to be shown in full; 0 where it is not set
// or no number.
func PassesWanted(env func(string) string) int { return number(env("TRACEDIFF_DEBUG_PASSES")) }

// LayersWanted is TRACEDIFF_DEBUG_LAYERS of an environment: how many layers of a pass are to be shown tensor by tensor; 0
// where it is not set or no number.
func LayersWanted(env func(string) string) int { return number(env("TRACEDIFF_DEBUG_LAYERS")) }

// Wrong returns what is to be said of the numbers of an environment that are none.
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
