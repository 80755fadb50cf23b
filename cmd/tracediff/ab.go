package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/order"
)

// abFlags ask about two runs of one model of which neither is the reference.
func abFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "ab", Category: catCompare, Usage: "the two traces are of one model, A and B, and neither is the reference: the port at two commits, with a feature on or off, in two dtypes, on two devices"},
		&cli.StringSliceFlag{Name: "expect-different", Category: catCompare, Usage: "entries whose names match `PATTERN` have to differ between A and B, all others to match (repeatable; implies --ab)"},
	}
}

// asksAB reports whether a command line asks about A and B.
func asksAB(c *cli.Context) bool { return c.Bool("ab") || c.IsSet("expect-different") }

// checkAB reports what has no meaning in an A/B comparison. A certificate is of one side, whether it is right by itself; A and
// B agree also where both have the same bug.
func checkAB(c *cli.Context) error {
	if c.NArg() != 2 {
		return hinted(errors.New("--ab and --expect-different compare two traces"), "tracediff compare --ab A B")
	}
	for _, name := range []string{"isolate", "no-isolate", "arithmetic", "bound"} {
		if c.IsSet(name) {
			return hinted(fmt.Errorf("--%s has no meaning in an A/B comparison, which certifies neither side", name), "tracediff compare --isolate FILE certifies one trace by itself")
		}
	}
	return nil
}

// abOptions are those of an A/B comparison of two open traces.
func abOptions(c *cli.Context, a, b *capture.Trace) compare.Options {
	return compare.Options{
		AB: true, Different: c.StringSlice("expect-different"), LocalLabel: runOf(a), ReferenceLabel: runOf(b),
		NotIsolated: "an A/B comparison says whether the sides agree, not which of them is right",
	}
}

// sameModel reports whether two traces are of one configuration.
func sameModel(a, b *capture.Trace) bool {
	l, r := a.Manifest().Config, b.Manifest().Config
	return l != nil && r != nil && order.SameConfig(l, r)
}

// runOf tells a trace from another of the same program: by its file, and by its device where it says.
func runOf(t *capture.Trace) string {
	if device := t.Manifest().Device; device != "" {
		return t.Path() + ", on " + device
	}
	return t.Path()
}
