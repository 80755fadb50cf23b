package capture_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

func TestParseRanges(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " ": "", "3": "3", "0-3,7": "0-3,7", " 0 - 3": "error", "5-": "5-", "2-2": "2", "1, 4": "1,4",
		"-3": "error", "3-1": "error", "a": "error", "1,,2": "error", "1-2-3": "error", "99999999999": "error",
	} {
		rs, err := capture.ParseRanges(text)
		if got := rs.String(); err != nil && want != "error" || err == nil && got != want {
			t.Errorf("ParseRanges(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// What a set of ranges prints reads back as the same set, also within JSON.
func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rs capture.Ranges
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			from := rapid.IntRange(0, 50).Draw(t, "from")
			to := rapid.SampledFrom([]int{from, from + 3, capture.NoEnd}).Draw(t, "to")
			rs = append(rs, capture.Range{From: from, To: to})
		}
		data, err := json.Marshal(capture.Scope{Level: 1, Layers: rs})
		if err != nil {
			t.Fatal(err)
		}
		var back capture.Scope
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		for n := range 70 {
			in := len(rs) == 0
			for _, r := range rs {
				in = in || r.From <= n && n <= r.To
			}
			if rs.Has(n) != in || back.Layers.Has(n) != in {
				t.Fatalf("%s has %d: %v, read back %v, want %v", rs, n, rs.Has(n), back.Layers.Has(n), in)
			}
		}
	})
}

// tinyList is the order of the embedded tiny checkpoint.
func tinyList(t *testing.T) *order.List {
	t.Helper()
	data, err := os.ReadFile("../order/testdata/gemma3n-tiny.config.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	l, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func parse(t *testing.T, text string) capture.Ranges {
	t.Helper()
	rs, err := capture.ParseRanges(text)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func TestSelect(t *testing.T) {
	l := tinyList(t)
	for _, c := range []struct {
		name       string
		scope      capture.Scope
		n          int
		has, lacks []string
	}{
		{"everything", capture.Scope{Level: 3}, 422, []string{"logits", "layers.6.self_attn.keys"}, nil},
		{"level 1", capture.Scope{Level: 1}, 63, []string{"input_ids", "logits", "layers.0.out"}, []string{"position_ids"}},
		{
			"layers keep what comes before them",
			capture.Scope{Level: 2, Layers: parse(t, "0,2-3")},
			0,
			[]string{"input_ids", "per_layer_inputs", "layers.0.out", "layers.3.out"},
			[]string{"layers.1.out", "layers.4.in", "norm", "logits"},
		},
		{"patterns keep the ids", capture.Scope{Level: 3, Tensors: []string{"*.mlp.down_proj", "norm"}}, 9, []string{"input_ids", "norm"}, []string{"logits"}},
	} {
		var names []string
		for _, e := range c.scope.Select(l) {
			names = append(names, e.Name)
		}
		if c.n > 0 && len(names) != c.n {
			t.Errorf("%s: %d entries, want %d", c.name, len(names), c.n)
		}
		for _, n := range c.has {
			if !slices.Contains(names, n) {
				t.Errorf("%s: %s is not selected", c.name, n)
			}
		}
		for _, n := range c.lacks {
			if slices.Contains(names, n) {
				t.Errorf("%s: %s is selected", c.name, n)
			}
		}
		if !slices.IsSortedFunc(names, func(a, b string) int { return l.Index(a) - l.Index(b) }) {
			t.Errorf("%s: not in order", c.name)
		}
	}
}

// A recording keeps the rows and passes in scope, and nothing of what is out of it; token ids stay whole.
func TestAttachKeepsPassesAndPositions(t *testing.T) {
	list := tinyList(t)
	scope := capture.Scope{Level: 3, Tensors: []string{"norm", "layers.0.self_attn.probs"}, Passes: parse(t, "0,2"), Positions: parse(t, "1,3-4,6-")}
	passes := []int{3, 2, 2}
	path := filepath.Join(t.TempDir(), "t.safetensors")
	w, err := capture.Create(path, capture.Manifest{Scope: scope}, capture.Reserve(list, scope, passes))
	if err != nil {
		t.Fatal(err)
	}
	var reg hooks.Registry
	if err := capture.Attach(&reg, w.Observe, list, scope, passes); err != nil {
		t.Fatal(err)
	}
	past := 0
	for k, n := range passes {
		reg.BeginPass(k)
		for _, e := range []struct {
			name  string
			shape []int
		}{{"input_ids", []int{1, n}}, {"layers.0.self_attn.probs", []int{1, 2, n, 2}}, {"norm", []int{1, n, 2}}, {"logits", []int{1, n, 1}}} {
			size, _ := hooks.Elements(e.shape)
			data := make([]byte, size)
			for i := range data { // element i of the tensor, plus 16 for each token before the pass
				data[i] = byte(16*past + i)
			}
			if err := reg.Point(e.name).Fire(hooks.Tensor{DType: hooks.U8, Shape: e.shape, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		past += n
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var got []string
	for _, r := range tr.Records() {
		x, err := tr.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(r.Key+" "+text(x)))
	}
	want := []string{
		"input_ids [1 3] 0 1 2",
		"layers.0.self_attn.probs [1 2 1 2] 2 3 8 9", // position 1
		"norm [1 1 2] 2 3",
		"pass2/input_ids [1 2] 80 81", // positions 5 and 6, of which 5 is left out
		"pass2/layers.0.self_attn.probs [1 2 1 2] 82 83 86 87",
		"pass2/norm [1 1 2] 82 83",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func text(x hooks.Tensor) string {
	data, err := json.Marshal(x.Shape)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(string(data), ",", " "))
	for _, v := range x.Data {
		b.WriteString(" ")
		n, _ := json.Marshal(v)
		b.Write(n)
	}
	return b.String()
}
