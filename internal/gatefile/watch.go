package gatefile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tomlfile"
)

// watchConfig is the [watch] table of a tracediff.toml, for "tracediff watch".
type watchConfig struct {
	Paths   []string `toml:"paths"`
	Ignore  []string `toml:"ignore"`
	Command string   `toml:"command"`
	Prompt  string   `toml:"prompt"`
}

// Watched is what a watch repeats, of a tracediff.toml.
type Watched struct {
	Named               // the prompt: the one that [watch] names, else the first
	Limits *gate.Limits // of the file
	Paths  []string     // that are watched; at least the folder of the file
	Ignore []string     // that are not
	Build  string       // a line for the shell that is run before each comparison; empty: none
	Folder string       // where it runs
}

// OpenWatch reads the watch settings of a tracediff.toml. It returns nil if path is the default name and the file
// does not exist.
func OpenWatch(path string) (*Watched, error) {
	text, folder, err := readConfigText(path)
	if errors.Is(err, os.ErrNotExist) && path == ConfigName {
		return nil, nil
	}
	var w *Watched
	if err == nil {
		w, err = parseWatch(text, folder)
	}
	if err != nil {
		return nil, hint.Add(advice.OnPath(path, err), configHint(err))
	}
	return w, nil
}

func parseWatch(text []byte, folder string) (*Watched, error) {
	c := config{folder: folder}
	if err := tomlfile.Decode(text, &c); err != nil {
		return nil, err
	}
	all, limits, err := c.read()
	if err != nil {
		return nil, err
	}
	w := &Watched{Named: all[0], Limits: limits, Build: c.Watch.Command, Folder: folder}
	if c.Watch.Command != "" && strings.TrimSpace(c.Watch.Command) == "" {
		return nil, errors.New("watch: the command is empty")
	}
	if name := c.Watch.Prompt; name != "" {
		found := false
		for _, n := range all {
			if n.Name == name {
				w.Named, found = n, true
			}
		}
		if !found {
			return nil, fmt.Errorf("watch: there is no prompt %q", name)
		}
	}
	for _, p := range c.Watch.Paths {
		if p == "" {
			return nil, errors.New("watch: a path is empty")
		}
		w.Paths = append(w.Paths, c.path(p))
	}
	if w.Paths == nil {
		w.Paths = []string{folder}
	}
	for _, p := range c.Watch.Ignore {
		w.Ignore = append(w.Ignore, c.path(p))
	}
	return w, nil
}
