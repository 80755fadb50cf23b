package main

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// evil is text that would take over a terminal: it clears the screen, sets the title, and says another verdict.
const evil = "\x1b[2J\x1b]0;t\a\u009b1A\rMATCH\x7f\u202e"

// Names, prompts and models of hostile files, the names of the files, and what a port prints reach no terminal as they are.
func TestHostileTextIsQuoted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such names here")
	}
	t.Setenv("CI", "")
	golden, _, ck, _ := goldenFile(t, "gemma3n-tiny", "hello.float32")
	ck.Close()
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll(".tracediff", 0o777))
	manifest := func(m *capture.Manifest) {
		m.Producer = capture.Producer{Name: "port" + evil, Version: evil}
		m.Model, m.Device, m.Entries = "model"+evil, "cpu"+evil, append(m.Entries, "more"+evil)
	}
	spoilt := "spoilt" + evil + ".safetensors"
	first := true
	must(t, os.Rename(edited(t, golden, func(m *capture.Manifest) { manifest(m) }, func(e *hooks.Event) {
		if e.Name == "logits" || e.Name == "layers.2.mlp.act_fn" {
			x := numbersOf(t, e.Tensor)
			x[0] += 50
			e.Tensor = tensorOf(e.Tensor.DType, e.Tensor.Shape, x)
		}
		if first {
			first = false
		} else if e.Name == "rotary.sliding.cos" {
			e.Name = "unknown" + evil
		}
	}), spoilt))
	must(t, os.Symlink(golden, "golden.safetensors"))
	must(t, os.WriteFile("order"+evil, []byte("logits\nunknown"+evil+"\n"), 0o666))
	must(t, os.WriteFile("tracediff.toml", []byte("dtype = \"float32\"\nlocal = \"exec:printf '\\\\033[2Jsaid\\\\033]0;t\\\\007\\\\302\\\\2331A\\\\nhalf\\\\033' >&2; cp 'golden.safetensors' {out}\"\n"+
		"[[prompt]]\nname = \"hello\\u001B[2J\"\ntext = \"Hello world\"\n[[prompt]]\nname = \"b\"\ntext = \"evil\\u001B[2J\\u0007\"\n"), 0o666))
	said, quoted := 0, 0
	for _, args := range [][]string{
		{"compare", spoilt, "golden.safetensors"},
		{"compare", spoilt, "golden.safetensors", "--verbose", "--all", "--layers", "2"},
		{"compare", spoilt, "golden.safetensors", "--table", "--no-isolate"},
		{"compare", "golden.safetensors", spoilt, "--ab", "--verbose"},
		{"compare", "--isolate", spoilt, "--verbose", "--layers", "0"},
		{"compare", "golden.safetensors", "golden.safetensors", "--order", "order" + evil, "--verbose", "--no-isolate"},
		{"compare", "golden.safetensors", "golden.safetensors", "--report", "json=" + evil + ".json", "--report", "github=" + evil + ".md", "--no-isolate"},
		{"accept", evil + ".json", "--reason", evil, "--until", "2099-01-31"},
		{"compare", "absent" + evil, "golden.safetensors"},
		{"compare", spoilt, "golden.safetensors", "--all", "--report", "json=bad.json", "-q", "--no-isolate"},
		{"accept", "bad.json", "--reason", evil, "--until", "2099-01-31", "--baseline", "baseline" + evil},
		{"compare", spoilt, "golden.safetensors", "--baseline", "baseline" + evil, "--no-isolate"},
		{"check", spoilt},
		{"inspect", spoilt},
		{"inspect", spoilt, "golden.safetensors"},
		{"inspect", spoilt, "--tensor", "unknown" + evil},
		{"map", spoilt},
		{"map", spoilt, "golden.safetensors"},
		{"order", "--order", "order" + evil, "--format", "table"},
		{"order", "--order", "order" + evil, "--format", "text"},
		{"gate", "--verbose"},
		{"compare", "--prompt", "Hello world", "--dtype", "float32", "--layers", "0", "--local", "exec:printf '\\033[2Jsaid\\033]0;t\\007' >&2; cp golden.safetensors {out}"},
		{"compare", "--prompt", "Hello world", "--dtype", "float32", "--layers", "0", "--local", "exec:printf '\\033[2Jsaid\\033]0;t\\007'; exit 3", "-q"},
		{"capture", "--prompt", "Hello world" + evil, "--dtype", "float32"},
		{"capture", "--tokens", evil},
		{"capture", "--model", "absent" + evil},
		{"doctor", "--model", "absent" + evil},
		{"doctor", "--local", "exec:port" + evil + " {out}"},
		{"compare", "--" + evil},
		{evil},
	} {
		var out, errOut bytes.Buffer
		run(append([]string{"tracediff"}, args...), strings.NewReader(""), &out, &errOut)
		for _, text := range []string{out.String(), errOut.String()} {
			said += len(text)
			quoted += strings.Count(text, `| \x1b[2Jsaid\x1b]0;t\a`)
			if at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }); at >= 0 {
				t.Errorf("%q prints %q", args, text[max(at-60, 0):min(at+60, len(text))])
			}
		}
	}
	if said < 10_000 || quoted < 2 {
		t.Errorf("%d bytes were said, %d times what a port prints", said, quoted)
	}
	if _, err := os.Stat("baseline" + evil); errors.Is(err, os.ErrNotExist) {
		t.Error("no baseline was written")
	}
}
