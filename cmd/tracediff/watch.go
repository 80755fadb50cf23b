package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/watch"
)

// watchName is the command whose arguments are a command line.
const watchName = "watch"

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      watchName,
		Usage:     "build, run and compare again whenever a source changes",
		ArgsUsage: "[-- COMMAND]",
		Description: `Compares as "tracediff compare" does, then waits until a source changes, runs COMMAND, which builds the port, and
compares again. One screen shows the verdict, where the first divergence was and is now, and how long it took; if standard
output is not a terminal, it prints lines. A change stops a run in progress. Ctrl-C ends the watch with exit status 130.

If there is a tracediff.toml, its first prompt is compared, or the prompt that [watch] names, and that section has the paths
and the command; flags take precedence over it. Without a tracediff.toml, the settings of the last capture apply as for compare.

It watches --watch PATH, else the paths of [watch], else the folder of tracediff.toml, else this folder. It ignores hidden folders,
files that builds, editors and tracediff write, and files that are not text, except a file that is named itself.

Examples:
  tracediff watch -- make port
  tracediff watch --watch src --local 'exec:./port --tokens {tokens} --out {out}' --prompt "Hello world" -- make
  tracediff watch --local out.safetensors --reference hf.safetensors`,
		Flags: append(slices.Concat(jobFlags(), isolationFlags(), limitFlags(), reportFlags()),
			baselineFlag(),
			&cli.StringSliceFlag{Name: "watch", Category: catFiles, Usage: "a `PATH` to watch: a file, or a folder with everything in it (repeatable)"},
			&cli.StringFlag{Name: "config", Category: catFiles, Value: gatefile.ConfigName, Usage: "the `FILE` that says what is compared, if it exists"},
			&cli.BoolFlag{Name: "all", Category: catCompare, Usage: "go on after the first divergence"},
			fusedFlag(),
			&cli.BoolFlag{Name: "strict-dtype", Category: catCompare, Usage: "treat every difference in dtype as a mismatch"}),
		Action: func(c *cli.Context) error {
			for _, name := range notOfWatch {
				if c.IsSet(name) {
					return hint.Add(fmt.Errorf("--%s does not apply to watch, which shows one screen", name), "--report FORMAT=FILE writes a whole report of each comparison")
				}
			}
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			defer out.close()
			w, err := newWatching(c, out)
			if err != nil {
				return err
			}
			return w.loop(c.Context)
		},
	}
}

// notOfWatch are flags of other comparisons: watch shows one screen.
var notOfWatch = []string{"format", "table", "verbose", "debug"}

// watching is the state of a watch.
type watching struct {
	c       *cli.Context
	out     *outputs
	watcher *watch.Watcher
	shown   string   // the watched paths, in words
	words   []string // the build command from the command line
	show    display
	before  *compare.Result // the last result
}

// newWatching reads the command line once, so that a mistake in it is an error before any run, and begins to watch.
func newWatching(c *cli.Context, out *outputs) (*watching, error) {
	w := &watching{c: c, out: out, words: c.Args().Slice()}
	if len(w.words) > 0 && w.words[0] == "" {
		return nil, hint.Add(errors.New("the command is empty"), "tracediff watch -- COMMAND, such as make port")
	}
	file, err := gatefile.OpenWatch(c.String("config"))
	if err != nil {
		return nil, err
	}
	s, _, err := w.asked(file)
	if err != nil && !w.made(c.String("local")) {
		return nil, err
	}
	paths, ignored := c.StringSlice("watch"), []string{c.String("dir")}
	for _, f := range out.files {
		ignored = append(ignored, f.path)
	}
	named := len(paths) > 0
	if file != nil {
		ignored = append(ignored, file.Ignore...)
		if !named {
			paths = append(slices.Clone(file.Paths), c.String("config"))
		}
	} else if !named {
		paths = []string{"."}
	}
	switch kind := s.Local.Kind; {
	case err != nil || named: // err: COMMAND makes the missing trace; named: a person chose the paths
	case kind == "" || kind == settings.KindGo:
		return nil, hint.Add(errors.New("the built-in model is compared, and your sources do not change it"), "--local 'exec:COMMAND' runs your port; --watch PATH watches anyway")
	case kind == settings.KindFile && len(w.words) == 0 && (file == nil || file.Build == ""):
		paths = append(paths, s.Local.Text)
	}
	w.shown = strings.Join(relative(paths), ", ")
	w.watcher, err = watch.New(paths, ignored, ownFiles(c)...)
	if many := (*watch.TooManyError)(nil); errors.As(err, &many) {
		return nil, hint.Add(err, "--watch PATH names only the folder of the sources; or [watch] in "+gatefile.ConfigName+" has paths and ignore")
	}
	if err != nil {
		return nil, hint.Add(err, "--watch PATH names an existing file or folder; the system limits how many are watched (fs.inotify.max_user_watches on Linux)")
	}
	return w, nil
}

// ownFiles are the files that receive standard output and standard error.
func ownFiles(c *cli.Context) []fs.FileInfo {
	var own []fs.FileInfo
	for _, to := range []io.Writer{c.App.Writer, c.App.ErrWriter} {
		if out, ok := to.(*output); ok {
			to = out.Writer
		}
		if f, ok := to.(*os.File); ok {
			if info, err := f.Stat(); err == nil {
				own = append(own, info)
			}
		}
	}
	return own
}

// made reports whether the local trace is a file that does not exist before the first run of the command.
func (w *watching) made(local string) bool {
	if local == "" || len(w.words) == 0 {
		return false
	}
	_, err := os.Stat(local)
	return errors.Is(err, os.ErrNotExist)
}

// asked returns the settings of a comparison: from the file, or else from the last capture, overridden by the
// typed flags.
func (w *watching) asked(file *gatefile.Watched) (s settings.Settings, a *session.Asked, err error) {
	if file != nil {
		s = file.Settings
		if namesInput(w.c) { // replaces the input of the file
			s.Prompt, s.Tokens, s.Chat, s.NewTokens = nil, "", false, 0
		}
		if s, err = readFlags(w.c, s); err == nil {
			a, err = readAsked(w.c)
		}
	} else {
		s, a, err = readComparison(w.c)
	}
	if err != nil {
		return s, nil, err
	}
	a.Keep = file == nil
	if file == nil {
		return s, a, nil
	}
	a.LevelTyped = true
	a.Certification.Required = a.Certification.Required || file.RequireCertified && !a.Certification.Declined
	if !w.c.IsSet("tolerances") {
		own := a.Limits.Default
		a.Limits = file.Limits
		a.Limits.Default = cmp.Or(own, a.Limits.Default)
	}
	if a.Known.Baseline == nil && file.Baseline != "" {
		a.Known.Baseline, err = gatefile.OpenBaseline(file.Baseline, file.BaselineName)
	}
	a.Known.Run = file.Name
	return s, a, err
}

// relative are paths for display: a path below the current folder is relative.
func relative(paths []string) []string {
	here, err := os.Getwd()
	if err != nil {
		return paths
	}
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = p
		if rel, ok := strings.CutPrefix(p, here+string(os.PathSeparator)); ok {
			list[i] = rel
		} else if p == here {
			list[i] = "."
		}
	}
	return list
}
