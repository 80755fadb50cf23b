package gate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/tomlfile"
)

// MaxLimits bounds a file of tolerances. A line for every entry of the largest model is a hundredth of it.
const MaxLimits = 16 << 20

// maxRules bounds the lines of each kind: every entry of every pass is held against them one by one, and more than there
// are entries in a model say nothing.
const maxRules = 1 << 12

// LimitSections are the sections for limits in a TOML file with other sections, see [ParseLimits]. A nil pointer is a missing key.
type LimitSections struct {
	Tolerance []struct {
		Tensors string   `toml:"tensors"`
		Passes  string   `toml:"passes"`
		RTol    *float64 `toml:"rtol"`
		ATol    *float64 `toml:"atol"`
		Token   *float64 `toml:"token"`
		Channel *float64 `toml:"channel"`
	} `toml:"tolerance"`
	Allow []struct {
		Tensors string   `toml:"tensors"`
		Passes  string   `toml:"passes"`
		Classes []string `toml:"classes"`
		Reason  string   `toml:"reason"`
	} `toml:"allow"`
}

// ParseLimits reads a file of tolerances and of mismatches that are allowed:
//
//	[[tolerance]]              # the first that matches an entry decides
//	tensors = "*.altup.*"      # required: a pattern as in --tensors
//	passes  = "1-"             # all passes if it is left out
//	rtol    = 2e-2             # relative L2 of the tensor; rtol or atol is required
//	atol    = 1e-6             # root mean square, in the tensor's units
//	token   = 5e-2             # of the worst token, in place of a multiple of rtol
//	channel = 5e-2             # of the worst channel
//
//	[[allow]]                  # a known mismatch
//	tensors = "layers.3.mlp.*" # required
//	passes  = "0"
//	classes = ["VALUE"]        # VALUE if it is left out; SHAPE, NONFINITE, DTYPE and MISSING have to be said
//	reason  = "why it is no matter"  # required
//
// An unknown key is an error that quotes its line: a misspelt tolerance would limit nothing.
func ParseLimits(data []byte) (*Limits, error) {
	if len(data) > MaxLimits {
		return nil, fmt.Errorf("tolerances of %d bytes, more than %d", len(data), MaxLimits)
	}
	var f LimitSections
	if err := tomlfile.Decode(data, &f); err != nil {
		return nil, err
	}
	return f.Limits()
}

// Limits checks every line and gives it its meaning.
func (f *LimitSections) Limits() (*Limits, error) {
	if n := max(len(f.Tolerance), len(f.Allow)); n > maxRules {
		return nil, fmt.Errorf("%d lines of one kind, more than %d", n, maxRules)
	}
	l := &Limits{}
	for i, t := range f.Tolerance {
		passes, err := target(t.Tensors, t.Passes)
		switch {
		case err != nil:
		case t.RTol == nil && t.ATol == nil:
			err = errors.New("neither rtol nor atol")
		default:
			err = sizes(map[string]*float64{"rtol": t.RTol, "atol": t.ATol, "token": t.Token, "channel": t.Channel})
		}
		if err != nil {
			return nil, fmt.Errorf("[[tolerance]] %d, %.80q: %w", i+1, t.Tensors, err)
		}
		l.Rules = append(l.Rules, Rule{t.Tensors, passes, Tolerance{orZero(t.RTol), orZero(t.ATol), t.Token, t.Channel}})
	}
	for i, a := range f.Allow {
		passes, err := target(a.Tensors, a.Passes)
		var classes []Class
		if err == nil {
			classes, err = classesOf(a.Classes)
		}
		if err == nil && strings.TrimSpace(a.Reason) == "" {
			err = errors.New("no reason: say why this mismatch is acceptable")
		}
		if err != nil {
			return nil, fmt.Errorf("[[allow]] %d, %.80q: %w", i+1, a.Tensors, err)
		}
		l.Allowed = append(l.Allowed, Allow{a.Tensors, passes, classes, strings.TrimSpace(a.Reason)})
	}
	return l, nil
}

// target checks which entries a line is about.
func target(tensors, passes string) (capture.Ranges, error) {
	if tensors == "" {
		return nil, errors.New(`no tensors: want a pattern, "*" for all`)
	}
	if err := hooks.CheckPattern(tensors); err != nil {
		return nil, err
	}
	if passes == "" {
		return nil, nil
	}
	r, err := capture.ParseRanges(passes)
	if err != nil {
		return nil, fmt.Errorf("passes: %w", err)
	}
	return r, nil
}

// Check reports limits that are no sizes of an error.
func (t *Tolerance) Check() error {
	return sizes(map[string]*float64{"rtol": &t.RTol, "atol": &t.ATol, "token": t.Token, "channel": t.Channel})
}

// maxRelative bounds relative limits: a tensor of zeros has an error of 1, so a larger limit tests nothing.
const maxRelative = 1

func sizes(limits map[string]*float64) error {
	for _, name := range []string{"rtol", "atol", "token", "channel"} {
		v := limits[name]
		if v == nil {
			continue
		}
		if !(*v >= 0 && *v <= math.MaxFloat64) {
			return fmt.Errorf("%s is %g, want 0 or more", name, *v)
		}
		if name != "atol" && *v > maxRelative {
			return fmt.Errorf("%s is %g, want %d at most: a relative error of 1 is as large as the tensor itself", name, *v, maxRelative)
		}
	}
	return nil
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// classesOf reads the classes that a line accepts.
func classesOf(names []string) ([]Class, error) {
	if len(names) == 0 {
		return defaultAllowed, nil
	}
	var classes []Class
	for _, n := range names {
		c := Class(n)
		if !slices.Contains([]Class{Shape, NonFinite, Value, DType, Absent}, c) {
			return nil, fmt.Errorf("classes: %.40q is not one of VALUE, SHAPE, NONFINITE, DTYPE and MISSING", n)
		}
		classes = append(classes, c)
	}
	return classes, nil
}
