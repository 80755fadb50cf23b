package gatefile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
)

// Taken is a key and its value, as written into a new tracediff.toml.
type Taken struct{ Key, Value string }

// Captured holds the settings of the last capture in a folder of traces, for a new tracediff.toml.
type Captured struct {
	settings.Settings
	Dir      string   // the folder
	Input    string   // the token ids, where the settings have neither a text nor ids
	Patterns []string // of the names that a port dumped
	Level    int      // that has them; 0: all are compared
	Gone     bool     // the trace of the port is no longer there
	Lines    string   // the lines of the map as a table of tracediff.toml; empty without a map
}

// Write is the text of a new tracediff.toml at path: the example, and in it what was captured: the model, the local side, the tokens and
// what belongs to them. Of a port it takes the map, and what the port showed. How much was captured of tracediff's own model is not taken: a
// gate compares everything.
func (s *Captured) Write(example []byte, path string) (text []byte, taken []Taken, err error) {
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	keys := []Taken{{"model", from(folder, s.Model)}, {"dtype", s.DType}, {"local", sideFrom(folder, s.Local)}, {"order", from(folder, s.Order)}, {"program", from(folder, s.Program)}}
	if s.Reference.Kind == settings.KindHF {
		keys = append(keys, Taken{"reference", settings.KindHF}, Taken{"python", from(folder, s.Python)})
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
	switch {
	case s.Gone:
		taken = append(taken, Taken{"tensors", "all: the port's trace is gone, capture again to list the tensors that it dumps"})
	case s.Level > 0:
		if err := cmp.Or(add("level", s.Level), add("tensors", s.Patterns)); err != nil {
			return nil, nil, err
		}
	}
	if s.Lines != "" {
		before, _, ok := strings.Cut(edited, "# [map]\n")
		if !ok {
			return nil, nil, errors.New("the example has no [map]")
		}
		edited, taken = before+s.Lines, append(taken, Taken{"[map]", "the lines of " + s.Map})
	}
	if edited, err = onePrompt(edited); err != nil {
		return nil, nil, err
	}
	for _, p := range s.prompt() {
		if err := add(p.key, p.value); err != nil {
			return nil, nil, err
		}
	}
	if _, _, err := parseConfig([]byte(edited), ConfigName, folder); err != nil {
		return nil, nil, hint.Add(fmt.Errorf("a gate cannot repeat the last capture in %s: %w", s.Dir, err), "tracediff init --dir DIR names another folder; a folder without a capture gives an example")
	}
	return []byte(edited), taken, nil
}

// promptKey is a key of [[prompt]].
type promptKey struct {
	key   string
	value any
}

// prompt is what was read: the text or the ids.
func (s *Captured) prompt() []promptKey {
	keys := []promptKey{{"name", "last-capture"}}
	switch {
	case s.Prompt != nil:
		keys = append(keys, promptKey{"text", *s.Prompt})
	case s.Tokens != "":
		keys = append(keys, promptKey{"tokens", s.Tokens})
	default:
		keys = append(keys, promptKey{"tokens", s.Input})
	}
	if s.Chat {
		keys = append(keys, promptKey{"chat", true})
	}
	if s.NewTokens > 0 {
		keys = append(keys, promptKey{"max_new_tokens", s.NewTokens})
	}
	return keys
}

// from is a path as the file in a folder says it: relative where it lies below the working directory, else in full. A bare name is
// looked for elsewhere and stays.
func from(folder, path string) string {
	if path == "" || filepath.Base(path) == path {
		return path
	}
	if Below(path, Here()) == path {
		return path
	}
	if rel, err := filepath.Rel(folder, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// sideFrom is a side as the file in a folder says it; empty for the default.
func sideFrom(folder string, s settings.Source) string {
	switch s.Kind {
	case settings.KindFile:
		return from(folder, s.Text)
	case settings.KindExec:
		if s.Folder == folder {
			return settings.ExecPrefix + s.Text
		}
		return settings.ExecPrefix + "cd " + plain.QuoteShell(from(folder, s.Folder)) + " && " + s.Text
	}
	return s.Kind
}

// setKey replaces the first line with a value for key, or else the first comment explaining the key. A comment
// after the value is kept.
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
# chat = true                # in the model's chat template
# max_new_tokens = 6         # decode that many tokens, each a pass; passes of the reference are replayed

`
	return text[:at[0]] + section + text[at[1]:], nil
}
