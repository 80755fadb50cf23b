// Package seeds has no functions. Tests that import it draw their cases by pgregory.net/rapid from one fixed seed, so that every run draws the
// same ones and a failure is there again in the next:
//
//	import _ "github.com/tracediff/tracediff/internal/seeds"
//
// RAPID_SEED or the flag -rapid.seed name another seed; 0 is a new one in each run. The gate, .ci/run, draws from a new seed besides, and prints it.
package seeds

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // it has the flag, which is there before this package begins
)

// variable is what rapid takes its seed from where no flag names one.
const variable = "RAPID_SEED"

func init() {
	if os.Getenv(variable) != "" {
		return
	}
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err) // rapid has renamed its flag: draws would be new ones
	}
}
