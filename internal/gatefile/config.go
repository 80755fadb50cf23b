// Package gatefile reads and writes the two files of a gate in a user's repository: tracediff.toml, with the
// prompts and the limits, and baseline.toml, with the known divergences.
package gatefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tomlfile"
)

// ConfigName is the file that a gate reads when no other is named.
const ConfigName = "tracediff.toml"

// maxConfig bounds the file: prompts are texts of people, and tolerances a few lines.
const maxConfig = gate.MaxLimits

// MaxPrompts bounds the prompts of a gate, since each prompt runs both sides.
const MaxPrompts = 1 << 10

// config is tracediff.toml, as "tracediff init" explains it. A nil pointer is an absent key, unlike a zero.
type config struct {
	Model     string   `toml:"model"`
	DType     string   `toml:"dtype"`
	Local     string   `toml:"local"`
	Reference string   `toml:"reference"`
	Python    string   `toml:"python"`
	Order     string   `toml:"order"`
	Program   string   `toml:"program"`
	Level     *int     `toml:"level"`
	Layers    string   `toml:"layers"`
	Tensors   []string `toml:"tensors"`
	Passes    string   `toml:"passes"`
	Positions string   `toml:"positions"`

	RequireCertified bool   `toml:"require_certified"`
	Baseline         string `toml:"baseline"`
	Weights          string `toml:"weights"`

	Watch watchConfig `toml:"watch"`

	Prompt []promptConfig `toml:"prompt"`
	Map    mapping.Tables `toml:"map"`
	gate.LimitSections

	name   string // of the file
	folder string // that the file is in: its paths are relative to it
	text   []byte
}

// promptConfig is one input of a gate.
type promptConfig struct {
	Name      string  `toml:"name"`
	Text      *string `toml:"text"`
	Tokens    string  `toml:"tokens"`
	Chat      bool    `toml:"chat"`
	NewTokens int     `toml:"max_new_tokens"`
	DType     string  `toml:"dtype"`
	Model     string  `toml:"model"`
}

// Named are the settings of one prompt.
type Named struct {
	Name string
	settings.Settings
	RequireCertified bool // every entry that counts is to be EXACT or ROUNDING
	// Baseline is the path of the file of known divergences, and BaselineName the path as written in
	// tracediff.toml. Both are empty without a baseline.
	Baseline, BaselineName string
	Weights                *settings.AskedWeights // the port's checkpoint, compared with the original before any prompt runs; nil: not in the file
}

// OpenConfig reads a tracediff.toml and returns the settings of every prompt, and the common limits.
func OpenConfig(path string) ([]Named, *gate.Limits, error) {
	all, limits, err := readConfigFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && path == ConfigName:
		return nil, nil, hint.Add(fmt.Errorf("there is no %s here: %w", ConfigName, err), "tracediff init writes one, with every key explained; --config FILE names another")
	case err != nil:
		return nil, nil, hint.Add(advice.OnPath(path, err), configHint(err))
	}
	return all, limits, nil
}

// configHint returns the hint of an error in tracediff.toml, or a general hint about the file.
func configHint(err error) string {
	if h := advice.Hint(err); h != advice.GeneralHint {
		return h
	}
	return "tracediff init FILE writes an example with every key explained; docs/ci.md has them, too"
}

func readConfigFile(path string) ([]Named, *gate.Limits, error) {
	text, folder, err := readConfigText(path)
	if err != nil {
		return nil, nil, err
	}
	return parseConfig(text, path, folder)
}

// readConfigText reads the file, and says in which folder it stands.
func readConfigText(path string) (text []byte, folder string, err error) {
	text, stream, err := files.ReadStream(path, maxConfig)
	if errors.Is(err, os.ErrNotExist) && path != ConfigName {
		err = hint.Add(err, "check the path; tracediff init FILE writes an example with every key explained")
	}
	if err != nil {
		return nil, "", err
	}
	folder = filepath.Dir(path)
	if stream { // that stands in no folder of the person's
		folder = "."
	}
	folder, err = filepath.Abs(folder)
	return text, folder, err
}

func parseConfig(text []byte, name, folder string) ([]Named, *gate.Limits, error) {
	c := config{name: name, folder: folder, text: text}
	if err := tomlfile.Decode(text, &c); err != nil {
		return nil, nil, err
	}
	return c.read()
}

