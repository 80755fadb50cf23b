package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// A runner of GitHub Actions takes lines that begin with "::" for commands, and "##[" in any line: a name with one of them turns masks off, or all commands that
// follow, of whatever prints it. What a command prints has neither, where the environment says that a runner reads it and where it says nothing, as in a
// container; and JSON has the name as it is.
func TestNamesAreNoCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const name, masked = "::stop-commands::x", "##[add-mask]x"
	write := func(file string, last byte) {
		header := fmt.Sprintf(`{%q:{"dtype":"F32","shape":[1],"data_offsets":[0,4]},%q:{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, name, masked)
		data := append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), make([]byte, 12)...)
		data[len(data)-1] = last
		must(t, os.WriteFile(file, data, 0o600))
	}
	write("a.safetensors", 0x40)
	write("b.safetensors", 0x7f)
	must(t, os.WriteFile("names.txt", []byte(name+"\n"+masked+"\n"), 0o600))
	must(t, os.WriteFile("gate.toml", []byte("order = \"names.txt\"\nlocal = \"a.safetensors\"\nreference = \"b.safetensors\"\n[[prompt]]\nname = '"+name+"'\ntokens = '5'\n"), 0o600))
	must(t, os.Mkdir(name, 0o700))
	must(t, os.Rename("b.safetensors", filepath.Join(name, "b.safetensors")))
	b := filepath.Join(name, "b.safetensors")
	shown := 0
	for _, actions := range []string{"", "true"} {
		t.Setenv("GITHUB_ACTIONS", actions)
		for _, c := range []struct {
			want int
			line []string
		}{
			{exitMatch, []string{"inspect", "a.safetensors"}},
			{exitMatch, []string{"inspect", "a.safetensors", "--header"}},
			{exitMatch, []string{"inspect", "a.safetensors", "--format", "json"}},
			{exitMatch, []string{"inspect", "a.safetensors", name}},
			{exitMatch, []string{"inspect", "a.safetensors", b, masked}},
			{exitMismatch, []string{"check", b}},
			{exitMismatch, []string{"check", b, "--format", "json"}},
			{exitMismatch, []string{"compare", "a.safetensors", b, "--table", "--all", "--order", "names.txt", "--gate=false"}},
			{exitMismatch, []string{"compare", "a.safetensors", b, "--all", "--order", "names.txt", "--gate=false", "--format", "json"}},
			{exitMismatch, []string{"compare", "a.safetensors", b, "--all", "--order", "names.txt", "--gate=false", "--format", "jsonl"}},
			{exitMismatch, []string{"compare", "a.safetensors", b, "--all", "--order", "names.txt", "--gate=false", "--format", "junit"}},
			{exitMatch, []string{"order", "--order", "names.txt", "--format", "text"}},
			{exitUnusable, []string{"gate", "--config", "gate.toml"}},
			{exitUnusable, []string{name}},
			{exitMatch, []string{"inspect", name}},
			{exitUnusable, []string{"compare", "--prompt", "Hello world", "--gate=false", "--local", "exec:printf '::stop-commands::x\\r::stop-commands::y\\n##[error]z\\n'"}},
		} {
			var out, errs bytes.Buffer
			if got := run(append([]string{"tracediff"}, c.line...), strings.NewReader(""), &out, &errs); got != c.want {
				t.Errorf("%q: exit status %d, want %d\n%s%s", c.line, got, c.want, out.String(), errs.String())
			}
			said := out.String() + "\n" + errs.String()
			if strings.Contains(said, "stop-commands") || strings.Contains(said, "add-mask") {
				shown++
			}
			for line := range strings.FieldsFuncSeq(said, func(r rune) bool { return r == '\n' || r == '\r' }) {
				if strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") || strings.Contains(line, "##[") {
					t.Errorf("%q prints a command: %s", c.line, line)
				}
			}
			if c.line[len(c.line)-1] == "json" {
				var all any
				if err := json.Unmarshal(out.Bytes(), &all); err != nil || !strings.Contains(fmt.Sprint(all), masked) {
					t.Errorf("%q: %v, without %s: %s", c.line, err, masked, out.String())
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("the names were shown %d times", shown)
	}
}
