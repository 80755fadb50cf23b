package op_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

var update = flag.Bool("update", false, "write testdata/traits.txt and docs/results/operations.md")

// operations are all of the package, each with every value of a field on which a trait depends.
var operations = []op.Op{
	op.Add{},
	op.AddScale{By: op.Const{Value: -0.5}},
	op.AddScale{By: op.Const{Value: -0.5}, Divide: true},
	op.AddToOthers{},
	op.AddTwice{},
	op.AltUpCorrect{Streams: 4},
	op.AltUpInit{},
	op.AltUpPredict{Streams: 4},
	op.Argument{},
	op.Cache{},
	op.Cache{Transpose: true},
	op.CachePart{},
	op.Cast{},
	op.Choice{},
	op.Choice{Score: op.Sigmoid, Bias: true},
	op.Context{},
	op.Convolution{},
	op.Convolution{Bias: true, SiLU: true},
	op.Cutoff{},
	op.DeltaRule{},
	op.DeltaRule{Given: true},
	op.ExpertRows{},
	op.Experts{},
	op.Gated{Act: op.OfSiLU},
	op.GatedContext{},
	op.GatedMLP{Act: op.OfGELUTanh},
	op.GatedNorm{},
	op.GatedNorm{Single: true},
	op.Gating{},
	op.GELU{},
	op.GELUSteps{},
	op.GELUTanh{},
	op.Identity{},
	op.LatentKeys{Pairs: op.Halves, Out: op.Halves},
	op.LayerNorm{},
	op.LayerNorm{Bias: true},
	op.Linear{},
	op.Linear{Bias: true},
	op.Linear{Bias: true, Turned: true},
	op.Lookup{},
	op.Lookup{Fallback: true},
	op.Magnitude{},
	op.Mask{},
	op.Mean{},
	op.Merge{},
	op.Mul{},
	op.NormGated{Act: op.OfSiLU},
	op.Part{},
	op.ReLUSquared{},
	op.Rescale{},
	norm(op.Plain), norm(op.NoScale), norm(op.OnePlus), norm(op.After),
	op.RoPE{},
	op.RoPEPart{Pairs: op.Neighbours, Out: op.Halves},
	op.Rotary{},
	op.Routing{Score: op.OfAll, Normalised: true},
	op.Rows{},
	op.Scale{},
	op.ScaleChannels{},
	op.Scores{},
	op.Select{},
	op.SelectiveScan{},
	op.SharedExpert{},
	op.ShiftedReLU{},
	op.SiLU{},
	op.SinkSoftmax{},
	op.Softcap{Cap: 2},
	op.Softmax{},
	op.StateSpace{},
	op.Std{},
	op.StreamMean{},
	op.Sub{},
	op.Tanh{},
}

func norm(g op.Gain) op.Op { return op.RMSNorm{Eps: 1e-6, Gain: g} }

// trait is an optional interface, with how a line of the table states it.
type trait struct {
	of    reflect.Type
	state func(o op.Op) string
}

var traits = []trait{
	{reflect.TypeFor[op.Given](), func(op.Op) string { return "given" }},
	{reflect.TypeFor[op.Exact](), func(op.Op) string { return "exact" }},
	{reflect.TypeFor[op.Cancelling](), func(o op.Op) string {
		fraction, words := o.(op.Cancelling).OperandScale()
		return fmt.Sprintf("scale %g (%s)", fraction, words)
	}},
	{reflect.TypeFor[op.OtherOrder](), func(op.Op) string { return "other order" }},
	{reflect.TypeFor[op.Keyed](), func(o op.Op) string { return fmt.Sprintf("keys %q", op.KeysOf(o)) }},
}

// Nothing that is known of an operation is a default that nobody has seen: the table has all operations, and each line is what
// somebody has read.
func TestTraits(t *testing.T) {
	var got bytes.Buffer
	for _, o := range operations {
		fmt.Fprintf(&got, "%s\n", op.Form(o))
		none := true
		for _, x := range traits {
			if reflect.TypeOf(o).Implements(x.of) {
				none = false
				fmt.Fprintf(&got, "\t%s\n", x.state(o))
			}
		}
		if none {
			fmt.Fprint(&got, "\tnone\n")
		}
	}
	file := filepath.Join("testdata", "traits.txt")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the table is\n%s\n%s has\n%s\nRead what has changed, then run go test ./order/op -update", got.Bytes(), file, want)
	}
}

