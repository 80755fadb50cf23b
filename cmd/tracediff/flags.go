package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// settings say what is captured. They are written into the local trace, so that a later compare can repeat it.
type settings struct {
	Model     string        `json:"model,omitempty"` // empty: the embedded checkpoint
	Prompt    *string       `json:"prompt,omitempty"`
	Tokens    string        `json:"tokens,omitempty"`
	Chat      bool          `json:"chat,omitempty"`
	DType     string        `json:"dtype"`
	NewTokens int           `json:"max_new_tokens,omitempty"`
	Order     string        `json:"order,omitempty"`
	Scope     capture.Scope `json:"scope"`
}

const (
	catInput   = "INPUT"
	catScope   = "SCOPE (limits the work, not only the output)"
	catFiles   = "FILES"
	catCompare = "COMPARISON"
)

// jobFlags are the flags of every command that runs the model.
func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the embedded tiny Gemma 3n)"},
		&cli.StringFlag{Name: "prompt", Category: catInput, Usage: "`TEXT` to tokenize, BOS first (default: the single token \"What\" without BOS)"},
		&cli.StringFlag{Name: "tokens", Category: catInput, Usage: "token `IDS` instead of a prompt: 2,513,88; passes separated by ';' are replayed one by one"},
		&cli.BoolFlag{Name: "chat", Category: catInput, Usage: "put the prompt into Gemma's turn template"},
		&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
		&cli.IntFlag{Name: "max-new-tokens", Category: catInput, Usage: "decode `N` tokens greedily, each captured as a pass of its own"},
		&cli.IntFlag{Name: "level", Category: catScope, Value: 2, Usage: "1 block boundaries, 2 module outputs, 3 internals"},
		&cli.StringFlag{Name: "layers", Category: catScope, Usage: "only these `LAYERS`, such as 0-3,7; the run stops after the last one"},
		&cli.StringSliceFlag{Name: "tensors", Category: catScope, Usage: "only names that match `PATTERN`, such as '*.mlp.*' (repeatable)"},
		&cli.StringFlag{Name: "passes", Category: catScope, Usage: "only these forward `PASSES`: 0 is the prefill"},
		&cli.StringFlag{Name: "positions", Category: catScope, Usage: "only the rows of these token `POSITIONS` are written"},
		&cli.StringFlag{Name: "order", Category: catScope, Usage: "a `FILE` with one tensor name a line, in place of TENSOR_ORDER"},
		&cli.StringFlag{Name: "dir", Category: catFiles, Value: ".tracediff", Usage: "`DIR` where traces are kept"},
		&cli.StringFlag{Name: "reference", Category: catFiles, Usage: "trace `FILE` to use as the reference, as it is"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: catFiles, Usage: "no progress and no notes, only results and errors"},
	}
}

// inputFlags name what is run. A command line that has one of them stands alone; without any, the settings of the last
// capture apply and the flags that are typed change them.
var inputFlags = []string{"model", "prompt", "tokens"}

func namesInput(c *cli.Context) bool {
	return slices.ContainsFunc(inputFlags, c.IsSet)
}

// readFlags lays the flags that were typed over s.
func readFlags(c *cli.Context, s settings) (settings, error) {
	var errs []error
	ranges := func(name string, into *capture.Ranges) {
		if !c.IsSet(name) {
			return
		}
		r, err := capture.ParseRanges(c.String(name))
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
		*into = r
	}
	texts := map[string]*string{"model": &s.Model, "tokens": &s.Tokens, "dtype": &s.DType, "order": &s.Order}
	for name, into := range texts {
		if c.IsSet(name) {
			*into = c.String(name)
		}
	}
	for _, name := range []string{"model", "tokens", "order", "dir", "reference"} {
		if c.IsSet(name) && c.String(name) == "" {
			return s, hinted(fmt.Errorf("--%s is empty", name), "leave the flag out for the default")
		}
	}
	if c.IsSet("prompt") {
		text := c.String("prompt")
		s.Prompt = &text
	}
	if c.IsSet("chat") {
		s.Chat = c.Bool("chat")
	}
	if c.IsSet("max-new-tokens") {
		s.NewTokens = c.Int("max-new-tokens")
	}
	if c.IsSet("level") {
		s.Scope.Level = c.Int("level")
	}
	if c.IsSet("tensors") {
		s.Scope.Tensors = c.StringSlice("tensors")
	}
	ranges("layers", &s.Scope.Layers)
	ranges("passes", &s.Scope.Passes)
	ranges("positions", &s.Scope.Positions)
	errs = append(errs, s.check())
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

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
	return nil
}

// absolute returns the settings with paths that mean the same from every folder.
func (s settings) absolute() (settings, error) {
	for _, path := range []*string{&s.Model, &s.Order} {
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
