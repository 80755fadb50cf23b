package diagnose

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"slices"
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

// otherPages are usual mistakes whose own page is not that of their kind and role: that is of what more ports do, or there is none.
var otherPages = map[string]string{
	"heads-by-size": "quantised-weight", "queries-ahead": "shifted-positions", "rotation-before-norm": "missing-rotation", "stale-slot": "zero-cache-slot",
	"per-layer-clamped": "per-layer-scales", "per-layer-axes": "per-layer-scales",
	"scores-uncapped": "", "sparsity-sample": "", "branch-zero": "", "laurel-unscaled": "", "per-layer-next": "", "row-twice": "",
}

// notMade are usual mistakes that change nothing in a few tokens: they need positions that bfloat16 does not have, and weights beyond the clip.
var notMade = []string{"positions-bfloat16", "coefficients-clipped"}

// A usual mistake is one of the catalogue: in the model of a fixture it is made of some operation, changes what the operation gives, is said in a sentence, and has the page
// that a search gives it, but for otherPages.
func TestUsualMistakesAreOfTheCatalogue(t *testing.T) {
	made, pages := map[string]bool{}, map[string]string{}
	for _, fixture := range []string{"gemma-tiny", "gemma2-tiny", "gemma3-tiny", "gemma3n-tiny", "gemma3n-variant", "gemma3n-odd", "llama-tiny", "qwen2-tiny", "qwen3-tiny"} {
		m := tiny(t, fixture)
		m.Passes = []order.Pass{{Tokens: 6}, {Tokens: 1, Past: 6}}
		numbers := m.Read
		m.Read = func(n order.Node) (program.Value, error) {
			v, err := numbers(n)
			for k := range v.Data {
				switch name := m.List.At(n).Name; {
				case name == order.InputIDs:
					v.Data[k] = float64(m.List.Config.VocabSize - 1 - 7*k)
				case name == order.PositionIDs:
					v.Data[k] = float64(m.Passes[n.Pass].Past + k)
				case strings.HasPrefix(name, "mask."):
					v.Data[k] = -1e30 * float64(k%2)
				}
			}
			return v, err
		}
		for _, u := range Usuals(m.List) {
			for pass := range m.Passes {
				for k := range m.List.Entries {
					if u.Edits(&m.List.Entries[k]) && !(made[u.Name] && pages[u.Name] == mistakesPage+u.Page) {
						madeIn(t, m, u, order.Node{Entry: k, Pass: pass}, made, pages)
					}
				}
			}
		}
	}
	for k := range usuals {
		u := &usuals[k]
		want := u.Page
		if other, ok := otherPages[u.Name]; ok {
			want = other
		}
		if got := strings.TrimPrefix(pages[u.Name], mistakesPage); got != want && u.is != nil {
			t.Errorf("%s has the page %q, not %q", u.Name, got, want)
		}
		if made[u.Name] == slices.Contains(notMade, u.Name) {
			t.Errorf("%s is made in a model: %v", u.Name, made[u.Name])
		}
	}
}

// madeIn makes a usual mistake in an entry, where it goes with the entry.
func madeIn(t *testing.T, m *Model, u *Usual, n order.Node, made map[string]bool, pages map[string]string) {
	t.Helper()
	plan, err := m.List.Cut(func(o order.Node) bool { return o != n }, n)
	if err != nil {
		return
	}
	f, parts, err := plan.Parts(m.Passes, hooks.F32, 0)
	if err != nil {
		return
	}
	c := program.Call{Arith: program.Arith{DType: hooks.F32}}
	for _, in := range f.Inputs {
		v, err := m.Read(in)
		if err != nil {
			t.Fatal(err)
		}
		c.In = append(c.In, v)
	}
	for _, w := range f.Weights {
		rows, err := m.Weights(w)
		if err != nil {
			t.Fatal(err)
		}
		c.W = append(c.W, rows)
	}
	h := m.Healthy(f, parts, c, nil)
	d := h.With(u)
	if d == nil {
		return
	}
	p, call := d.Whole(c)
	x, err := p.Eval(call)
	if err != nil {
		t.Fatalf("%s in %s: %v", u.Name, m.List.At(n).Name, err)
	}
	right, err := f.Eval(c)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Data, right.Data) {
		made[u.Name] = true
	}
	if u.is == nil {
		return
	}
	is := u.is(h.s, h.entries[0])
	if catalogue()[is.Kind] == nil || is.String() == "" || strings.Contains(is.String(), "{") {
		t.Errorf("%s in %s: %q", u.Name, m.List.At(n).Name, is.String())
	}
	if page := is.page(order.NameOf(m.List.At(n).Name).Role()); pages[u.Name] == "" || page == mistakesPage+u.Page {
		pages[u.Name] = page
	}
}

// A mistake of slots is made in an entry that is a cache, and a mask that is not low enough in an entry that reads the mask.
func TestMistakesOfWhatAnEntryReads(t *testing.T) {
	m := tiny(t, "gemma2-tiny")
	keys := node(m, "layers.1.self_attn.keys", 1)
	e := entryOf(t, m, keys, []order.Node{node(m, "layers.1.self_attn.k_rope", 1), node(m, "layers.1.self_attn.keys", 0)}, func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Cat(2, in[1], in[0])
	})
	now, before := read(t, m, "layers.1.self_attn.k_rope", 1), read(t, m, "layers.1.self_attn.keys", 0)
	shape := e.Program.Out.Shape
	n, d := shape[2], shape[3]
	var stale, unwritten []float64
	for h := range shape[1] {
		old := before[h*(n-1)*d:][:(n-1)*d]
		stale = append(append(stale, old...), old[(n-2)*d:]...)
		unwritten = append(append(append(unwritten, make([]float64, d)...), old[d:]...), now[h*d:][:d]...)
	}
	makes(t, m, e, usualSlots(e, m, lastStale), stale)
	makes(t, m, e, usualSlots(e, m, firstZero), unwritten)

	masked := entryOf(t, m, node(m, "layers.1.self_attn.scores_masked", 0), []order.Node{node(m, "layers.1.self_attn.scores", 0), node(m, "mask.full", 0)},
		func(b *program.Builder, in, _ []program.Var) program.Var { return b.Add("sum", in[0], in[1]) })
	mask := masked.Call.In[1].Data
	for k := range mask {
		mask[k] = -1e30 * float64(k%2)
	}
	var want []float64
	for k, x := range masked.Call.In[0].Data {
		want = append(want, x-5*float64(k%len(mask)%2))
	}
	makes(t, m, masked, Mistake{Kind: "mask.value-small", Place: maskSite, X: some(5)}, want)
}

// usualSlots is the mistake of some slots of an entry.
func usualSlots(e *Entry, m *Model, runs func(n, now int) (sourceRun, bool)) Mistake {
	return slotsAre(Mistake{Kind: "cache.slot-repeated"}, runs)(newSubject(m), e)
}