// Every type of the package's source that has a Kind is in the table.
func TestTableHasAllOperations(t *testing.T) {
	listed := map[string]bool{}
	for _, o := range operations {
		listed[reflect.TypeOf(o).Name()] = true
	}
	found := receivers(t, "Kind")
	for _, name := range found {
		if !listed[name] {
			t.Errorf("op.%s is not in the table of operations: add it, and say what is known of it", name)
		}
	}
	if len(found) != len(listed) {
		t.Errorf("%d operations in the source, %d in the table", len(found), len(listed))
	}
}

// receivers are the types of the package with a method of this name.
func receivers(t *testing.T, method string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, d := range parse(t, name).Decls {
			if d, is := d.(*ast.FuncDecl); is && d.Recv != nil && d.Name.Name == method {
				typ := d.Recv.List[0].Type
				if p, pointer := typ.(*ast.StarExpr); pointer {
					typ = p.X
				}
				found = append(found, typ.(*ast.Ident).Name)
			}
		}
	}
	return found
}

// The interfaces are all in the table, and every method of an operation belongs to one of them: one that is misspelt, or has another
// signature, would leave the operation with the default.
func TestMethodsAreOfTraits(t *testing.T) {
	of := map[string]bool{"Kind": true, "Steps": true}
	for _, x := range traits {
		of[x.of.Method(0).Name] = true
		if x.of.NumMethod() != 1 {
			t.Errorf("%s has %d methods", x.of, x.of.NumMethod())
		}
	}
	used := map[reflect.Type]bool{}
	for _, o := range operations {
		typ := reflect.TypeOf(o)
		for i := range typ.NumMethod() {
			if m := typ.Method(i); !of[m.Name] {
				t.Errorf("%s.%s belongs to no interface of the table", typ, m.Name)
			}
		}
		for _, x := range traits {
			_, has := typ.MethodByName(x.of.Method(0).Name)
			if has != typ.Implements(x.of) {
				t.Errorf("%s has a method %s of another signature than %s", typ, x.of.Method(0).Name, x.of)
			}
			used[x.of] = used[x.of] || has
		}
	}
	for _, x := range traits {
		if !used[x.of] {
			t.Errorf("no operation implements %s", x.of)
		}
	}
	for _, name := range interfaces(t, "traits.go") {
		if !slices.ContainsFunc(traits, func(x trait) bool { return x.of.Name() == name }) {
			t.Errorf("op.%s is not in the table of interfaces", name)
		}
	}
}

