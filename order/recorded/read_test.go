package recorded_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/fuzztest"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
	"github.com/tracediff/tracediff/order/recorded/lengths"
)

// small is a program of one pass: ids, a table, a product with a weight, a name for a part.
const small = `{"format":"tracediff program","version":1,"class":"m.Net","model_type":"net","layers":"layers",
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,["c0",4]],[1,0,["v0"]],[1,1,["v2"]]]}],
"templates":[
[{"name":"input_ids","of":"$0","level":1},
 {"op":"embedding","in":["w:embed.weight","$0"],"out":[["float32",[1,2,"$1"]]],"at":0},
 {"name":"embed","of":"t0","level":1}],
[{"op":"mm","in":[["$0",[2,4],[4,1],0],["w:layers.{layer}.weight",[4,4],[1,4],0]],"out":[["float32",[2,4]]]},
 {"op":"add","in":["$0",["t0",[1,2,4],[8,4,1],0]],"out":[["float32",[1,2,4]]],"attr":{"alpha":2}},
 {"name":"layers.{layer}.out","of":"t1","level":2}]
],
"weights":{"embed.weight":{"dtype":"float32","shape":[5,4]},"layers.0.weight":{"dtype":"float32","shape":[4,4]},"layers.1.weight":{"dtype":"float32","shape":[4,4]}},
"constants":[{"dtype":"int64","shape":[1,2],"from":[{"kind":"ids"}],"depends":["input_ids"],"sha256":""}],
"lines":["net.py:7"]}`

