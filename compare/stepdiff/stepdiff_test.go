package stepdiff_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/stepdiff"
	"github.com/tracediff/tracediff/order/recorded"
)

var update = flag.Bool("update", false, "write the golden file")

const programs = "../../fixtures/programs/"

func read(t *testing.T, path string) *recorded.Program {
	t.Helper()
	f, err := os.Open(programs + path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := recorded.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return p
}

// mistakes are those of fixtures/port_programs.py, with the tensors whose steps they change, and no others.
var mistakes = []struct{ name, at string }{
	{"epsilon", "layers.*.input_layernorm layers.*.self_attn.q_norm layers.*.self_attn.k_norm layers.*.post_attention_layernorm norm"},
	{"gain-plus-one", "layers.*.input_layernorm layers.*.self_attn.q_norm layers.*.self_attn.k_norm layers.*.post_attention_layernorm norm"},
	{"rope-sign", "layers.*.self_attn.q_rope layers.*.self_attn.k_rope"},
	{"position-plus-one", "rotary.cos rotary.sin"},
	{"scale-missing", "layers.*.self_attn.scores"},
	{"softmax-in-bfloat16", "layers.*.self_attn.probs_f32 layers.*.self_attn.probs layers.*.self_attn.context"},
	{"mask-without-itself", "mask.full"},
	{"gelu", "layers.*.mlp.act_fn"},
	{"gate-and-up-swapped", "layers.*.mlp.act_fn layers.*.mlp.gated"},
	{"residual-of-the-norm", "layers.0.attn_residual layers.*.attn_residual"},
}

// A port in PyTorch that computes what transformers does has the same steps, and each of ten mistakes is shown at the tensors
// that it changes, and at no others.
func TestMistakesOfAPortAreSteps(t *testing.T) {
	reference := read(t, "port/reference.program.json")
	r := stepdiff.New(reference, read(t, "port/healthy.program.json")).All()
	if !r.Same() || r.Compared < 80 {
		t.Errorf("the healthy port: %+v", r)
	}
	var text strings.Builder
	for _, m := range mistakes {
		r := stepdiff.New(reference, read(t, "port/"+m.name+".program.json")).All()
		fmt.Fprintf(&text, "== %s\n", m.name)
		var at []string
		for _, g := range r.Groups {
			at = append(at, g.Name)
			fmt.Fprintf(&text, "%s\n  A at %s\n  B at %s\n", strings.Join(g.Where, " "), g.Source[0], g.Source[1])
			for _, step := range g.Steps {
				fmt.Fprintf(&text, "  %s\n", step)
			}
		}
		if got := strings.Join(at, " "); got != m.at || r.Same() || r.Differ == 0 {
			t.Errorf("%s: differs at %s, want %s", m.name, got, m.at)
		}
	}
	golden := filepath.Join("testdata", "port.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("other steps than in %s: look at them, and write them with -update\n%s", golden, text.String())
	}
}

// A program is the same as itself in every step, and another model's is not.
func TestProgramsAreThemselves(t *testing.T) {
	for _, name := range []string{"llama-tiny.bfloat16", "qwen3-tiny.float32", "gemma-tiny.float32"} {
		p := read(t, name+".program.json")
		if r := stepdiff.New(p, read(t, name+".program.json")).All(); !r.Same() || r.Compared < 150 {
			t.Errorf("%s: %d of %d differ", name, r.Differ, r.Compared)
		}
		if r := stepdiff.New(p, read(t, "port/reference.program.json")).All(); r.Same() {
			t.Errorf("%s is the same as a program of another model", name)
		}
	}
}

// Whatever a step has is compared: its operation, its settings, its numbers, its operands, which elements they show, its dtype.
func TestEveryPartOfAStepCounts(t *testing.T) {
	data, err := os.ReadFile(programs + "qwen3-tiny.bfloat16.program.json")
	if err != nil {
		t.Fatal(err)
	}
	original := read(t, "qwen3-tiny.bfloat16.program.json")
	for _, c := range []struct{ old, new, at string }{
		{`{"op":"silu","in"`, `{"op":"gelu","in"`, "mlp.act_fn"},
		{`"op":"mean","in":["t1"],"out":[["float32",[1,10,1]]],"attr":{"dim":[-1]`, `"op":"mean","in":["t1"],"out":[["float32",[1,10,1]]],"attr":{"correction":1,"dim":[-1]`, "input_layernorm"},
		{`"in":["t2",1e-06]`, `"in":["t2",1.0000001e-06]`, "input_layernorm"},
		{`"in":["t0","t4"]`, `"in":["t4","t0"]`, "input_layernorm"},
		{`w:model.layers.{layer}.mlp.up_proj.weight`, `w:model.layers.{layer}.mlp.gate_proj.weight`, "mlp.up_proj"},
		{`{"op":"rsqrt","in":["t3"],"out":[["float32"`, `{"op":"rsqrt","in":["t3"],"out":[["float64"`, "input_layernorm"},
	} {
		if n := strings.Count(string(data), c.old); n == 0 {
			t.Errorf("the program has no %s", c.old)
			continue
		}
		changed, err := recorded.Read(strings.NewReader(strings.Replace(string(data), c.old, c.new, 1)))
		if err != nil {
			t.Errorf("%s: %v", c.new, err)
			continue
		}
		r := stepdiff.New(original, changed).All()
		if r.Same() || len(r.Groups) == 0 || !strings.HasSuffix(r.Groups[0].Name, c.at) || len(r.Groups[0].Steps) == 0 {
			t.Errorf("%s: %+v", c.new, r.Groups)
			continue
		}
		if !strings.Contains(strings.Join(r.Groups[0].Steps, "\n"), "\n+ ") && r.Groups[0].Steps[0][0] == ' ' {
			t.Errorf("%s: the diff shows nothing: %q", c.new, r.Groups[0].Steps)
		}
	}
}

// Elements of a tensor count and not where they lie in memory; another half of the same tensor is another operand.
func TestElementsOfViewsCount(t *testing.T) {
	const head = `{"format":"tracediff program","version":1,"dtype":"float32","weights":{},"lines":[],"constants":[{"dtype":"int64","shape":[1,2],"from":[{"kind":"ids"}],"sha256":""}],
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,[]]]}],"templates":[[{"name":"input_ids","of":"c0","level":1},{"op":"embedding","in":["c0","c0"],"out":[["float32",[1,2,4]%s]]},{"name":"x","of":%s,"level":1},`
	program := func(stride, x, operand string) *recorded.Program {
		p, err := recorded.Read(strings.NewReader(fmt.Sprintf(head, stride, x) + `{"op":"neg","in":[` + operand + `],"out":[["float32",[1,2,2]]]},{"name":"y","of":"t1","level":1}]]}`))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := program("", `"t0"`, `["t0",[1,2,2],[8,4,1],0]`)
	for _, c := range []struct {
		why  string
		p    *recorded.Program
		same bool
	}{
		{"the same elements of a tensor that lies the other way round", program(`,[8,1,2]`, `"t0"`, `["t0",[1,2,2],[8,1,2],0]`), true},
		{"an axis of one element more", program("", `"t0"`, `["t0",[1,2,1,2],[8,4,4,1],0]`), true},
		{"the other half", program("", `"t0"`, `["t0",[1,2,2],[8,4,1],2]`), false},
		{"transposed", program("", `"t0"`, `["t0",[1,2,2],[8,1,4],0]`), false},
		{"every other element", program("", `"t0"`, `["t0",[1,2,2],[8,4,2],0]`), false},
	} {
		if r := stepdiff.New(first, c.p).All(); r.Same() != c.same {
			t.Errorf("%s: %+v", c.why, r)
		}
	}
}

// Two programs that have nothing in common, or nothing at all, are not the same.
func TestNothingComparedIsNotTheSame(t *testing.T) {
	empty := &recorded.Program{}
	if r := stepdiff.New(empty, empty).All(); r.Same() || r.Compared != 0 {
		t.Errorf("nothing was compared: %+v", r)
	}
}

// A slice begins where a tensor was captured: of one that was not, the steps belong to it.
func TestASliceBeginsAtWhatWasCaptured(t *testing.T) {
	p := stepdiff.New(read(t, "port/reference.program.json"), read(t, "port/epsilon.program.json"))
	const behind = "layers.0.self_attn.q_proj" // what the norm before it leads to
	all := func(string, int) bool { return true }
	if d := p.Entry(behind, 0, all); d != nil {
		t.Errorf("the norm was captured, and %s differs by %q", behind, d.Steps)
	}
	notTheNorm := func(name string, _ int) bool { return name != "layers.0.input_layernorm" }
	d := p.Entry(behind, 0, notTheNorm)
	if d == nil || !strings.Contains(strings.Join(d.Steps, "\n"), "+") {
		t.Errorf("the norm was not captured, and %s differs by %+v", behind, d)
	}
}