// read gives the file its meaning.
func (c *config) read() ([]Named, *gate.Limits, error) {
	limits, err := c.Limits()
	if err != nil {
		return nil, nil, err
	}
	if len(c.Prompt) == 0 || len(c.Prompt) > MaxPrompts {
		return nil, nil, fmt.Errorf("it has %d sections [[prompt]], want 1 to %d", len(c.Prompt), MaxPrompts)
	}
	common, err := c.common()
	if err != nil {
		return nil, nil, InKeys(err)
	}
	asked, err := c.weights(common)
	if err != nil {
		return nil, nil, err
	}
	var all []Named
	for _, p := range c.Prompt {
		s, err := c.settings(common, p)
		if err != nil {
			return nil, nil, fmt.Errorf("prompt %q: %w", p.Name, InKeys(err))
		}
		if slices.ContainsFunc(all, func(n Named) bool { return n.Name == p.Name }) {
			return nil, nil, fmt.Errorf("two prompts are called %q", p.Name)
		}
		if asked != nil && p.Model == "" { // of another model they are not the weights
			s.Weights = asked.Local
		}
		all = append(all, Named{p.Name, s, c.RequireCertified, c.path(c.Baseline), c.Baseline, asked})
	}
	return all, limits, nil
}

// weights are those that the file names.
func (c *config) weights(common settings.Settings) (*settings.AskedWeights, error) {
	switch {
	case c.Weights == "":
		return nil, nil
	case common.Model == "":
		return nil, hint.Add(errors.New("weights names the port's checkpoint, but model is not set"), "model names the original that the weights are compared with")
	}
	return &settings.AskedWeights{Local: c.path(c.Weights), Model: common.Model, Table: common.Table}, nil
}

// common are the settings that all prompts share.
func (c *config) common() (s settings.Settings, err error) {
	s = settings.Defaults()
	s.Model, s.Order, s.Program = c.path(c.Model), c.path(c.Order), c.path(c.Program)
	if len(c.Map.Tensors)+len(c.Map.Weights)+len(c.Map.Models)+len(c.Map.Fused) > 0 {
		if s.Table, err = mapping.New(c.name, c.Map, c.text); err != nil {
			return s, err
		}
	}
	s.Python = c.Python
	if filepath.Base(c.Python) != c.Python {
		s.Python = c.path(c.Python)
	}
	if c.DType != "" {
		s.DType = c.DType
	}
	if c.Level != nil {
		s.Scope.Level = *c.Level
	}
	s.Scope.Tensors = c.Tensors
	for _, r := range []struct {
		key, text string
		into      *capture.Ranges
	}{{"layers", c.Layers, &s.Scope.Layers}, {"passes", c.Passes, &s.Scope.Passes}, {"positions", c.Positions, &s.Scope.Positions}} {
		if *r.into, err = capture.ParseRanges(r.text); err != nil {
			return s, fmt.Errorf("%s: %w", r.key, err)
		}
	}
	if s.Local, err = c.side("local", c.Local); err != nil {
		return s, err
	}
	s.Reference, err = c.side("reference", c.Reference)
	return s, err
}

// promptName is what a name may be: it ends up in the names of test suites.
var promptName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// settings are those of one prompt.
func (c *config) settings(s settings.Settings, p promptConfig) (settings.Settings, error) {
	if !promptName.MatchString(p.Name) {
		return s, errors.New("want a name of up to 64 letters, digits, '.', '_' and '-'")
	}
	s.Prompt, s.Tokens, s.Chat, s.NewTokens = p.Text, p.Tokens, p.Chat, p.NewTokens
	if p.Text == nil && p.Tokens == "" {
		return s, hint.Add(errors.New("neither text nor tokens"), `give it text = "...", or the ids: tokens = "2,513,88"`)
	}
	if p.DType != "" {
		s.DType = p.DType
	}
	if p.Model != "" {
		s.Model = c.path(p.Model)
	}
	return s, s.Check()
}

// path makes a path relative to the file's folder; empty stays empty.
func (c *config) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.folder, p)
}

// side reads local or reference. A command runs in the file's folder, and a trace is looked for there.
func (c *config) side(key, value string) (settings.Source, error) {
	if value == "" {
		return settings.Source{}, nil
	}
	words := append(slices.Clone(settings.SideKinds[key]), "auto")
	if !slices.Contains(words, value) && !strings.HasPrefix(value, settings.ExecPrefix) {
		value = c.path(value)
	}
	s, err := settings.ParseSource(key, value)
	if s.Kind == settings.KindExec {
		s.Folder = c.folder
	}
	return s, err
}