// interfaces are those that a file of the package declares.
func interfaces(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	ast.Inspect(parse(t, name), func(n ast.Node) bool {
		if n, is := n.(*ast.TypeSpec); is {
			if _, is := n.Type.(*ast.InterfaceType); is {
				found = append(found, n.Name.Name)
			}
		}
		return true
	})
	return found
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sample is a call on numbers that are no fractions of a power of two, of the shapes that an operation takes.
func sample(o op.Op) program.Call {
	next := 0.0
	numbers := func(shape ...int) program.Value {
		v := program.Value{Shape: shape}
		n := 1
		for _, d := range shape {
			n *= d
		}
		for range n {
			next++
			v.Data = append(v.Data, math.Sin(next)*0.2+0.25)
		}
		return v
	}
	weight := func(rows, cols int) program.Rows { return matrix{rows, cols, numbers(rows, cols).Data, nil} }
	index := func(ids ...float64) program.Value { return program.Value{Shape: []int{1, len(ids)}, Data: ids} }
	call := func(shape []int, w []program.Rows, in ...program.Value) program.Call {
		return program.Call{Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true, Hull: true}, In: in, W: w, Shape: shape}
	}
	row, one, streams, heads := []int{1, 2, 4}, []int{1, 2, 1}, []int{4, 1, 2, 4}, []int{1, 2, 2, 4}
	switch o := o.(type) {
	case op.Lookup:
		return call(row, []program.Rows{weight(8, 4)}, index(7, 2))
	case op.Mask:
		return call([]int{1, 1, 2, 2}, nil, index(0, 1))
	case op.Rotary:
		return call(row, nil, index(3, 4))
	case op.Linear:
		return call(row, []program.Rows{weight(4, 4), weight(1, 4)}, numbers(row...))
	case op.AddTwice:
		return call(row, nil, numbers(row...), numbers(row...), numbers(row...))
	case op.CachePart:
		return call([]int{1, 2, 4, 4}, nil, numbers(1, 2, 8), numbers(heads...))
	case op.Part:
		return call(row, nil, numbers(1, 2, 12))
	case op.Merge:
		return call([]int{1, 2, 8}, nil, numbers(heads...))
	case op.Rows:
		return call(row, []program.Rows{weight(8, 4)})
	case op.Choice:
		return call([]int{1, 2}, []program.Rows{weight(1, 4)}[:min(1, len(o.Score))], numbers(1, 4))
	case op.Convolution:
		return call(row, []program.Rows{weight(4, 3), weight(1, 4)}, numbers(row...), numbers(row...))
	case op.ExpertRows:
		return call([]int{4, 2}, []program.Rows{weight(12, 4)}, numbers(2, 4), program.Value{Shape: []int{2, 2}, Data: []float64{2, 0, 1, 2}})
	case op.Experts:
		return call([]int{2, 4}, []program.Rows{weight(12, 4), weight(12, 2)}, numbers(2, 4),
			program.Value{Shape: []int{2, 2}, Data: []float64{2, 0, 1, 2}}, numbers(2, 2), numbers(4, 2))
	case op.GatedContext:
		return call([]int{1, 2, 16}, nil, numbers(1, 4, 2, 2), numbers(heads...), numbers(1, 2, 16))
	case op.GatedMLP:
		return call(row, []program.Rows{weight(6, 4), weight(6, 4), weight(4, 6)}, numbers(row...))
	case op.DeltaRule:
		shape := []int{1, 2, 2, 2}
		if o.Given {
			return call(shape, []program.Rows{weight(8, 3)}, numbers(1, 2, 8), numbers(1, 2, 2), numbers(shape...))
		}
		return call(shape, []program.Rows{weight(8, 3), weight(1, 2), weight(1, 2)}, numbers(1, 2, 8), numbers(1, 2, 2), numbers(1, 2, 2))
	case op.LatentKeys:
		return call(heads, nil, numbers(1, 2, 6), numbers(1, 2, 4), numbers(1, 2, 2), numbers(1, 2, 2))
	case op.NormGated:
		return call(row, []program.Rows{weight(1, 4)}, numbers(row...), numbers(row...))
	case op.SharedExpert:
		return call([]int{2, 4}, nil, numbers(2, 1), numbers(2, 4), numbers(2, 4))
	case op.RoPEPart:
		return call(heads, nil, numbers(heads...), numbers(1, 2, 2), numbers(1, 2, 2))
	case op.SelectiveScan:
		return call(row, []program.Rows{weight(4, 2), weight(4, 3), weight(1, 4), weight(1, 4)},
			numbers(1, 2, 8), numbers(row...), numbers(1, 2, 7))
	case op.StateSpace:
		return call(row, []program.Rows{weight(1, 2), weight(8, 3), weight(1, 8), weight(1, 2), weight(1, 2)}, numbers(1, 2, 14))
	case op.SinkSoftmax:
		return call([]int{1, 2, 2, 4}, []program.Rows{weight(1, 2)}, numbers(1, 2, 2, 3))
	case op.LayerNorm:
		return call(row, []program.Rows{weight(1, 4), weight(1, 4)}, numbers(row...))
	case op.GatedNorm:
		return call(row, []program.Rows{weight(1, 4)}, numbers(row...), numbers(row...))
	case op.Gating:
		return call(row, nil, numbers(row...), numbers(1, 2, 8))
	case op.Routing:
		return call([]int{1, 2}, nil, numbers(1, 4), index(2, 0))
	case op.ScaleChannels, op.RMSNorm:
		return call(row, []program.Rows{weight(1, 4)}, numbers(row...))
	case op.ShiftedReLU:
		return call(row, nil, numbers(row...), program.Value{Shape: one, Data: []float64{0.05, -0.01}})
	case op.Rescale:
		return call(row, nil, numbers(row...), numbers(one...), numbers(one...))
	case op.Cutoff:
		return call(one, nil, numbers(one...), numbers(one...))
	case op.Mean, op.Std, op.Magnitude:
		return call(one, nil, numbers(row...))
	case op.Select:
		return call([]int{2, 4}, nil, numbers(row...))
	case op.Cache:
		return call([]int{1, 2, 4, 4}, nil, numbers(heads...), numbers(heads...))
	case op.Scores:
		return call([]int{1, 4, 2, 2}, nil, numbers(1, 4, 2, 4), numbers(heads...))
	case op.Context:
		return call([]int{1, 2, 16}, nil, numbers(1, 4, 2, 2), numbers(heads...))
	case op.RoPE:
		return call(heads, nil, numbers(heads...), numbers(row...), numbers(row...))
	case op.AddToOthers:
		return call(streams, nil, numbers(streams...), numbers(row...))
	case op.AltUpInit:
		return call(streams, nil, numbers(row...), numbers(one...), numbers(row...), numbers(one...), numbers(row...), numbers(one...), numbers(row...), numbers(one...))
	case op.AltUpPredict:
		return call(streams, nil, numbers(1, 2, o.Streams*o.Streams), numbers(streams...))
	case op.AltUpCorrect:
		return call(streams, nil, numbers(row...), numbers(1, 2, o.Streams), numbers(streams...))
	}
	return call(row, nil, numbers(row...), numbers(row...))
}

