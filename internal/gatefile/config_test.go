package gatefile

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/settings"
)

// The file that init writes explains every key there is, and no other: with all that is commented out taken in, it still
// reads.
func TestExampleConfig(t *testing.T) {
	example, err := os.ReadFile("../../cmd/tracediff/tracediff.toml")
	must(t, err)
	if _, _, err := parseConfig(example, ConfigName, t.TempDir()); err != nil {
		t.Errorf("as it is: %v", err)
	}
	commented := regexp.MustCompile(`(?m)^# (\w+ = |\[|"blk)`)
	whole := commented.ReplaceAllString(string(example), "$1")
	// Two values for one key are two examples.
	whole = strings.Replace(whole, `local = "go"`+"\n", "", 1)
	folder := t.TempDir()
	all, limits, err := parseConfig([]byte(whole), ConfigName, folder)
	if err != nil {
		t.Fatalf("with everything: %v", err)
	}
	if len(all) != 2 || len(limits.Rules) != 1 || len(limits.Allowed) != 1 {
		t.Errorf("with everything it has %d prompts, %d tolerances and %d allowed", len(all), len(limits.Rules), len(limits.Allowed))
	}
	for _, key := range keys(reflect.TypeFor[config]()) {
		if !regexp.MustCompile(`(?m)^\[*(map\.)?` + key + `(\]+| = |\.)`).MatchString(whole) {
			t.Errorf("the key %s is not explained", key)
		}
	}
}

// keys are the names that a file may have, those of its sections among them.
func keys(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("toml"); name != "" {
			all = append(all, name)
		}
		of := f.Type
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			all = append(all, keys(of)...)
		}
	}
	return all
}

// Every key ends where a flag of the same name would.
func TestConfigSettings(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "there.safetensors"), nil, 0o666))
	text := `
model = "models/a"
dtype = "float32"
local = "exec:./port --out {out}"
reference = "there.safetensors"
python = "venv/bin/python"
order = "/names.txt"
level = 1
layers = "0-3"
tensors = ["*.mlp.*"]
passes = "0"
positions = "1-2"
[[prompt]]
name = "a"
text = "Hello"
chat = true
max_new_tokens = 2
[[prompt]]
name = "b"
tokens = "2,3;4"
dtype = "bfloat16"
model = "/b"
`
	all, _, err := parseConfig([]byte(text), ConfigName, folder)
	must(t, err)
	hello := "Hello"
	want := settings.Settings{
		Model: filepath.Join(folder, "models/a"), Prompt: &hello, Chat: true, DType: "float32", NewTokens: 2, Order: "/names.txt",
		Scope: capture.Scope{
			Level: 1, Layers: capture.Ranges{{From: 0, To: 3}}, Tensors: []string{"*.mlp.*"}, Passes: capture.Ranges{{From: 0, To: 0}},
			Positions: capture.Ranges{{From: 1, To: 2}},
		},
		Local:     settings.Source{Kind: settings.KindExec, Text: "./port --out {out}", Folder: folder},
		Reference: settings.Source{Kind: settings.KindFile, Text: filepath.Join(folder, "there.safetensors")},
		Python:    filepath.Join(folder, "venv/bin/python"),
	}
	other := want
	other.Prompt, other.Chat, other.NewTokens, other.Tokens, other.DType, other.Model = nil, false, 0, "2,3;4", "bfloat16", "/b"
	if diff := cmp.Diff([]settings.Settings{want, other}, []settings.Settings{all[0].Settings, all[1].Settings}); diff != "" {
		t.Error(diff)
	}
}

// What is wrong in a file is said with the line, the key or the prompt.
func TestConfigErrors(t *testing.T) {
	const prompt = "[[prompt]]\nname = 'a'\ntokens = '2'\n"
	for text, want := range map[string]string{
		"":                                     `it has 0 sections [[prompt]]`,
		"modle = 'x'\n" + prompt:               `line 1, "modle = 'x'": unknown key "modle"`,
		prompt + "txt = 'x'":                   `line 4, "txt = 'x'": unknown key "prompt.txt"`,
		prompt + "[[tolerance]]\nx=1":          `line 5, "x=1": unknown key "tolerance.x"`,
		"level = 'x'\n" + prompt:               `line 1, "level = 'x'": `,
		"level = 4\n" + prompt:                 `prompt "a": level is 4`,
		"layers = '3-1'\n" + prompt:            `layers: "3-1"`,
		"local = 'hf'\n" + prompt:              `local is "`,
		"local = 'exec: '\n" + prompt:          `local has an empty command`,
		"dtype = 'int8'\n" + prompt:            `prompt "a": dtype is "int8"`,
		prompt + prompt:                        `two prompts are called "a"`,
		"[[prompt]]\nname = 'a'":               `prompt "a": neither text nor tokens`,
		"[[prompt]]\nname = 'a/b'\ntokens='2'": `prompt "a/b": want a name`,
		"[[prompt]]\ntokens='2'":               `prompt "": want a name`,
		prompt + "text = 'x'":                  `prompt "a": text and tokens were both given`,
		prompt + "chat = true":                 `prompt "a": chat needs a prompt`,
		prompt + "[[allow]]\ntensors = '*'":    `[[allow]] 1, "*": no reason`,
	} {
		_, _, err := parseConfig([]byte(text), ConfigName, t.TempDir())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The example of a hint is TOML.
func TestConfigHints(t *testing.T) {
	_, _, err := parseConfig([]byte("local = 'exec:'\n[[prompt]]\nname = 'a'\ntokens = '2'\n"), ConfigName, t.TempDir())
	const want = `for example: local = "exec:./port --tokens {tokens} --out {out}"`
	if got := advice.Hint(InKeys(err)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A file is read, or refused with words: no text makes the program fail otherwise.
func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile("../../cmd/tracediff/tracediff.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add("[[prompt]]\nname = 'a'\ntokens = '2'\nmax_new_tokens = -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, _, err := parseConfig([]byte(text), ConfigName, "/nowhere")
		if (err == nil) != (len(all) > 0) {
			t.Errorf("%d prompts, %v", len(all), err)
		}
	})
}
