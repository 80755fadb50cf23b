package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/files"
)

// settings say what is run and captured. The last ones stay in a file of their own beside the traces, since a trace that
// a person or another engine made knows nothing of them.
type settings struct {
	Model     string        `json:"model,omitempty"` // empty: the embedded checkpoint
	Prompt    *string       `json:"prompt,omitempty"`
	Tokens    string        `json:"tokens,omitempty"`
	Chat      bool          `json:"chat,omitempty"`
	DType     string        `json:"dtype"`
	NewTokens int           `json:"max_new_tokens,omitempty"`
	Order     string        `json:"order,omitempty"`
	Scope     capture.Scope `json:"scope"`
	Local     source        `json:"local,omitzero"`
	Reference source        `json:"reference,omitzero"`
	Python    string        `json:"python,omitempty"` // empty: python3
}

const settingsFile = "settings.json"

// maxSettings bounds the file: the longest prompt that a shell passes on is 2 MB, which JSON may write six times as long.
const maxSettings = 16 << 20

func defaults() settings { return settings{DType: "auto", Scope: capture.Scope{Level: 2}} }

// maxNewTokens bounds --max-new-tokens: every pass is written to the trace.
const maxNewTokens = 4096

func (s *settings) check() error {
	switch {
	case s.Prompt != nil && s.Tokens != "":
		return hinted(fmt.Errorf("--prompt and --tokens were both given"), "give the text or the ids")
	case s.Prompt != nil && *s.Prompt == "":
		return hinted(fmt.Errorf("the prompt is empty"), "leave --prompt out for the single token \"What\", or give token ids with --tokens")
	case s.Chat && s.Prompt == nil:
		return hinted(fmt.Errorf("--chat needs a prompt"), "add --prompt TEXT")
	case s.Scope.Level < 1 || s.Scope.Level > 3:
		return fmt.Errorf("--level is %d, want 1, 2 or 3", s.Scope.Level)
	case s.NewTokens < 0 || s.NewTokens > maxNewTokens:
		return fmt.Errorf("--max-new-tokens is %d, want 0 to %d", s.NewTokens, maxNewTokens)
	}
	if _, err := s.dtype(""); err != nil {
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

// dtype resolves auto to what the checkpoint declares, float32 where it declares nothing.
func (s *settings) dtype(declared string) (hooks.DType, error) {
	name := s.DType
	if name == "auto" {
		if name = declared; name == "" {
			name = "float32"
		}
	}
	switch name {
	case "float32", "bfloat16", "float16":
		return hooks.ParseDType(name)
	}
	if s.DType == "auto" {
		return 0, hinted(fmt.Errorf("config.json declares dtype %q, which is not computed in", name), "choose with --dtype float32, bfloat16 or float16")
	}
	return 0, hinted(fmt.Errorf("--dtype is %q", name), "want float32, bfloat16, float16 or auto")
}

// inputFile is the trace whose token ids are the input, because no other input was named; empty when there is none.
func (s *settings) inputFile() string {
	switch {
	case s.Prompt != nil || s.Tokens != "":
		return ""
	case s.Reference.Kind == kindFile:
		return s.Reference.Text
	case s.Local.Kind == kindFile:
		return s.Local.Text
	}
	return ""
}

// absolute returns the settings with paths that mean the same from every folder.
func (s settings) absolute() (settings, error) {
	paths := []*string{&s.Model, &s.Order}
	if filepath.Base(s.Python) != s.Python { // a bare name is looked for in PATH each time
		paths = append(paths, &s.Python)
	}
	for _, side := range []*source{&s.Local, &s.Reference} {
		if side.Kind == kindFile {
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

// save writes the settings to a folder of traces, which it makes. The file appears whole or not at all.
func (s settings) save(dir string) error {
	s, err := s.absolute()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(dir, settingsFile), append(text, '\n')); err != nil {
		return hinted(fmt.Errorf("keeping the settings: %w", err), "--dir names a folder that can be written to")
	}
	return nil
}

// writeWhole writes a small file, which appears whole or not at all, and makes its folder.
func writeWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return files.Write(path, data)
}

// lastSettings reads the settings of the last capture in a folder of traces; false when there are none. A key that is not
// known is an error: it may be a limit of a later version.
func lastSettings(dir string) (settings, bool, error) {
	s := defaults()
	text, err := files.Read(filepath.Join(dir, settingsFile), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		if err = s.read(text); err != nil {
			err = fmt.Errorf("%s: %w", filepath.Join(dir, settingsFile), err)
		}
	}
	if err != nil {
		return s, false, hinted(fmt.Errorf("reading the settings of the last capture: %w", err),
			"name the input: tracediff compare --prompt TEXT, or capture again")
	}
	return s, true, nil
}

func (s *settings) read(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return s.check()
}
