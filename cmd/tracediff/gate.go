package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
	compared "github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/ci"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// gateName is the command that accepts only transformers as the reference.
const gateName = "gate"

func gateCommand() *cli.Command {
	return &cli.Command{
		Name:      gateName,
		Usage:     "compare every prompt of tracediff.toml with transformers, for CI",
		ArgsUsage: "[PROMPT]...",
		Description: `Reads tracediff.toml, which "tracediff init" writes, and compares each of its prompts, or the named ones, as
"tracediff compare" would. Everything that decides is in the file. The settings of the last capture are neither used nor
changed. Parity means parity with transformers: a prompt without a trace of transformers is refused, unless the file says reference = "go".

Exit status: 0 every prompt matches, 1 one does not or is incomplete, 2 one cannot be compared.

Examples:
  tracediff gate
  tracediff gate hello long --verbose
  tracediff gate --require-certified
  tracediff gate --baseline baseline.toml
  tracediff gate --config ci/tracediff.toml --report junit=tracediff.xml --report json=tracediff.json
  tracediff gate --shard 0/4 --report json=shard-0.json
  tracediff gate --report github`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "config", Category: catFiles, Value: gatefile.ConfigName, Usage: "the `FILE` that says what is compared"},
			&cli.StringFlag{Name: "dir", Category: catFiles, Value: settings.DefaultDir, Usage: "`DIR` where traces are kept"},
			&cli.StringFlag{Name: "shard", Category: catCompare, Usage: "run the prompts of shard `I/N`: shard I of N, counted from 0; tracediff merge makes one report of all"},
			&cli.StringFlag{Name: "python", Category: catSides, Usage: "Python `INTERPRETER` in place of the file's"},
			&cli.BoolFlag{Name: "all", Category: catCompare, Usage: "go on after the first divergence"},
			baselineFlag(),
			&cli.BoolFlag{Name: "strict-dtype", Category: catCompare, Usage: "treat every difference in dtype as a mismatch"},
		}, isolationFlags(), reportFlags(), talkFlags()),
		Action: func(c *cli.Context) error {
			if err := cmp.Or(checkTalk(c), checkDebug(c)); err != nil {
				return err
			}
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			if err := tracefolder.CheckDir(c.String("dir")); err != nil { // once, not for every prompt
				return err
			}
			all, limits, err := gatefile.OpenConfig(c.String("config"))
			if err != nil {
				return err
			}
			for _, n := range all { // before the first run
				if err := out.spare(tracefolder.FilesOf(&n.Settings, c.String("dir"))...); err != nil {
					return err
				}
			}
			known, err := gateBaseline(c, out, all)
			if err != nil {
				return err
			}
			if all, err = chosen(all, c.Args().Slice()); err != nil {
				return err
			}
			defer out.close()
			shard, all, err := divided(c, all, limits, known)
			if err != nil {
				return err
			}
			return runGate(c, out, all, limits, known, shard)
		},
	}
}

// gateBaseline reads the known divergences of a gate: from the file of --baseline, else from the file that tracediff.toml
// names; nil without a file.
func gateBaseline(c *cli.Context, out *outputs, all []gatefile.Named) (*gatefile.Baseline, error) {
	known, err := readBaseline(c)
	if err != nil {
		return nil, err
	}
	if path := all[0].Baseline; known == nil && path != "" {
		if err := out.spare(path); err != nil {
			return nil, err
		}
		if known, err = gatefile.OpenBaseline(path, all[0].BaselineName); err != nil {
			return nil, fmt.Errorf("baseline: %w", err)
		}
	}
	if known == nil {
		return nil, nil
	}
	var prompts []string
	for _, n := range all {
		prompts = append(prompts, n.Name)
	}
	return known, known.Of(prompts)
}

