// Package settings has the inputs of a session: what to run and capture ([Settings]), the origin of each side
// ([Source]), and the session's environment and output ([Env]). It reads and stores settings, and runs nothing.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// Settings say what to run and what to capture. The settings of the last capture are stored in a separate file next
// to the traces, because a trace made by a user or another engine does not contain them. The JSON keys are part of
// the file format.
type Settings struct {
	Model     string        `json:"model,omitempty"` // empty: the embedded checkpoint
	Prompt    *string       `json:"prompt,omitempty"`
	Tokens    string        `json:"tokens,omitempty"`
	Chat      bool          `json:"chat,omitempty"`
	DType     string        `json:"dtype"`
	NewTokens int           `json:"max_new_tokens,omitempty"`
	Order     string        `json:"order,omitempty"`
	Program   string        `json:"program,omitempty"` // a recorded program, in the place of the order
	Map       string        `json:"map,omitempty"`     // a file, of the local side's names and layouts
	Weights   string        `json:"weights,omitempty"` // the port's own, a file or a folder; empty: it has the model's
	Scope     capture.Scope `json:"scope"`
	Local     Source        `json:"local,omitzero"`
	Reference Source        `json:"reference,omitzero"`
	Python    string        `json:"python,omitempty"` // empty: python3

	Table *mapping.Map `json:"-"` // that of tracediff.toml
}

// SettingsFile is the name of the settings in a folder of traces.
const SettingsFile = "settings.json"

// maxSettings bounds the file: a shell passes a prompt of at most 2 MB, and JSON may be six times as long.
const maxSettings = 16 << 20

// Defaults are the settings where nothing is asked for.
func Defaults() Settings { return Settings{DType: "auto", Scope: capture.Scope{Level: 2}} }

// maxNewTokens bounds --max-new-tokens: every pass is written to the trace.
const maxNewTokens = 4096

// Check returns an error for contradictory or unusable settings.
func (s *Settings) Check() error {
	switch {
	case s.Prompt != nil && s.Tokens != "":
		return hint.Add(fmt.Errorf("--prompt and --tokens were both given"), "give the text or the ids")
	case s.Prompt != nil && *s.Prompt == "":
		return hint.Add(fmt.Errorf("the prompt is empty"), "leave --prompt out for the single token \"What\", or give token ids with --tokens")
	case s.Chat && s.Prompt == nil:
		return hint.Add(fmt.Errorf("--chat needs a prompt"), "add --prompt TEXT")
	case s.Scope.Level < 1 || s.Scope.Level > 3:
		return hint.Add(fmt.Errorf("--level is %d, want 1, 2 or 3", s.Scope.Level), "1 is block boundaries, 2 module outputs, 3 internals")
	case s.NewTokens < 0 || s.NewTokens > maxNewTokens:
		return hint.Add(fmt.Errorf("--max-new-tokens is %d, want 0 to %d", s.NewTokens, maxNewTokens), "0 captures only the input, N decodes N tokens after it")
	}
	if _, err := s.ComputedIn(""); err != nil {
		return err
	}
	for _, p := range s.Scope.Tensors {
		if err := hooks.CheckPattern(p); err != nil {
			return fmt.Errorf("--tensors: %w", err)
		}
	}
	if err := s.Local.check("local"); err != nil {
		return err
	}
	return s.Reference.check("reference")
}

// DTypes are the values of --dtype.
var DTypes = []string{"auto", "float32", "bfloat16", "float16"}

// ComputedIn resolves auto to what the checkpoint declares, float32 where it declares nothing.
func (s *Settings) ComputedIn(declared string) (hooks.DType, error) {
	name := s.DType
	if name == "auto" {
		if name = declared; name == "" {
			name = "float32"
		}
	}
	if slices.Contains(DTypes[1:], name) {
		return hooks.ParseDType(name)
	}
	if s.DType == "auto" {
		return 0, hint.Add(fmt.Errorf("config.json declares dtype %q, in which tracediff does not compute", name), "choose with --dtype float32, bfloat16 or float16")
	}
	return 0, hint.Add(fmt.Errorf("--dtype is %q", name), "want float32, bfloat16, float16 or auto")
}

// InputFile returns the trace with the token ids of the input, if the settings contain neither a prompt nor ids. It
// returns "" if neither side is a file.
func (s *Settings) InputFile() string {
	switch {
	case s.Prompt != nil || s.Tokens != "":
		return ""
	case s.Reference.Kind == KindFile:
		return s.Reference.Text
	case s.Local.Kind == KindFile:
		return s.Local.Text
	}
	return ""
}

// absolute returns the settings with paths that mean the same from every folder.
func (s Settings) absolute() (Settings, error) {
	paths := []*string{&s.Model, &s.Order, &s.Program, &s.Map, &s.Weights}
	if filepath.Base(s.Python) != s.Python { // a bare name is looked for in PATH each time
		paths = append(paths, &s.Python)
	}
	for _, side := range []*Source{&s.Local, &s.Reference} {
		if side.Kind == KindFile {
			paths = append(paths, &side.Text)
		}
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return s, err
		}
		*path = abs
	}
	return s, nil
}

// Save writes the settings atomically to a folder of traces, and creates the folder.
func (s Settings) Save(dir string) error {
	s, err := s.absolute()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := files.WriteWhole(filepath.Join(dir, SettingsFile), append(text, '\n')); err != nil {
		return hint.Add(fmt.Errorf("keeping the settings: %w", err), "--dir names a folder that can be written to")
	}
	return nil
}

// SettingsFor returns the base settings for a command line: the settings of the last capture in a folder of traces.
// It returns the defaults without an earlier capture, or if the command line names its own input.
func SettingsFor(dir string, alone bool) (Settings, error) {
	if alone {
		return Defaults(), nil
	}
	s, _, err := LastSettings(dir)
	return s, err
}

// LastSettings reads the settings of the last capture in a folder of traces; the result is false without an earlier
// capture. An unknown key is an error, because it may be a limit written by a later version.
func LastSettings(dir string) (Settings, bool, error) {
	s := Defaults()
	text, err := files.Read(filepath.Join(dir, SettingsFile), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		if err = s.read(text); err != nil {
			err = fmt.Errorf("%s: %w", filepath.Join(dir, SettingsFile), err)
		}
	}
	if err != nil {
		return s, false, hint.Add(fmt.Errorf("reading the settings of the last capture: %w", err),
			"name the input: tracediff compare --prompt TEXT, or capture again")
	}
	return s, true, nil
}

func (s *Settings) read(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return s.Check()
}

// Interpreter is the Python that runs transformers.
func (s *Settings) Interpreter() string {
	if s.Python == "" {
		return "python3"
	}
	return s.Python
}
