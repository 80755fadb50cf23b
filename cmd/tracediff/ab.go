package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/hint"
)

// abFlags are the flags for two runs of one model without a reference.
func abFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "ab", Category: catCompare, Usage: "compare two runs of one model, A and B; neither is the reference: the port at two commits, with a feature on or off, in two dtypes, on two devices"},
		&cli.StringSliceFlag{Name: "expect-different", Category: catCompare, Usage: "entries whose names match `PATTERN` must differ between A and B, and all others must match (repeatable; implies --ab)"},
	}
}

// asksAB reports whether a command line asks about A and B.
func asksAB(c *cli.Context) bool { return c.Bool("ab") || c.IsSet("expect-different") }

// checkAB returns an error for flags that do not apply to an A/B comparison. A certificate is about one side: it says whether
// the side is correct. A and B also agree if both have the same bug.
func checkAB(c *cli.Context) error {
	if c.NArg() != 2 {
		return hint.Add(errors.New("--ab and --expect-different compare two traces"), "tracediff compare --ab A B")
	}
	for _, name := range []string{"isolate", "no-isolate", "require-certified", "arithmetic", "bound"} {
		if c.IsSet(name) {
			return hint.Add(fmt.Errorf("--%s does not apply to an A/B comparison, which certifies neither side", name), "tracediff compare --isolate FILE certifies one trace")
		}
	}
	if c.IsSet("baseline") {
		return hint.Add(errors.New("--baseline does not apply to an A/B comparison, in which neither side is right"), "--expect-different PATTERN names what has to differ")
	}
	return nil
}