func TestRead(t *testing.T) {
	p, err := recorded.Read(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	passes, err := p.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range passes[0] {
		from := ""
		for _, in := range e.Inputs {
			from += " " + in.Name
		}
		for _, w := range e.Weights {
			from += " " + w.Name
		}
		kind := "argument"
		if e.Op != nil {
			kind = e.Op.Kind()
		}
		got = append(got, fmt.Sprintf("%s %d %d %v %s%s", e.Name, e.Layer, e.Level, e.Shape, kind, from))
	}
	want := []string{
		"input_ids -1 1 [1 2] argument",
		"embed -1 1 [1 2 4] embedding input_ids embed.weight",
		"layers.0.out:mm 0 4 [2 4] mm embed layers.0.weight",
		"layers.0.out 0 2 [1 2 4] add embed layers.0.out:mm",
		"layers.1.out:mm 1 4 [2 4] mm layers.0.out layers.1.weight",
		"layers.1.out 1 2 [1 2 4] add layers.0.out layers.1.out:mm",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("entries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.DType.String() != "float32" || passes[0][1].Source != (recorded.Source{Line: "net.py:7"}) || p.Class != "m.Net" {
		t.Errorf("%s, %s, %s", p.DType, passes[0][1].Source, p.Class)
	}
}

// What an operation is called with is said with its numbers and settings.
func TestCall(t *testing.T) {
	for _, c := range []struct{ old, by, want string }{
		{"", "", "add(input, mm, alpha=2)"},
		{`"in":["$0",["t0",[1,2,4],[8,4,1],0]]`, `"in":["$0",0.125]`, "add(input, 0.125, alpha=2)"},
	} {
		p, err := recorded.Read(strings.NewReader(strings.Replace(small, c.old, c.by, 1)))
		if err != nil {
			t.Fatal(err)
		}
		passes, err := p.Entries()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range passes[0] {
			if e.Name != "layers.0.out" {
				continue
			}
			if o, ok := e.Op.(recorded.Op); ok {
				got = o.Call()
			}
		}
		if got != c.want {
			t.Errorf("the call is %q, want %q", got, c.want)
		}
	}
}

// An operation has the expression of its line; that of a program without expressions is empty.
func TestExpressions(t *testing.T) {
	text := strings.Replace(small, `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["self.embed(ids) # é"]`, 1)
	p, err := recorded.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	passes, err := p.Entries()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := passes[0][1].Source, (recorded.Source{Line: "net.py:7", Expression: "self.embed(ids) # é"}); got != want {
		t.Errorf("%s is of %+v, want %+v", passes[0][1].Name, got, want)
	}
}

// A file that cannot be is refused, and the error says where it is wrong.
func TestHostile(t *testing.T) {
	for _, c := range []struct{ why, old, by, want string }{
		{"an operation of two lines", `"op":"add"`, `"op":"add\nMATCH: all 9 entries compared match"`, "is not the name of an operation"},
		{"a name that moves the cursor", `"name":"embed"`, `"name":"\u001b[2Jembed"`, "is not a tensor name"},
		{"a source of two lines", `"net.py:7"`, `"net.py:7\nMATCH: all"`, "line of source 0"},
		{"an expression of two lines", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["a * b\nMATCH: all"]`, "expression 0"},
		{"an expression that moves the cursor", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["\u001b[2J"]`, "expression 0"},
		{"an expression that is read from right to left", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["a \u202e b"]`, "expression 0"},
		{"an expression without an end", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["` + strings.Repeat("a", 1<<20) + `"]`, "expression 0"},
		{"fewer expressions than lines", `"lines":["net.py:7"]`, `"lines":["net.py:7","net.py:8"],"expressions":["a * b"]`, "1 expressions on 2 lines of source"},
		{"more expressions than lines", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":["a * b",""]`, "2 expressions on 1 lines of source"},
		{"an expression that is a number", `"lines":["net.py:7"]`, `"lines":["net.py:7"],"expressions":[7]`, "not the JSON of a recorded program"},
		{"a class that moves the cursor", `"class":"m.Net"`, `"class":"\u001b[2J"`, "not one line of text"},
		{"a weight of two lines", `"weights":{`, `"weights":{"a\nb":{"dtype":"float32","shape":[1]},`, "is not the name of a weight"},
		{"no JSON", small, `{"format":`, "not the JSON of a recorded program"},
		{"something behind", `"lines":["net.py:7"]}`, `"lines":["net.py:7"]} {}`, "follow the end of the program"},
		{"another format", `"tracediff program"`, `"program"`, `its format is "program"`},
		{"a later version", `"version":1`, `"version":2`, "of version 2"},
		{"no passes", `"calls":[[0,-1,["c0",4]],[1,0,["v0"]],[1,1,["v2"]]]}]`, `"calls":[]}],"passes":[]`, "it has 0 passes"},
		{"a pass of fewer tokens than none", `"tokens":2`, `"tokens":-2`, "-2 tokens"},
		{"a template that is not there", `[1,1,["v2"]]`, `[7,1,["v2"]]`, "call 2"},
		{"a layer that none has", `[1,1,["v2"]]`, `[1,-9,["v2"]]`, "call 2"},
		{"a hole that is not filled", `["v0"]`, `[]`, `hole "$0" of 0`},
		{"a step that reads itself", `"in":[["$0",[2,4]`, `"in":[["t0",[2,4]`, `"t0" is not a step before this one`},
		{"a step that reads a later one", `["v0"]`, `["v9"]`, `"v9" is not a step before this one`},
		{"a negative step", `["v0"]`, `["v-1"]`, `"v-1" is not a step`},
		{"a step below the call", `["t0",[1,2,4],[8,4,1],0]`, `["t-1",[1,2,4],[8,4,1],0]`, `"t-1" is not a step`},
		{"a constant that is not there", `"c0",4`, `"c7",4`, `"c7" of 1 constants`},
		{"a weight that is not there", `"w:layers.{layer}.weight"`, `"w:other"`, `no weight "w:other"`},
		{"strides beyond the value", `[2,4],[4,1],0],["w:`, `[2,4],[5,1],0],["w:`, "has 8 elements: a view of [2 4] by [5 1] from 0 does not fit"},
		{"an offset beyond it", `[2,4],[4,1],0],["w:`, `[2,4],[4,1],1],["w:`, "a view of [2 4] by [4 1] from 1 does not fit"},
		{"a stride that overflows", `[2,4],[4,1],0],["w:`, `[2,4],[9223372036854775807,1],0],["w:`, "does not fit"},
		{"strides of another rank", `[2,4],[4,1],0],["w:`, `[2,4],[4],0],["w:`, "does not fit"},
		{"a size that is none", `[2,4],[4,1],0],["w:`, `[2,-4],[4,1],0],["w:`, "a negative axis"},
		{"sizes that overflow", `["float32",[2,4]]`, `["float32",[4294967296,4294967296,4294967296]]`, "more than"},
		{"too many axes", `["float32",[2,4]]`, `["float32",[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]`, "at most 16"},
		{"a size with a fraction", `["float32",[2,4]]`, `["float32",[2,4.5]]`, "is not a whole number"},
		{"strides with gaps", `["float32",[2,4]]`, `["float32",[2,4],[8,1]]`, "do not show each element once"},
		{"a result of nothing", `["float32",[2,4]]`, `[]`, "want a dtype"},
		{"shapes that disagree", `["w:layers.{layer}.weight",[4,4],[1,4],0]`, `["w:layers.{layer}.weight",[2,8],[8,1],0]`, "layers.0.out:mm: mm: product"},
		{"another shape than the operation's", `["float32",[2,4]]]}`, `["float32",[4,4]]]}`, "layers.0.out:mm: mm"},
		{"a line of source that is not there", `"at":0`, `"at":3`, "line 3 of 1"},
		{"neither a step nor a name", `{"name":"embed","of":"t0","level":1}`, `{"level":1}`, "neither a step nor a name"},
		{"a name twice", `"name":"embed"`, `"name":"input_ids"`, `a second "input_ids"`},
		{"a name with a slash", `"name":"embed"`, `"name":"pass1/embed"`, "is not a tensor name"},
		{"the name of a number", `{"name":"embed","of":"t0","level":1}`, `{"name":"embed","of":2.5,"level":1}`, "not the name of a tensor"},
		{"a level that none is", `"of":"t0","level":1`, `"of":"t0","level":4`, "the level of embed"},
		{"an operand that is none", `"in":["$0",["t0"`, `"in":[{"a":1},["t0"`, "is not a number"},
		{"data of another length", `"from":[{"kind":"ids"}]`, `"data":"AAAA"`, "3 bytes of data, not 16"},
		{"data of another digest", `"from":[{"kind":"ids"}]`, `"data":"AAAAAAAAAAAAAAAAAAAAAA=="`, "do not have the digest"},
		{"a constant that nothing makes", `"from":[{"kind":"ids"}]`, `"from":[{"kind":"moon"}]`, "no known rule gives its digest"},
		{"ids of another length", `"dtype":"int64","shape":[1,2]`, `"dtype":"int64","shape":[1,3]`, "not the token ids of a pass"},
		{"numbers beyond memory", `"dtype":"int64","shape":[1,2]`, `"dtype":"int64","shape":[1,1000000000]`, "numbers in constants"},
		{"no constant", `"constants":[{`, `"constants":[null,{`, "constant 0 is null"},
		{"no weight", `"embed.weight":{"dtype":"float32","shape":[5,4]}`, `"embed.weight":null`, "is null"},
		{"a negative table", `"shape":[5,4]`, `"shape":[-5,4]`, "a negative axis"},
	} {
		text := strings.Replace(small, c.old, c.by, 1)
		if text == small {
			t.Fatalf("%s: %q is not in the program", c.why, c.old)
		}
		p, err := recorded.Read(strings.NewReader(text))
		if err == nil {
			_, err = p.Entries()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", c.why, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: an error of several lines: %v", c.why, err)
		}
	}
}

// As many steps as a template can be made to stand for are refused before they take memory.
func TestManySteps(t *testing.T) {
	line := `{"op":"neg","in":["$0"],"out":[["float32",[1]]]}`
	template := "[" + strings.Repeat(line+",", 1<<12) + line + "]"
	call := `[0,-1,[1]]`
	calls := strings.Repeat(call+",", 1<<12) + call
	pass := `{"tokens":1,"past":0,"calls":[` + calls + `]}`
	text := `{"format":"tracediff program","version":1,"passes":[` + pass + `],"templates":[` + template + `]}`
	if _, err := recorded.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "lines in all passes") {
		t.Errorf("%d steps: %v", (1<<12+1)*(1<<12+1), err)
	}
}

// Many steps before one name are read in time that grows as their number.
func TestManyUnnamed(t *testing.T) {
	var lines strings.Builder
	lines.WriteString(`{"op":"neg","in":[1.0],"out":[["float32",[1]]]}`)
	const steps = 60_000
	for k := range steps {
		fmt.Fprintf(&lines, `,{"op":"neg","in":["t%d"],"out":[["float32",[1]]]}`, k)
	}
	text := `{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,-1,[]]]}],"templates":[[` + lines.String() +
		fmt.Sprintf(`,{"name":"out","of":"t%d","level":2}]]}`, steps)
	p, err := recorded.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	passes, err := p.Entries()
	if err != nil || len(passes[0]) != steps+1 {
		t.Fatalf("%d entries: %v", len(passes[0]), err)
	}
	if took := time.Since(before); took > muchLater {
		t.Errorf("%d steps took %v", steps, took)
	}
}

// An operation that is not known, or a setting of one, or a dtype, makes its own entry unknown and no other.
func TestUnknown(t *testing.T) {
	for _, c := range []struct{ old, by, want string }{
		{`"op":"add"`, `"op":"moon"`, "no formula is known for it"},
		{`"attr":{"alpha":2}`, `"attr":{"beta":2}`, "its setting beta: no formula is known for it"},
		{`"out":[["float32",[1,2,4]]],"attr"`, `"out":[["complex128",[1,2,4]]],"attr"`, "its result is of dtype complex128"},
		{`"layers.0.weight":{`, `"layers.0.weight":{"unknown":true,`, "layers.0.weight is not a tensor of the checkpoint"},
	} {
		p, err := recorded.Read(strings.NewReader(strings.Replace(small, c.old, c.by, 1)))
		if err != nil {
			t.Fatal(err)
		}
		passes, err := p.Entries()
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, e := range passes[0] {
			if o, ok := e.Op.(recorded.Unknown); ok {
				if o.Why != c.want {
					t.Errorf("%s: %s: %q, want %q", c.by, e.Name, o.Why, c.want)
				}
				continue
			}
			known++
		}
		if known == len(passes[0]) || known < 4 {
			t.Errorf("%s: %d of %d entries are known", c.by, known, len(passes[0]))
		}
	}
}

// Constants are made again by their recipes, and are those of the digest.
func TestRecipes(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/programs/*.program.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := recorded.Read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		masks := 0
		for _, c := range p.Constants {
			if c.Is == "" && c.Numbers == nil && len(c.Shape) > 0 && c.Shape[0] > 0 {
				t.Errorf("%s: a constant of shape %v has no numbers", name, c.Shape)
			}
			if len(c.Shape) == 4 && c.Shape[2] > 1 {
				masks++
				for i, x := range c.Numbers {
					if q, k := i/c.Shape[3], i%c.Shape[3]; (x == 0) != (k <= q) || math.IsNaN(x) {
						t.Errorf("%s: query %d and key %d have the mask %v", name, q, k, x)
					}
				}
			}
		}
		if masks == 0 {
			t.Errorf("%s has no mask", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	files := [][]byte{[]byte(small)}
	for _, one := range formulas { // every operation
		text, _ := one.text()
		files = append(files, []byte(text))
	}
	fuzztest.Files(f, files, func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		p, err := recorded.Read(bytes.NewReader(data))
		if err == nil {
			_, _ = p.Entries()
		}
		runtime.ReadMemStats(&after)
		if made, took := after.TotalAlloc-before.TotalAlloc, time.Since(start); made > 1<<30 || took > muchLater {
			t.Errorf("a file of %d bytes made %d MiB in %v", len(data), made>>20, took)
		}
		if err != nil {
			return
		}
		if to, err := lengths.For(p, []int{7, 1, 1, 1}); err == nil {
			_, _ = to.Entries()
		}
		passes, err := p.Entries()
		if err != nil {
			return
		}
		if len(passes) != len(p.Passes) {
			t.Errorf("%d passes of %d", len(passes), len(p.Passes))
		}
		for _, all := range passes {
			names := map[string]bool{}
			for _, e := range all {
				if names[e.Name] || e.Name == "" {
					t.Errorf("two entries called %q", e.Name)
				}
				names[e.Name] = true
				for _, in := range e.Inputs {
					if in.Back == 0 && !names[in.Name] {
						t.Errorf("%s reads %s, which is not before it", e.Name, in.Name)
					}
				}
			}
		}
		for pass, all := range passes {
			for i := range all {
				evaluate(passes, pass, &all[i])
			}
		}
	})
}

// evaluate computes an entry of a program on any numbers, some of them indexes, if it is small. An error is none of the test.
func evaluate(passes [][]recorded.Entry, pass int, e *recorded.Entry) {
	const most = 1 << 12
	if _, unknown := e.Op.(recorded.Unknown); unknown || e.Op == nil || elements(e.Shape) > most {
		return
	}
	c := program.Call{Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}, Shape: e.Shape}
	for k, in := range e.Inputs {
		of := passes[pass-in.Back]
		from := of[slices.IndexFunc(of, func(o recorded.Entry) bool { return o.Name == in.Name })]
		v := program.Value{Shape: from.Shape}
		if elements(v.Shape) > most {
			return
		}
		for i := range elements(v.Shape) {
			v.Data, v.Bound = append(v.Data, float64((i*7+k)%5)), append(v.Bound, float64(i%3)/2)
		}
		c.In = append(c.In, v)
	}
	for _, w := range e.Weights {
		size := w.Size()
		if size[0] > most || size[1] > most || size[0]*size[1] > most {
			return
		}
		m := table{size[0], size[1], make([]float64, size[0]*size[1])}
		for i := range m.data {
			m.data[i] = float64(i%9) - 4
		}
		c.W = append(c.W, m)
	}
	var in [][]int
	var w [][2]int
	for _, v := range c.In {
		in = append(in, v.Shape)
	}
	for _, m := range e.Weights {
		w = append(w, m.Size())
	}
	if p, err := program.Of(e.Op, program.Op.Kind, 0, e.Shape, in, w); err == nil && p.Work() < 1<<20 {
		_, _ = p.Eval(c)
	}
}
