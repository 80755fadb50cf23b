package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// Source is where the trace of a side comes from. The zero source is the default: the Go model for the local side, what
// fits best for the reference.
type Source struct {
	Kind   string `json:"kind"`             // one of the constants below
	Text   string `json:"text,omitempty"`   // the path of a file; a command
	Folder string `json:"folder,omitempty"` // where the command runs: that in which it was typed
}

// The kinds of sources.
const (
	KindGo   = "go"   // the Go model; for the reference, the float64 walk
	KindHF   = "hf"   // transformers
	KindFile = "file" // a trace, as it is
	KindExec = "exec" // a command that writes a trace
)

// SideKinds are the kinds that each side takes.
var SideKinds = map[string][]string{
	"local":     {KindGo, KindFile, KindExec},
	"reference": {KindGo, KindHF, KindFile, KindExec},
}

// Keywords are the words that --local or --reference takes in place of a file; exec: begins one.
func Keywords(flag string) []string {
	kinds := SideKinds[flag]
	return slices.Concat([]string{"auto"}, kinds[:len(kinds)-2], []string{ExecPrefix})
}

// ExecPrefix begins a source that is a command.
const ExecPrefix = "exec:"

// ParseSource reads the value of --local or --reference. auto is the default. What is no keyword and no command is the name of a
// file, which has to be there.
func ParseSource(flag, value string) (Source, error) {
	kinds := SideKinds[flag]
	if value == "auto" {
		return Source{}, nil
	}
	if value != KindFile && value != KindExec && slices.Contains(kinds, value) {
		return Source{Kind: value}, nil
	}
	if command, ok := strings.CutPrefix(value, ExecPrefix); ok {
		if strings.TrimSpace(command) == "" {
			return Source{}, hint.Add(fmt.Errorf("--%s has an empty command", flag), "for example: --"+flag+" 'exec:./port --tokens {tokens} --out {out}'")
		}
		folder, err := os.Getwd()
		return Source{Kind: KindExec, Text: command, Folder: folder}, err
	}
	info, err := os.Stat(value)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return Source{}, hint.Add(fmt.Errorf("--%s: %w", flag, files.Irregular(value, info.Mode())), "--"+flag+" wants a trace file")
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return Source{}, fmt.Errorf("--%s: %w", flag, err)
		}
		words := kinds[:len(kinds)-2] // without file and exec
		return Source{}, hint.Add(fmt.Errorf("--%s is %q, and there is no file with this name", flag, value),
			fmt.Sprintf("--%s wants a trace file, as tracediff capture and python -m tracediff.hf write them, or %s, or exec:COMMAND", flag, strings.Join(words, " or ")))
	}
	return Source{Kind: KindFile, Text: value}, nil
}

// check reports a source that a settings file cannot have got from a command line.
func (s Source) check(flag string) error {
	needsText := s.Kind == KindFile || s.Kind == KindExec
	switch {
	case s == Source{}:
		return nil
	case !slices.Contains(SideKinds[flag], s.Kind):
		return fmt.Errorf("--%s: unknown kind %q", flag, s.Kind)
	case needsText != (s.Text != ""), (s.Kind == KindExec) != (s.Folder != ""):
		return fmt.Errorf("--%s: a %s without what belongs to it", flag, s.Kind)
	}
	return nil
}
