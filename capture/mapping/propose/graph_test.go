package propose_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// graph is the dump of a port as a graph of nodes has it: what is computed stands there once more in another shape, and rotations are part of a fused attention.
func graph(t *testing.T, dump *capture.Trace, list *order.List) *capture.Trace {
	t.Helper()
	size := list.Config.HeadDim
	var all []capture.Source
	for _, s := range dump.Sources() {
		n, _ := hooks.Elements(s.Shape)
		again := func(name string, shape ...int) {
			c := s
			c.Key, c.Name, c.Shape = name, name, shape
			all = append(all, c)
		}
		front, last := "", s.Name
		if i := strings.Index(s.Name, ".attn."); i >= 0 {
			front, last = s.Name[:i+len(".attn.")], s.Name[i+len(".attn."):]
		}
		switch last {
		case "q", "k", "v":
			all = append(all, s)
			if last != "v" {
				again(front+last+"n.flat", n/size, size)
			}
		case "qn", "kn":
			again(s.Name+".norm", n/size, size)
			again(s.Name, s.Shape[0], n/s.Shape[0])
		case "q_rot", "k_rot":
		case "out":
			all = append(all, s)
			again(strings.TrimSuffix(front, "."), s.Shape...)
		default:
			all = append(all, s)
		}
	}
	return mappingtest.Assembled(t, all...)
}

// A graph has tensors twice. The second is no entry of its own, and that it equals the first proves nothing of either, also where no number is near the reference's.
func TestCopiesInAGraph(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	right := map[string]string{"blocks.{L}.attn.qn.flat": "self_attn.q_proj", "blocks.{L}.attn.kn.flat": "self_attn.k_proj", "blocks.{L}.attn.qn.norm": "self_attn.q_norm", "blocks.{L}.attn.kn.norm": "self_attn.k_norm"}
	for _, names := range ownNames {
		right[names[0]] = strings.TrimPrefix(names[1], "layers.{L}.")
	}
	coded := func(x []float64, _ func(string) []float64) { // as far off as by weights of four bits
		for i := range x {
			x[i] *= 1 + 0.3*math.Sin(float64(7*i))
		}
	}
	for _, spoilt := range []string{"", "layers.{L}.self_attn.?_proj"} {
		t.Run(spoilt, func(t *testing.T) {
			dump, weights := wrongPort(t, "gemma3-tiny", trace, list, spoilt, coded)
			dump = graph(t, dump, list)
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			has := map[string]bool{}
			for _, l := range p.Lines {
				to := strings.TrimPrefix(strings.Join(l.To, " "), "layers.{L}.")
				if has[to] = true; to != right[l.From] {
					t.Errorf("%s is %s, want %s: %s", l.From, to, right[l.From], l.Why)
				}
				if strings.HasSuffix(l.From, ".norm") && !strings.HasPrefix(l.Axes, "(t h") && !strings.HasPrefix(l.Axes, "(t k") {
					t.Errorf("%s has the axes %s: heads stand behind tokens, whose number is another in each pass", l.From, l.Axes)
				}
			}
			for _, to := range []string{"q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "context", "o_proj"} {
				if !has["self_attn."+to] {
					t.Errorf("nothing is %s", to)
				}
			}
			if p.Open() > 0 {
				t.Errorf("%d are left open: %v %v", p.Open(), p.Left, p.Choices)
			}
			of := map[string]string{}
			for _, c := range p.Copies {
				of[c.From] = strings.Join(c.Of, " ")
			}
			if of["blocks.{L}.attn"] != "blocks.{L}.attn.out" || len(of) != 5 {
				t.Errorf("copies: %v", of)
			}
			var b strings.Builder
			if err := p.Write(&b, "port", "ref"); err != nil {
				t.Fatal(err)
			}
			if want := "\n\"blocks.{L}.attn\" = { to = [] } # the same numbers as blocks.{L}.attn.out\n"; !strings.Contains(b.String(), want) {
				t.Errorf("no %q:\n%s", want, b.String())
			}
		})
	}
}

// What a port leaves out is a copy of what it hands on. It is called like the entry that is left out.
func TestACopyByItsName(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, weights := wrongPort(t, "gemma3-tiny", trace, list, "layers.{L}.self_attn.k_rope", func(x []float64, of func(string) []float64) {
		copy(x, of("layers.{L}.self_attn.k_norm"))
	})
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Lines, func(l propose.Line) bool {
		return l.From == "blocks.{L}.attn.k_rot" && l.To[0] == "layers.{L}.self_attn.k_rope"
	}) {
		t.Errorf("k_rot: %v, copies %v, left %v", p.Lines, p.Copies, p.Left)
	}
}

