package diagnose

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

// notUsual are the headings of docs/mistakes.md that are no usual mistake, and why.
var notUsual = map[string]string{
	"token-ids":                      "ids are compared before anything is computed",
	"padding":                        "a trace has one sequence without padding",
	"hooks-at-another-point":         "nothing is computed wrongly",
	"fully-masked-row":               "in one sequence without padding every row has a key",
	"narrow-arithmetic":              "it is an arithmetic, and is looked for as one",
	"not-finite":                     "a value that is not finite is seen wherever it is compared",
	"float16-overflow":               "it needs values that are larger than 65504",
	"other-roundings":                "it is no mistake",
	"shifted-positions":              "it is no mistake",
	"same-order-of-queries-and-keys": "it is no mistake",
	"scale-moved-to-the-queries":     "it is no mistake",
	"rescaled-stream":                "it is no mistake",
	"ties":                           "it is no mistake",
}

// Every heading of docs/mistakes.md has a usual mistake or says why it has none; and the usual mistakes point to headings alone.
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
	pages, names := map[string]bool{}, map[string]bool{}
	for k := range usuals {
		u := &usuals[k]
		pages[u.Page] = true
		if names[u.Name] || u.Name == "" || u.What == "" || len(u.at) == 0 || (u.is == nil) == (u.edit == nil) {
			t.Errorf("%s is said twice, or lacks something", u.Name)
		}
		names[u.Name] = true
	}
	for h := range headings {
		if why := notUsual[h]; (why != "") == pages[h] {
			t.Errorf("#%s: a usual mistake: %v, none: %q; it has to be one of them", h, pages[h], why)
		}
	}
	for h := range pages {
		if !headings[h] {
			t.Errorf("docs/mistakes.md has no heading #%s", h)
		}
	}
	for h := range notUsual {
		if !headings[h] {
			t.Errorf("docs/mistakes.md has no heading #%s", h)
		}
	}
}

// Of a recorded program a configuration says little, and its entries may have the names of any family's: whatever a mistake asks of it, there
// is an answer.
func TestConfigOfARecordedProgram(t *testing.T) {
	c := &order.Config{ModelType: "gemma4_text", NumLayers: 2, VocabSize: 128, Tokens: order.TokenIDs{BOS: -1, PAD: -1}, DType: "float32"}
	for k := range usuals {
		if u := &usuals[k]; u.when == nil || u.when(c) {
			u.Needs(c)
		}
	}
	list := &order.List{Config: c, Entries: []order.Entry{{Name: "embed_tokens_per_layer.lookup", Op: op.Lookup{}}}}
	for _, u := range Usuals(list) {
		if strings.HasPrefix(u.Name, "per-layer") {
			t.Errorf("%s is a mistake of Gemma 3n alone", u.Name)
		}
	}
}

// recordedList is the order of a recorded program of one pass of one token.
func recordedList(t *testing.T, templates, rest string) *order.List {
	t.Helper()
	p, err := recorded.Read(strings.NewReader(`{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,0,[]]]}],
"templates":[[` + templates + `]],` + rest + `}`))
	if err != nil {
		t.Fatalf("%s: %v", templates, err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// healthy are the operations between what was captured and an entry of the first pass; nil where they have no program.
func healthy(t *testing.T, list *order.List, has func(order.Node) bool, entry int) *Healthy {
	t.Helper()
	m := &Model{
		List: list, Passes: []order.Pass{{Tokens: 1}}, Has: func(order.Node) bool { return false },
		Weights: func(w order.Weight) (program.Rows, error) { return nil, fmt.Errorf("there is no %s", w.Name) },
		Read:    func(order.Node) (program.Value, error) { return program.Value{}, fmt.Errorf("there is none") },
	}
	plan, err := list.Cut(has, order.Node{Entry: entry})
	if err != nil {
		t.Fatal(err)
	}
	f, parts, err := plan.Parts(m.Passes, hooks.F32, 0)
	if err != nil {
		return nil
	}
	c := program.Call{Arith: program.Arith{DType: hooks.F32}, In: make([]program.Value, len(f.Inputs)), W: make([]program.Rows, len(f.Weights))}
	return m.Healthy(f, parts, c, nil)
}

// A step of a recorded program may have a name of the orders' and fewer inputs than their operation: no mistake reads what is not there.
func TestFewerInputs(t *testing.T) {
	list := recordedList(t, `{"name":"input_ids","of":"c0","level":1},
{"op":"embedding","in":["w:table","c0"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.mlp.gate_proj","of":"t0","level":2},
{"op":"relu","in":["t0"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.mlp.gate_sparse","of":"t1","level":2}`,
		`"weights":{"table":{"dtype":"float32","shape":[5,4]}},"constants":[{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""}]`)
	gate, sparse := list.Index("layers.0.mlp.gate_proj"), list.Index("layers.0.mlp.gate_sparse")
	h := healthy(t, list, func(n order.Node) bool { return n.Entry == gate }, sparse)
	edited := 0
	for _, u := range Usuals(list) {
		if h.With(u) != nil {
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
	for k := range usuals {
		for _, p := range usuals[k].at {
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
	tried, made := 0, 0
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
				list := recordedList(t, strings.Join(steps, ",\n"), `"weights":{},"constants":[{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""},
{"dtype":"float32","shape":`+shape+`,"from":[{"kind":"fill","value":0}],"sha256":"`+fmt.Sprintf("%x", sha256.Sum256(make([]byte, 16)))+`"}]`)
				list.Config.HeadDim, list.Config.NumHeads, list.Config.NumKVHeads = 2, 2, 2
				h := healthy(t, list, func(order.Node) bool { return false }, list.Index(name))
				if h == nil {
					continue
				}
				for _, u := range Usuals(list) {
					if tried++; h.With(u) != nil {
						made++
					}
				}
			}
		}
	}
	if tried == 0 || made == 0 {
		t.Errorf("%d of %d were made", made, tried)
	}
}
