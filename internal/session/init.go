package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
)

// Taken is a key of a new tracediff.toml and its value, as the file has it.
type Taken struct{ Key, Value string }

// Initial is the text of a new tracediff.toml at path: the example, and in it what the last capture in dir ran, where there was one:
// the model, the local side, the tokens and what belongs to them. Of a port it takes the map, and what the port showed. How much was captured of tracediff's own model
// is not taken: a gate compares everything.
func Initial(example []byte, path, dir string) (text []byte, taken []Taken, err error) {
	s, there, err := LastSettings(dir)
	if err != nil || !there {
		return example, nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	keys := []Taken{{"model", from(folder, s.Model)}, {"dtype", s.DType}, {"local", sideFrom(folder, s.Local)}, {"order", from(folder, s.Order)}, {"program", from(folder, s.Program)}}
	if s.Reference.Kind == KindHF {
		keys = append(keys, Taken{"reference", KindHF}, Taken{"python", from(folder, s.Python)})
	}
	edited := string(example)
	add := func(key string, value any) error {
		line, err := toml.Marshal(map[string]any{key: value})
		if err != nil {
			return err
		}
		said := strings.TrimSpace(string(line))
		if text, ok := value.(string); ok && said == key+" = '"+text+"'" && !strings.ContainsAny(text, `"\`) { // as the example quotes
			said = key + ` = "` + text + `"`
		}
		taken = append(taken, Taken{key, strings.TrimSpace(strings.TrimPrefix(said, key+" ="))})
		edited, err = setKey(edited, key, said)
		return err
	}
	for _, k := range keys {
		if k.Value == "" {
			continue
		}
		if err := add(k.Key, k.Value); err != nil {
			return nil, nil, err
		}
	}
	patterns, level, err := s.shown(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		taken = append(taken, Taken{"tensors", "all: the trace of the port is gone, capture again for those that it dumps"})
	case err != nil:
		return nil, nil, fmt.Errorf("what the port dumped at the last capture: %w", err)
	case level > 0:
		if err := cmp.Or(add("level", level), add("tensors", patterns)); err != nil {
			return nil, nil, err
		}
	}
	if text, err := s.mapText(); err != nil {
		return nil, nil, err
	} else if text != "" {
		before, _, ok := strings.Cut(edited, "# [map]\n")
		if !ok {
			return nil, nil, errors.New("the example has no [map]")
		}
		edited, taken = before+text, append(taken, Taken{"[map]", "the lines of " + s.Map})
	}
	prompt, err := promptOf(s)
	if err != nil {
		return nil, nil, err
	}
	if edited, err = onePrompt(edited); err != nil {
		return nil, nil, err
	}
	for _, p := range prompt {
		if err := add(p.key, p.value); err != nil {
			return nil, nil, err
		}
	}
	if _, _, err := parseConfig([]byte(edited), ConfigName, folder); err != nil {
		return nil, nil, hint.Add(fmt.Errorf("a gate cannot repeat the last capture in %s: %w", dir, err), "tracediff init --dir DIR names another folder; one without a capture gives an example")
	}
	return []byte(edited), taken, nil
}

// promptKey is a key of [[prompt]].
type promptKey struct {
	key   string
	value any
}

// promptOf is what the last capture read: its text or its ids, which may be those of a trace.
func promptOf(s Settings) ([]promptKey, error) {
	keys := []promptKey{{"name", "last-capture"}}
	switch {
	case s.Prompt != nil:
		keys = append(keys, promptKey{"text", *s.Prompt})
	case s.Tokens != "":
		keys = append(keys, promptKey{"tokens", s.Tokens})
	default: // those of a trace, or of a text without BOS
		j := &Job{Settings: s}
		if err := j.openModel(); err != nil {
			return nil, err
		}
		err := hint.Also(j.readInput(context.Background(), nil), j.Close())
		if err != nil {
			return nil, fmt.Errorf("the token ids of the last capture: %w", err)
		}
		keys = append(keys, promptKey{"tokens", reference.FormatTokens(j.passes)})
	}
	if s.Chat {
		keys = append(keys, promptKey{"chat", true})
	}
	if s.NewTokens > 0 {
		keys = append(keys, promptKey{"max_new_tokens", s.NewTokens})
	}
	return keys, nil
}

// from is a path as the file in a folder says it: relative where it lies below the working directory, else in full. A bare name is
// looked for elsewhere and stays.
func from(folder, path string) string {
	if path == "" || filepath.Base(path) == path {
		return path
	}
	if below(path, here()) == path {
		return path
	}
	if rel, err := filepath.Rel(folder, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// sideFrom is a side as the file in a folder says it; empty for the default.
func sideFrom(folder string, s Source) string {
	switch s.Kind {
	case KindFile:
		return from(folder, s.Text)
	case KindExec:
		if s.Folder == folder {
			return ExecPrefix + s.Text
		}
		return ExecPrefix + "cd " + QuoteShell(from(folder, s.Folder)) + " && " + s.Text
	}
	return s.Kind
}

// setKey puts a line in place of the first one that sets a key, or else of the first that explains it. What it says behind the value
// stays.
func setKey(text, key, line string) (string, error) {
	for _, begin := range []string{"", "# ?"} {
		pattern := regexp.MustCompile(`(?m)^` + begin + regexp.QuoteMeta(key) + ` = (?:"[^"]*"|\[[^\]]*\]|[^\s"]+)([ \t]+#.*)?$`)
		if at := pattern.FindStringSubmatchIndex(text); at != nil {
			comment := ""
			if at[2] >= 0 {
				comment = "  " + strings.TrimSpace(text[at[2]:at[3]])
			}
			return text[:at[0]] + line + comment + text[at[1]:], nil
		}
	}
	return "", fmt.Errorf("the example has no key %q", key)
}

// prompts are the sections [[prompt]] of the example, up to the comment on what follows them.
var prompts = regexp.MustCompile(`(?s)\[\[prompt\]\]\n.*?\n\n\[\[prompt\]\]\n.*?\n\n`)

// onePrompt leaves one section [[prompt]] in the example, without a value.
func onePrompt(text string) (string, error) {
	at := prompts.FindStringIndex(text)
	if at == nil {
		return "", fmt.Errorf("the example does not have two prompts")
	}
	section := `[[prompt]]
name = ""
# text = ""                  # tokenized by the checkpoint's tokenizer, BOS first
# tokens = ""                # or ids, which need no tokenizer; passes are separated by ';'
# chat = true                # in the model's turn template
# max_new_tokens = 6         # decode that many tokens, each a pass; passes of the reference are replayed

`
	return text[:at[0]] + section + text[at[1]:], nil
}
