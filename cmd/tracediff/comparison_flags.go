package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
)

// isolationFlags control how entries are certified.
func isolationFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "isolate", Category: catCompare, Usage: "verify every entry of every pass from your port's own inputs, and do not stop; works on one trace without a reference, too"},
		&cli.BoolFlag{Name: "no-isolate", Category: catCompare, Usage: "verify no operation: only the accumulated errors decide"},
		&cli.BoolFlag{Name: "require-certified", Category: catCompare, Usage: "the comparison is incomplete unless every entry is verified as EXACT or ROUNDING"},
		&cli.StringFlag{Name: "arithmetic", Category: catCompare, Value: "auto", Usage: "which `ROUNDING` is correct: strict (only as transformers rounds), auto (also as an engine rounds, if all entries of one kind of operation round alike)"},
		&cli.StringFlag{Name: "bound", Category: catCompare, Value: "probabilistic", Usage: "`BOUND` on the rounding of sums: probabilistic, or rigorous for any order of summation"},
		memoryFlag(catCompare),
		&cli.StringFlag{Name: "search-work", Category: catCompare, Value: "1x", Usage: "let a search for a mistake or an arithmetic do `TIMES` its default work, which takes 13 to 20 seconds at most; 30x continues a search that stopped at its limit"},
	}
}

// memoryFlag limits the memory of a command.
func memoryFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "memory", Category: category, Value: "1GiB", Usage: "`SIZE` of memory to use, not counting files: larger work is done in pieces, with the same results"}
}

// leastMemory is enough for the tables of a model and of its tokens, and one piece of the largest entries, in
// bytes.
const leastMemory = 64 << 20

// leastGarbage is the garbage at which a collection starts, in percent of the live memory, unless --memory is smaller. The default of Go, 100
// percent, takes a twentieth more time.
const leastGarbage = 200

// keepToMemory reads the flag and limits the memory of the process from here on.
func keepToMemory(c *cli.Context) (int64, error) {
	n, err := amount.ParseBytes(c.String("memory"))
	if err != nil || n < leastMemory {
		return 0, hint.Add(fmt.Errorf("--memory is %q", c.String("memory")), "want a number and its unit, MiB, GiB or TiB, such as 512MiB or 4GiB, and at least "+amount.Bytes(leastMemory))
	}
	debug.SetMemoryLimit(n)
	return n, nil
}

// isolateOptions reads the flags, and limits the memory of the process.
func isolateOptions(c *cli.Context) (o isolate.Options, err error) {
	o.Arithmetic, o.Rigorous = isolate.Engines(c.String("arithmetic")), c.String("bound") == "rigorous"
	if o.Arithmetic == "free" || o.Arithmetic == "float16" {
		return o, hint.Add(fmt.Errorf("--arithmetic %s no longer exists", o.Arithmetic), "leave it out: auto finds how an engine rounds, float16 tables and stores too")
	}
	if err := cmp.Or(checkValue(c, "arithmetic"), checkValue(c, "bound")); err != nil {
		return o, err
	}
	if o.Room, err = keepToMemory(c); err != nil {
		return o, err
	}
	if before := debug.SetGCPercent(leastGarbage); before > leastGarbage {
		debug.SetGCPercent(before)
	}
	if o.SearchWork, err = howOften(c.String("search-work")); err != nil {
		return o, hint.Add(fmt.Errorf("--search-work is %q", c.String("search-work")), "want a whole number from 1x to 1000x")
	}
	if c.Bool("isolate") && c.Bool("no-isolate") {
		return o, hint.Add(errors.New("--isolate and --no-isolate were both given"), "leave one of them out")
	}
	for _, name := range []string{"arithmetic", "bound", "require-certified"} {
		if c.Bool("no-isolate") && c.IsSet(name) {
			return o, hint.Add(fmt.Errorf("--%s does not apply with --no-isolate, which certifies nothing", name), "leave one of them out")
		}
	}
	return o, nil
}

// howOften reads a factor such as "30x".
func howOften(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "x"))
	if err != nil || n < 1 || n > 1000 {
		return 0, errors.New("not a number of times")
	}
	return n, nil
}

