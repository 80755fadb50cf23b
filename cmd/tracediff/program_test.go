package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// undescribed writes a trace as one of a model that no order describes: without its configuration. Beside it lies the program,
// with the digest that the trace says.
func undescribed(t *testing.T, from, program, to string) {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if err := os.WriteFile(to+".program.json", data, 0o644); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	m := trace.Manifest()
	m.Config, m.Program = nil, "sha256:"+hex.EncodeToString(sum[:])
	w, err := capture.Create(to+".safetensors", m, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range trace.Records() {
		x, err := trace.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Observe(hooks.Event{Pass: r.Pass, Name: r.Name, Tensor: x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// told runs the command and returns what it prints.
func told(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(append([]string{"tracediff"}, args...), strings.NewReader(""), &out, &errs); code != want {
		t.Fatalf("%v: exit status %d, want %d\n%s%s", args, code, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// A model that no order describes is compared and isolated by the program that lies beside the reference: the healthy run
// passes, and the first wrong operation is found, by name and with what is wrong on its own inputs.
func TestModelsByTheirProgram(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const fixtures = "../../fixtures/"
	model, program := at("model"), fixtures+"programs/llama-tiny.bfloat16.program.json"
	if err := os.CopyFS(model, os.DirFS(fixtures+"llama-tiny")); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte(`"model_type": "llama"`), []byte(`"model_type": "nameless"`), 1)
	if err := os.WriteFile(filepath.Join(model, "config.json"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	undescribed(t, fixtures+"bench/healthy-llama-tiny-10+2.bfloat16.transformers.safetensors", program, at("ref"))
	undescribed(t, fixtures+"bench/silu-is-relu.bfloat16.transformers.safetensors", program, at("wrong"))
	if err := os.Remove(at("wrong.program.json")); err != nil {
		t.Fatal(err)
	}

	report := told(t, 0, "compare", "--model", model, "--dir", at("traces"), at("ref.safetensors"), at("ref.safetensors"))
	if !strings.Contains(report, "operations: 234 recomputed on your port's inputs: 224 EXACT, 10 ROUNDING") {
		t.Errorf("a healthy run:\n%s", report)
	}
	report = told(t, 1, "compare", "--model", model, "--dir", at("traces"), at("wrong.safetensors"), at("ref.safetensors"))
	for _, want := range []string{"first divergence: layers.0.mlp.act_fn", "silu", "BUG", "computed from layers.0.mlp.gate_proj MATCH", "reaches logits"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "not compared  layers.") { // steps without names are not for people
		t.Errorf("the report speaks of what nobody captures:\n%s", report)
	}
	report = told(t, 1, "compare", "--isolate", "--model", model, "--program", at("ref.program.json"), "--dir", at("traces"), at("wrong.safetensors"))
	if !strings.Contains(report, "layers.0.mlp.act_fn") || !strings.Contains(report, "3 BUG") {
		t.Errorf("isolated:\n%s", report)
	}

	list := told(t, 0, "order", "--program", program, "--layers", "0")
	if !strings.Contains(list, "layers.0.mlp.act_fn") || !strings.Contains(list, "modeling_llama.py") || strings.Contains(list, ":rsqrt") {
		t.Errorf("the order of a program:\n%s", list)
	}
	if list = told(t, 0, "order", "--program", program, "--layers", "0", "--steps"); !strings.Contains(list, "layers.0.input_layernorm:rsqrt") {
		t.Errorf("with its steps:\n%s", list)
	}
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A program that cannot be used is an error of two lines: what is wrong, and what to do.
func TestProgramsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const fixtures = "../../fixtures/"
	program := fixtures + "programs/llama-tiny.bfloat16.program.json"
	healthy := fixtures + "bench/healthy-llama-tiny-10+2.bfloat16.transformers.safetensors"
	undescribed(t, healthy, program, at("ref"))
	other := fixtures + "golden/llama-tiny/decode.bfloat16.safetensors"
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("forward.program.json"), bytes.Replace(data, []byte(`"in":["t0",2]`), []byte(`"in":["t99",2]`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("ref.program.json"), append(data, ' '), 0o644); err != nil {
		t.Fatal(err)
	}
	// A mask that no recipe makes again, as one that depends on which token stands where.
	mask := regexp.MustCompile(`"from":\[\{"kind":"mask"[^\]]*\],`)
	prompt := mask.ReplaceAllFunc(data, func(from []byte) []byte {
		return slices.Concat(from, []byte(`"depends":["input_ids"],`))
	})
	if err := os.WriteFile(at("prompt.program.json"), prompt, 0o644); err != nil || bytes.Equal(prompt, data) {
		t.Fatal("no mask: ", err)
	}
	if err := os.WriteFile(at("prompt.safetensors"), readAll(t, fixtures+"bench/rope-sign+rope-query-position.bfloat16.double-inside.safetensors"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", "--program", at("prompt.program.json"), healthy, other}, "other token ids than the run that recorded"},
		{[]string{"compare", at("ref.safetensors"), at("ref.safetensors")}, "is not the program that"},
		{[]string{"compare", "--program", at("forward.program.json"), healthy, healthy}, `"t99" is not a step before this one`},
		{[]string{"compare", "--program", program, other, other}, "has 5 tokens, and"},
		{[]string{"compare", "--program", at("none.json"), healthy, healthy}, "reading the program"},
		{[]string{"compare", "--program", program, "--tokens", "2,3", "--dir", at("d")}, "pass 0 has 2 tokens, and"},
		{[]string{"order", "--program", program, "--model", fixtures + "llama-tiny"}, "--model does not apply with --program"},
	} {
		text := strings.TrimSpace(told(t, 2, c.args...))
		if lines := strings.Split(text, "\n"); !strings.Contains(text, c.want) || len(lines) != 2 {
			t.Errorf("%v: want two lines with %q:\n%s", c.args, c.want, text)
		}
	}
}

// Where both sides were recorded, the block of the first divergence shows the lines of source and the steps that differ, in every
// format; diff-program shows the same without the traces.
func TestStepsOfBothSides(t *testing.T) {
	const port = "../../fixtures/programs/port/"
	compare := []string{"compare", "--model", "../../fixtures/qwen3-tiny", "--dir", t.TempDir(), port + "scale-missing.safetensors", port + "reference.safetensors"}
	want := []string{"first divergence: layers.0.self_attn.scores", "reference transformers/models/qwen3/modeling_qwen3.py:", "local port_programs.py:", "- * 0.28867513459481287"}
	page := filepath.Join(t.TempDir(), "report.html")
	text := told(t, 1, append(compare, "--report", "html="+page)...)
	full := told(t, 1, append(compare, "--verbose")...)
	for _, word := range want {
		if !strings.Contains(text, word) || !strings.Contains(full, strings.TrimPrefix(word, "first divergence: ")) {
			t.Errorf("the report does not say %q:\n%s\n%s", word, text, full)
		}
		if html := string(readAll(t, page)); !strings.Contains(html, strings.TrimPrefix(word, "first divergence: ")) {
			t.Errorf("the page does not say %q", word)
		}
	}
	said := told(t, 1, append(compare, "--format", "json")...)
	for _, word := range []string{`"compared": true`, `"- * 0.28867513459481287"`, `"local": "port_programs.py:`} {
		if !strings.Contains(said, word) {
			t.Errorf("the JSON report does not say %s", word)
		}
	}
	compare[5] = port + "healthy.safetensors"
	if text = told(t, 0, compare...); strings.Contains(text, "MISSING") || !strings.Contains(text, "MATCH: all") {
		t.Errorf("the healthy port, which takes no positions:\n%s", text)
	}

	said = told(t, 1, "diff-program", port+"reference.program.json", port+"scale-missing.safetensors")
	if !strings.Contains(said, "  - * 0.28867513459481287\n") || !strings.Contains(said, "\n3 of 85 named tensors are computed differently\n") || strings.Count(said, "A at ") != 1 {
		t.Errorf("the programs:\n%s", said)
	}
	if again := told(t, 1, "diff-program", port+"reference.program.json", port+"scale-missing.safetensors"); again != said {
		t.Error("the output is another one the second time")
	}
	told(t, 0, "diff-program", port+"reference.program.json", port+"healthy.program.json")
	if said = told(t, 1, "diff-program", "--format", "json", port+"reference.program.json", port+"gelu.program.json"); !strings.Contains(said, `"name":"layers.*.mlp.act_fn"`) {
		t.Errorf("as JSON: %s", said)
	}
	for _, args := range [][]string{{port + "reference.program.json"}, {port + "reference.program.json", "../../fixtures/programs/qwen3-tiny.bfloat16.program.json"}, {port + "none.program.json", port + "gelu.program.json"}} {
		if lines := strings.Split(strings.TrimSpace(told(t, 2, append([]string{"diff-program"}, args...)...)), "\n"); len(lines) != 2 {
			t.Errorf("%v: want two lines: %q", args, lines)
		}
	}
}

// A port has names of its own: a map gives its program's tensors those of the reference, as it does its trace's, and what it lacks is
// not compared.
func TestStepsOfAPortWithItsOwnNames(t *testing.T) {
	const port = "../../fixtures/programs/port/"
	folder := t.TempDir()
	own := func(name string) string { return strings.Replace(name, "layers.", "blocks.", 1) }
	lines := map[string]bool{}
	write := func(from string) string {
		to := filepath.Join(folder, from)
		data := bytes.ReplaceAll(readAll(t, port+from+".program.json"), []byte(`{"name":"layers.`), []byte(`{"name":"blocks.`))
		if err := os.WriteFile(to+".program.json", data, 0o644); err != nil {
			t.Fatal(err)
		}
		trace, err := capture.Open(port + from + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		defer trace.Close()
		m := trace.Manifest()
		sum := sha256.Sum256(data)
		m.Config, m.Program, m.Entries = nil, "sha256:"+hex.EncodeToString(sum[:]), nil
		m.Producer.Name, m.Scope = "torch", capture.Scope{Level: 3}
		w, err := capture.Create(to+".safetensors", m, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range trace.Records() {
			if strings.HasSuffix(r.Name, ".mlp.act_fn") { // which a function computes there
				continue
			}
			x, err := trace.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Observe(hooks.Event{Pass: r.Pass, Name: own(r.Name), Tensor: x}); err != nil {
				t.Fatal(err)
			}
			if own(r.Name) != r.Name {
				lines[fmt.Sprintf("%q = %q\n", own(r.Name), r.Name)] = true
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return to
	}
	healthy, wrong := write("healthy"), write("scale-missing")
	names := filepath.Join(folder, "map.toml")
	if err := os.WriteFile(names, []byte("[tensors]\n"+strings.Join(slices.Sorted(maps.Keys(lines)), "")), 0o644); err != nil {
		t.Fatal(err)
	}
	args := func(local string) []string {
		return []string{"compare", "--model", "../../fixtures/qwen3-tiny", "--dir", folder, "--map", names, local + ".safetensors", port + "reference.safetensors"}
	}
	if text := told(t, 0, args(healthy)...); strings.Contains(text, "MISSING") || !strings.Contains(text, "MATCH: all") || !strings.Contains(text, "not compared") {
		t.Errorf("the healthy port:\n%s", text)
	}
	if text := told(t, 1, args(wrong)...); !strings.Contains(text, "- * 0.28867513459481287") || !strings.Contains(text, "local port_programs.py:") {
		t.Errorf("the steps are not shown:\n%s", text)
	}
	if said := told(t, 1, "diff-program", "--map", names, port+"reference.program.json", wrong+".safetensors"); !strings.Contains(said, "\n3 of 82 named tensors are computed differently\n") {
		t.Errorf("the programs:\n%s", said)
	}
	// Without a map nothing is said of tensors that the other one does not have.
	if said := told(t, 1, "diff-program", port+"reference.program.json", wrong+".safetensors"); !strings.Contains(said, "only in B: blocks.0") {
		t.Errorf("the programs:\n%s", said)
	}
}