// The cached keys are those of this pass in the first pass alone.
func TestComputedKeysOfAllPasses(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/decode.float32")
	var all []capture.Source
	for _, s := range trace.Sources() {
		switch name := s.Name; {
		case name == order.InputIDs, name == order.PositionIDs, strings.HasSuffix(name, ".k_norm"):
			all = append(all, s)
		case strings.HasSuffix(name, ".self_attn.keys"):
			s.Name = strings.Replace(strings.Replace(name, "layers.", "cached.", 1), ".self_attn.keys", "", 1)
			s.Key = capture.Key(s.Pass, s.Name, 0)
			all = append(all, s)
		}
	}
	dump := mappingtest.Assembled(t, all...)
	p, err := propose.Map(t.Context(), dump, dump, list, nil, propose.Options{Weights: weightsOf(t, "gemma3-tiny")})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, l := range p.Lines {
		lines[l.From] = fmt.Sprint(l.To, l.By)
	}
	if want := map[string]string{"cached.{L}": "[layers.{L}.self_attn.keys]"}; !maps.Equal(lines, want) {
		t.Errorf("lines %v, want %v; choices %v, left %v", lines, want, p.Choices, p.Left)
	}
}

// A tensor that is no entry is nothing to decide where what the dump computes from each entry without a tensor is right. Behind a mistake it may be the entry that is wrong.
func TestTensorsThatAreNoEntries(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for spoilt, open := range map[string]int{"": 0, "layers.{L}.self_attn.context": 1} {
		dump, weights := wrongPort(t, "gemma3-tiny", trace, list, spoilt, func(x []float64, _ func(string) []float64) { slices.Reverse(x) })
		var all []capture.Source
		for _, s := range dump.Sources() {
			if !strings.HasSuffix(s.Name, ".mix") { // nobody dumped the context
				all = append(all, s)
			}
		}
		all = append(all, mappingtest.Counted("mean", 0, 1, 7, 5))
		dump = mappingtest.Assembled(t, all...)
		p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		if p.Open() != open || len(p.Left) != open || len(p.Others) != 1-open {
			t.Errorf("%s: left %v, others %v, choices %v", spoilt, p.Left, p.Others, p.Choices)
		}
	}
}

// To a trace with a manifest nothing adds the batch axis: the line does.
func TestABatchAxisThatATraceLacks(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, weights := wrongPort(t, "gemma3-tiny", trace, list, "", nil)
	for _, status := range []capture.Status{"", capture.StatusComplete} {
		dump, err := capture.Assemble("dump", dump.Sources(), capture.Manifest{Status: status}, true, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Lines {
			if (l.Axes != "") != (status != "") {
				t.Errorf("status %q: %s = %s, axes %q", status, l.From, l.To, l.Axes)
			}
		}
		if len(p.Lines) != len(ownNames) {
			t.Errorf("status %q: %d lines, left %v", status, len(p.Lines), p.Left)
		}
	}
}

// Where no value is in reach, and nothing is computed, the names decide. Each line says so.
func TestNamesAlone(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, _ := wrongPort(t, "gemma3-tiny", trace, list, "layers.{L}.self_attn.?_proj", func(x []float64, _ func(string) []float64) {
		for i := range x {
			x[i] *= 1 + 0.3*math.Sin(float64(7*i))
		}
	})
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]string{}
	for _, names := range ownNames {
		right[names[0]] = names[1]
	}
	for _, l := range p.Lines {
		if value := strings.HasPrefix(l.Why, "values: "); l.To[0] != right[l.From] || value == (l.By == "guess") {
			t.Errorf("%s is %s by %q, want %s: %s", l.From, l.To, l.By, right[l.From], l.Why)
		}
	}
	if len(p.Lines) != len(ownNames) || p.Open() > 0 {
		t.Errorf("%d lines, %d open", len(p.Lines), p.Open())
	}
}

// A copy is the same in all layers, whatever the order of the dump is, and to its last byte. A dump that needs no map needs none for its copies.
func TestWhatIsACopy(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3n-tiny/control.float32")
	var all, more []capture.Source
	for _, s := range trace.Sources() {
		all = append(all, s)
		if of, ok := strings.CutSuffix(s.Name, ".mlp.down_proj"); ok {
			s.Key, s.Name = of+".mlp.seen", of+".mlp.seen"
			more = append([]capture.Source{s}, more...)
		}
	}
	r, data := mappingtest.Raw(t, trace, 0, "logits") // of more than one chunk
	for name, differ := range map[string]byte{"head": 0, "other_head": 1} {
		data := slices.Clone(data)
		data[len(data)-4] ^= differ
		more = append(more, capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
	}
	dump := mappingtest.Assembled(t, append(all, more...)...)
	p, text := proposed(t, dump, list, trace)
	of := map[string]string{}
	for _, c := range p.Copies {
		of[c.From] = strings.Join(c.Of, " ")
	}
	if want := map[string]string{"layers.{L}.mlp.seen": "layers.{L}.mlp.down_proj", "head": "logits"}; !maps.Equal(of, want) || len(p.Lines) > 0 {
		t.Errorf("copies %v, want %v; %d lines\n%s", of, want, len(p.Lines), text)
	}
	dump = mappingtest.Assembled(t, append(all, more[0])...)
	p, text = proposed(t, dump, list, trace)
	if !p.Needless() || !strings.HasSuffix(text, "\n[tensors]\n# Copies without a line: 1. They are equal to tensors that have an entry, and are not compared.\n") {
		t.Error(text)
	}
}
