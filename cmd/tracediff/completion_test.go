package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// Each value that completion offers for a flag is taken, and no other: every command with such a flag, up to the first error after its flags.
func TestCompletionOffersWhatIsTaken(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("gate.toml", []byte("model = \"nowhere\"\n[[prompt]]\nname = \"a\"\ntokens = \"2\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	after := map[string][]string{
		"demo": {"--report", "none"}, "watch": {"--watch", "nowhere"}, "gate": {"--config", "gate.toml"}, "merge": {"nowhere"}, "check": {"nowhere"}, "inspect": {"nowhere"},
		"weights": {"nowhere", "--model", "nowhere"}, "diff-program": {"nowhere", "nowhere"}, "order": {"--record", "--model", "nowhere"},
	}
	fixed := 0
	for _, c := range completions(newApp(nil, io.Discard, io.Discard)) {
		for _, f := range c.flags {
			if f.values == nil && slices.Contains([]string{"format", "color", "dtype", "level"}, f.name) {
				t.Errorf("%s --%s: file names are offered", c.name, f.name)
			}
			if f.values == nil {
				continue
			}
			fixed++
			for _, value := range append(slices.Clone(f.values), "7") {
				args := after[c.name]
				if args == nil {
					args = []string{"--model", "nowhere"}
				}
				var said bytes.Buffer
				run(slices.Concat([]string{"tracediff", c.name, "--" + f.name, value}, args), nil, &said, &said)
				refused := strings.Contains(strings.ReplaceAll(said.String(), `"`, ""), fmt.Sprintf("--%s is %s", f.name, value))
				if refused != (value == "7") {
					t.Errorf("%s --%s %s is refused: %v, offered are %v\n%s", c.name, f.name, value, refused, f.values, said.String())
				}
			}
		}
	}
	if fixed < 40 {
		t.Errorf("%d flags of commands have a fixed set of values", fixed)
	}
}