// sized is an operation with the constants that its sample needs.
func sized(o op.Op) op.Op {
	switch o := o.(type) {
	case op.Lookup:
		o.Rows = 8
		return o
	case op.Rotary:
		return op.Rotary{Theta: 10, Dim: 4, Scaling: "default"}
	case op.Select:
		return op.Select{Axis: 0}
	case op.CachePart:
		return op.CachePart{Heads: 1}
	case op.Part:
		return op.Part{Heads: 2, From: 4}
	case op.Rows:
		return op.Rows{First: 2, By: 1}
	case op.Choice:
		o.K = 2
		return o
	case op.Convolution:
		o.Kernel = 3
		return o
	case op.DeltaRule:
		o.Kernel, o.Heads, o.Size, o.Eps = 3, 1, 2, 1e-6
		return o
	case op.LatentKeys:
		o.Dims = 2
		return o
	case op.ExpertRows:
		return op.ExpertRows{Experts: 3, From: 2}
	case op.Experts:
		return op.Experts{Experts: 3}
	case op.RoPEPart:
		o.Dims, o.From = 2, 2
		return o
	case op.SelectiveScan:
		return op.SelectiveScan{State: 2, Rank: 3, From: 4}
	case op.StateSpace:
		return op.StateSpace{Kernel: 3, State: 2, Groups: 1}
	case op.Cutoff:
		return op.Cutoff{Multiplier: op.Const{Value: 0.3}}
	case op.Scale:
		return op.Scale{By: op.Const{Value: 0.3}}
	case op.Scores:
		return op.Scores{Scale: 0.3}
	}
	return o
}

// What is exact leaves an engine that rounds where it likes no choice, and everything else leaves it one.
func TestExactIsWhatHasNoBound(t *testing.T) {
	for _, o := range operations {
		if _, given := o.(op.Given); given {
			continue
		}
		v, err := program.Eval(sized(o), sample(o))
		if err != nil {
			t.Fatal(err)
		}
		if _, exact := o.(op.Exact); exact == slices.ContainsFunc(v.Bound, func(e float64) bool { return e > 0 }) {
			t.Errorf("%s: exact is %t, and its bounds are %v", op.Form(o), exact, v.Bound)
		}
	}
}