// chosen are the named prompts, in the order of the file; without names, all prompts.
func chosen(all []gatefile.Named, names []string) ([]gatefile.Named, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, n := range all {
		known = append(known, n.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, hint.Add(fmt.Errorf("there is no prompt %q", name), "the file has "+strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n gatefile.Named) bool { return !slices.Contains(names, n.Name) }), nil
}

// divided returns the prompts of the shard of --shard, and the shard; without the flag, all prompts and nil.
func divided(c *cli.Context, all []gatefile.Named, limits *gate.Limits, known *gatefile.Baseline) (*report.Shard, []gatefile.Named, error) {
	if !c.IsSet("shard") {
		return nil, all, nil
	}
	s, err := ci.ParseShard(c.String("shard"))
	if err != nil {
		return nil, nil, err
	}
	flags := map[string]string{}
	for _, name := range []string{"all", "strict-dtype", "isolate", "no-isolate", "require-certified", "arithmetic", "bound"} {
		flags[name] = fmt.Sprint(c.Value(name))
	}
	if known != nil {
		text, err := json.Marshal(known)
		if err != nil {
			return nil, nil, err
		}
		flags["baseline"] = string(text)
	}
	own, err := ci.Divide(s, c.String("config"), all, limits, flags)
	return s, own, err
}

// runGate compares the prompts one after the other. A prompt that cannot be compared does not stop the gate; an interrupt
// does.
func runGate(c *cli.Context, out *outputs, all []gatefile.Named, limits *gate.Limits, known *gatefile.Baseline, shard *report.Shard) error {
	isolation, err := isolateOptions(c)
	if err != nil {
		return err
	}
	common := session.Asked{
		Limits: limits, Known: session.Known{Baseline: known},
		Certification: session.Certification{Isolate: isolation, Demanded: c.Bool("isolate"), Declined: c.Bool("no-isolate")},
		All:           c.Bool("all"), StrictDType: c.Bool("strict-dtype"), LevelTyped: true,
	}
	if common.Certification.Declined && slices.ContainsFunc(all, func(n gatefile.Named) bool { return n.RequireCertified }) {
		return hint.Add(fmt.Errorf("--no-isolate certifies nothing, and %s has require_certified = true", c.String("config")), "leave one of them out")
	}
	e := env(c, out)
	checked, err := gateWeights(c, all[0])
	if err != nil {
		return err
	}
	var runs []report.Run
	var failed error
	for _, n := range all {
		s := n.Settings
		if checked != nil && !checked.Right() { // wrong weights fail the gate; further mistakes show with the original weights
			s.Weights = ""
		}
		if c.IsSet("python") {
			s.Python = c.String("python")
		}
		a := common
		a.Certification.Required, a.Known.Run = n.RequireCertified, n.Name
		if c.IsSet("require-certified") {
			a.Certification.Required = c.Bool("require-certified")
		}
		detail(c, "prompt %s", n.Name)
		pictures := out.pictures()
		a.Observe = pictures.Observer()
		result, err := session.Compare(c.Context, e, s, a)
		if c.Context.Err() != nil {
			return cmp.Or(err, c.Context.Err())
		}
		err = gatefile.InKeys(err)
		one := ci.Portable(newRun(n.Name, result, err), c.String("dir"))
		one.Pictures = pictures
		runs = append(runs, one)
		if err != nil {
			printError(c.App.ErrWriter, fmt.Errorf("prompt %q: %w", n.Name, err))
			failed = unusable{}
		}
	}
	if failed == nil {
		tracefolder.RemoveLeftovers(e, all[0].Settings)
	}
	d := report.NewDocument(version(), runs...).WithWeights(checked)
	d.Shard = shard
	return out.publish(c, d, failed)
}

// gateWeights compares the weights that tracediff.toml names, before any run; nil if the file names no weights.
func gateWeights(c *cli.Context, n gatefile.Named) (*compared.Result, error) {
	if n.Weights == nil {
		return nil, nil
	}
	r, err := weightsOf(c, *n.Weights)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", gatefile.InKeys(err))
	}
	return r, nil
}

// weightsAre says how many tensors of your port are wrong or UNIDENTIFIED.
func weightsAre(c compared.Counts) string {
	switch {
	case c.Unidentified == 0:
		return tensorsAre(c.Wrong) + " wrong"
	case c.Wrong == 0:
		return tensorsAre(c.Unidentified) + " UNIDENTIFIED"
	}
	return fmt.Sprintf("%s wrong and %d UNIDENTIFIED", tensorsAre(c.Wrong), c.Unidentified)
}

func tensorsAre(n int) string {
	if n == 1 {
		return "1 tensor is"
	}
	return fmt.Sprintf("%d tensors are", n)
}

// summary is the last line of a gate: the number of prompts that match, and the failed prompts.
func summary(d *report.Document) string {
	matching := 0
	var others []string
	for _, r := range d.Runs {
		if r.Exit == exitMatch {
			matching++
			continue
		}
		others = append(others, fmt.Sprintf("%s (exit status %d)", r.Name, r.Exit))
	}
	line := fmt.Sprintf("gate: %d of %d prompts match", matching, len(d.Runs))
	if d.Shard != nil {
		line = fmt.Sprintf("shard %s: %d of %d prompts match, of %d in the gate", d.Shard, matching, len(d.Runs), len(d.Shard.Prompts))
	}
	if others != nil {
		line += "; failed: " + strings.Join(others, ", ")
	}
	if w := d.Weights; w != nil && !w.Right() {
		line += "; of the port's weights " + weightsAre(w.Counts)
	}
	return line + words.Besides(d)
}