// limitFlags set the limits of accumulated errors.
func limitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "rtol", Category: catCompare, Usage: "relative `L2` error that every tensor may have, in place of a multiple of the noise floor"},
		&cli.Float64Flag{Name: "atol", Category: catCompare, Usage: "RMS error that every tensor may have in addition to --rtol, in its own `UNITS`"},
		&cli.StringFlag{Name: "tolerances", Category: catCompare, Usage: "TOML `FILE` with [[tolerance]] by pattern (the first match decides) and [[allow]] with reasons"},
	}
}

// baselineFlag names the known divergences.
func baselineFlag() cli.Flag {
	return &cli.StringFlag{Name: "baseline", Category: catCompare, Usage: "TOML `FILE` of known divergences, which tracediff accept writes: they do not fail the comparison"}
}

// readBaseline reads the file of --baseline, before any run; nil without the flag.
func readBaseline(c *cli.Context) (*gatefile.Baseline, error) {
	path := c.String("baseline")
	if path == "" {
		if c.IsSet("baseline") {
			return nil, hint.Add(errors.New("--baseline is empty"), "leave the flag out if nothing is known to differ")
		}
		return nil, nil
	}
	b, err := gatefile.OpenBaseline(path, path)
	if err != nil {
		return nil, fmt.Errorf("--baseline %w", err)
	}
	return b, nil
}

// readLimits reads the flags and the file of tolerances: once, since the file may be a stream, and before any run.
func readLimits(c *cli.Context) (*gate.Limits, error) {
	l := &gate.Limits{}
	if path := c.String("tolerances"); path != "" {
		var err error
		if l, err = openLimits(path); err != nil {
			return nil, hint.Add(fmt.Errorf("--tolerances %w", advice.OnPath(path, err)), "tracediff compare --help and docs/verdict.md say what the file may hold")
		}
	} else if c.IsSet("tolerances") {
		return nil, hint.Add(errors.New("--tolerances is empty"), "leave the flag out for limits by the noise floor")
	}
	if c.IsSet("rtol") || c.IsSet("atol") {
		l.Default = &gate.Tolerance{RTol: c.Float64("rtol"), ATol: c.Float64("atol")}
		if err := l.Default.Check(); err != nil {
			return nil, hint.Add(fmt.Errorf("--%w", err), "--rtol 1e-3 is a limit for float32, --rtol 2e-2 for bfloat16; without --rtol the noise floor of the prompt decides")
		}
	}
	return l, nil
}

func openLimits(path string) (*gate.Limits, error) {
	text, _, err := files.ReadStream(path, gate.MaxLimits)
	if err != nil {
		return nil, err
	}
	return gate.ParseLimits(text)
}

// readAsked reads the flags of a comparison, and the file of tolerances, which may be a stream: before any run.
func readAsked(c *cli.Context) (*session.Asked, error) {
	limits, err := readLimits(c)
	if err != nil {
		return nil, err
	}
	isolation, err := isolateOptions(c)
	if err != nil {
		return nil, err
	}
	known, err := readBaseline(c)
	if err != nil {
		return nil, err
	}
	var fused []string
	if c.Bool("fused-attention") {
		fused = []string{"*"}
	}
	var ab *session.AB
	if asksAB(c) {
		ab = &session.AB{Different: c.StringSlice("expect-different")}
	}
	return &session.Asked{
		Limits:        limits,
		Certification: session.Certification{Isolate: isolation, Demanded: c.Bool("isolate"), Required: c.Bool("require-certified"), Declined: c.Bool("no-isolate")},
		Known:         session.Known{Baseline: known},
		AB:            ab, Fused: fused,
		All: c.Bool("all"), StrictDType: c.Bool("strict-dtype"), LevelTyped: c.IsSet("level"),
	}, nil
}

// env describes this process to a session. out has the reports that the session must not overwrite; nil without
// reports.
func env(c *cli.Context, out *outputs) *settings.Env {
	e := &settings.Env{
		Process: thisProcess,
		Dir:     c.String("dir"), Version: version(), Gate: gated(c), Partial: c.Bool("partial"),
		Notes: notes(c), Errors: c.App.ErrWriter, Volume: settings.Volume{Quiet: c.Bool("quiet"), Verbose: c.Bool("verbose"), Debug: debugs(c)},
		Progress: drawn(c),
	}
	if out != nil {
		e.Spare, e.Sight = out.spare, out.shows() && c.Context.Value(verdictAlone{}) == nil
	}
	return e
}
