package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// elsewhere has hints for words that people may type as a command, although tracediff has no such command.
var elsewhere = map[string]string{
	"debug":    "tracediff capture --debug prints a line as each hook fires; in your own engine TRACEDIFF_DEBUG=1 does",
	"trace":    "tracediff capture writes the traces of both sides",
	"dump":     "tracediff capture writes the traces of both sides; tracediff inspect FILE shows what a dump has",
	"run":      "tracediff capture runs both sides, tracediff compare runs your port again and compares",
	"diff":     "tracediff compare LOCAL REFERENCE compares two traces, tracediff diff-program A B two recorded programs",
	"report":   "tracediff compare --report html=report.html writes a report; other formats are json, jsonl, junit, text and github",
	"html":     "tracediff compare --report html=report.html writes the page",
	"isolate":  "tracediff compare --isolate FILE checks one trace",
	"ab":       "tracediff compare --ab A B compares two runs of one model",
	"baseline": "tracediff accept REPORT.json writes a baseline, tracediff compare --baseline FILE uses it",
	"record":   "tracediff order --record stores the program of a model without an order",
	"list":     "tracediff order lists the names of all tensors, tracediff inspect FILE the names in a file",
	"show":     "tracediff inspect FILE NAME shows a tensor",
}

// commandHint is the hint for an unknown command: the hint of elsewhere, or else the command with the nearest name.
func commandHint(app *cli.App, name string) string {
	const all = "tracediff --help lists commands"
	if text := elsewhere[strings.ToLower(name)]; text != "" {
		return text
	}
	names := []string{}
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean tracediff %s? %s", near, all)
	}
	return all
}

// flagsElsewhere maps names that people know from other programs to the flags of tracediff.
var flagsElsewhere = map[string]string{
	"out": "dir", "output": "dir", "o": "dir", "output-dir": "dir", "input": "prompt", "text": "prompt", "ids": "tokens", "checkpoint": "model", "ref": "reference",
	"port": "local", "cmd": "local", "command": "local", "json": "report", "html": "report", "junit": "report", "sarif": "report", "max-tokens": "max-new-tokens", "n": "max-new-tokens",
	"tolerance": "tolerances", "tol": "rtol", "interpreter": "python", "v": "verbose", "device": "local", "layer": "layers",
}

// flagHint is the hint for a command line that the flag parser refuses: the flag near to an unknown flag, and where the flags are listed.
func flagHint(c *cli.Context, err error) string {
	if c.Command == nil || c.App.Command(c.Command.Name) == nil {
		return "tracediff --help lists commands, tracediff COMMAND --help the flags of one"
	}
	all := "tracediff " + c.Command.Name + " --help lists the flags"
	_, wrong, ok := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !ok {
		if parts := unreadable.FindStringSubmatch(err.Error()); parts != nil {
			return wanted(c.Command.Flags, parts[2]) + all
		}
		return all
	}
	near := nearestFlag(c.Command.Flags, strings.TrimLeft(wrong, "-"))
	if near == nil {
		return all
	}
	doc, _ := near.(cli.DocGenerationFlag)
	usage, _, _ := strings.Cut(strings.ReplaceAll(doc.GetUsage(), "`", ""), " (default")
	return fmt.Sprintf("did you mean --%s (%s)? %s", near.Names()[0], usage, all)
}

// wanted says which kind of value a flag wants; "" for text.
func wanted(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.IntFlag:
			return "want a whole number; "
		case *cli.Float64Flag:
			return "want a number; "
		case *cli.DurationFlag:
			return "want a time such as 30s; "
		case *cli.BoolFlag:
			return "want true or false; "
		}
	}
	return ""
}

// nearestFlag returns the flag near to an unknown name: a name of flagsElsewhere first, then a common prefix, then the edit distance, of at
// most a third of the letters. It is nil if no flag is near.
func nearestFlag(flags []cli.Flag, wrong string) cli.Flag {
	wrong = strings.ToLower(wrong)
	var best cli.Flag
	least := 0
	for _, f := range flags {
		if name := f.Names()[0]; name == "help" || name == helpAll {
			continue
		}
		for _, name := range f.Names() {
			d := 2 * distance(wrong, name)
			near := d <= 2*((max(len(wrong), len(name))+1)/3)
			switch {
			case flagsElsewhere[wrong] == name:
				d, near = -1, true
			case len(wrong) > 2 && strings.HasPrefix(name, wrong), len(name) > 2 && strings.HasPrefix(wrong, name):
				d, near = 1, true
			}
			if near && (best == nil || d < least) {
				best, least = f, d
			}
		}
	}
	return best
}

// nearest is the name that differs from a misspelt name in at most a third of the letters; empty if every name
// differs in more.
func nearest(wrong string, names []string) string {
	best, least := "", (len(wrong)+1)/3+1
	for _, name := range names {
		if d := distance(strings.ToLower(wrong), name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of letters to insert, remove or change to turn a into b (Levenshtein).
func distance(a, b string) int { return smetrics.WagnerFischer(a, b, 1, 1, 1) }
