package mistakes

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// Every heading of docs/mistakes.md is an edit of the table or says why it is none; and the table points to headings alone.
func TestHeadings(t *testing.T) {
	data, err := os.ReadFile("../../docs/mistakes.md")
	if err != nil {
		t.Fatal(err)
	}
	body, _, found := strings.Cut(string(data), "\n## Fields of other families")
	if !found {
		t.Fatal("docs/mistakes.md has no section of fields")
	}
	dropped := regexp.MustCompile(`[^a-z0-9 -]`)
	headings := map[string]bool{}
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			headings[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), ""), " ", "-")] = true
		}
	}
	if len(headings) < 70 {
		t.Fatalf("%d headings", len(headings))
	}
	edits, names := map[string]bool{}, map[string]bool{}
	for _, k := range table {
		edits[k.Page] = true
		if names[k.Name] || k.Name == "" || k.What == "" || len(k.at) == 0 || k.edit == nil {
			t.Errorf("%+v is said twice, or lacks something", k)
		}
		names[k.Name] = true
	}
	for h := range headings {
		if _, why := NotEdits[h]; why == edits[h] {
			t.Errorf("#%s: an edit: %v, no edit: %v; it has to be one of them", h, edits[h], why)
		}
	}
	for _, of := range []map[string]bool{edits, keys(NotEdits)} {
		for h := range of {
			if !headings[h] {
				t.Errorf("docs/mistakes.md has no heading #%s", h)
			}
		}
	}
}

func keys(m map[string]string) map[string]bool {
	all := map[string]bool{}
	for k := range m {
		all[k] = true
	}
	return all
}

// Of a recorded program a configuration says little, and its entries may have the names of any family's: whatever a mistake asks of it, there
// is an answer.
func TestConfigOfARecordedProgram(t *testing.T) {
	c := &order.Config{ModelType: "gemma4_text", NumLayers: 2, VocabSize: 128, Tokens: order.TokenIDs{BOS: -1, PAD: -1}, DType: "float32"}
	for i := range table {
		k := &table[i]
		if k.when == nil || k.when(c) {
			k.Needs(c)
		}
	}
	list := &order.List{Config: c, Entries: []order.Entry{{Name: "embed_tokens_per_layer.lookup", Op: op.Lookup{}}}}
	for _, k := range In(list) {
		if strings.HasPrefix(k.Name, "per-layer") {
			t.Errorf("%s is a mistake of Gemma 3n alone", k.Name)
		}
	}
}

// A step of a recorded program may have a name of the orders' and fewer inputs than their operation: no mistake reads what is not there.
func TestFewerInputs(t *testing.T) {
	p, err := recorded.Read(strings.NewReader(`{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,0,[]]]}],
"templates":[[{"name":"input_ids","of":"c0","level":1},
{"op":"embedding","in":["w:table","c0"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.mlp.gate_proj","of":"t0","level":2},
{"op":"relu","in":["t0"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.mlp.gate_sparse","of":"t1","level":2}]],
"weights":{"table":{"dtype":"float32","shape":[5,4]}},"constants":[{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	gate, sparse := list.Index("layers.0.mlp.gate_proj"), list.Index("layers.0.mlp.gate_sparse")
	passes := []order.Pass{{Tokens: 1}}
	plan, err := list.Cut(func(n order.Node) bool { return n.Entry == gate }, order.Node{Entry: sparse})
	if err != nil {
		t.Fatal(err)
	}
	f, parts, err := plan.Parts(passes, hooks.F32, 0)
	if err != nil {
		t.Fatal(err)
	}
	edited := 0
	for _, k := range In(list) {
		if d := k.Apply(&Model{List: list, Passes: passes, DType: hooks.F32}, f, parts, program.Call{}); d != nil {
			edited++
		}
	}
	if edited == 0 {
		t.Error("no mistake is made in an entry of a known name")
	}
}

// A step of a recorded program may have any name of the orders', whatever it computes, from however many inputs, and of any shape: no mistake
// reads what is not there.
func TestNamesOfOtherOperations(t *testing.T) {
	names := map[string]bool{}
	for i := range table {
		for _, p := range table[i].at {
			name, _, _ := strings.Cut(p, "=")
			name = strings.NewReplacer("[qk]", "q", "rotary.*", "rotary.full.cos", "mask.*", "mask.full").Replace(name)
			if name = strings.ReplaceAll(strings.TrimPrefix(name, "*"), "*", "x"); name == "" || name[0] == '.' {
				name = "layers.0.x" + name
			}
			names[name] = true
		}
	}
	ops := []string{
		`{"op":"relu","in":["%s"],"out":[["float32",%s]]}`, `{"op":"silu","in":["%s"],"out":[["float32",%s]]}`,
		`{"op":"softmax","in":["%s"],"args":[-1],"out":[["float32",%s]]}`, `{"op":"mul","in":["%[1]s","%[1]s"],"out":[["float32",%[2]s]]}`,
	}
	tried := 0
	for name := range names {
		for _, shape := range []string{"[4]", "[1,4]", "[1,1,4]", "[1,2,1,2]", "[1,1,1,2,2]"} {
			for _, o := range append([]string{""}, ops...) {
				last := "c1"
				steps := []string{`{"name":"input_ids","of":"c0","level":1}`}
				if o != "" {
					steps = append(steps, fmt.Sprintf(o, "c1", shape))
					last = "t0"
				}
				steps = append(steps, fmt.Sprintf(`{"name":%q,"of":%q,"level":2}`, name, last))
				p, err := recorded.Read(strings.NewReader(`{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,0,[]]]}],
"templates":[[` + strings.Join(steps, ",\n") + `]],"weights":{},"constants":[{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""},
{"dtype":"float32","shape":` + shape + `,"from":[{"kind":"fill","value":0}],"sha256":"` + fmt.Sprintf("%x", sha256.Sum256(make([]byte, 16))) + `"}]}`))
				if err != nil {
					t.Fatalf("%s: %v", o, err)
				}
				list, err := order.Recorded(p)
				if err != nil {
					t.Fatal(err)
				}
				list.Config.HeadDim, list.Config.NumHeads, list.Config.NumKVHeads = 2, 2, 2
				plan, err := list.Cut(func(order.Node) bool { return false }, order.Node{Entry: list.Index(name)})
				if err != nil {
					t.Fatal(err)
				}
				f, parts, err := plan.Parts([]order.Pass{{Tokens: 1}}, hooks.F32, 0)
				if err != nil {
					continue
				}
				m := &Model{List: list, Passes: []order.Pass{{Tokens: 1}}, DType: hooks.F32, Read: func(order.Node) (program.Value, bool) { return program.Value{}, false }}
				for _, k := range In(list) {
					k.Apply(m, f, parts, program.Call{})
					tried++
				}
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}
