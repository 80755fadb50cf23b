package op_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// recorded is one call of torch's fused attention, as fixtures/fused.py has recorded it.
type recorded struct {
	name  string
	dtype hooks.DType
	q, k  program.Value
	v     program.Value
	out   program.Value // [1, heads, T, D]
	scale float64
	// window is that of the mask, 0 for none.
	window float64
}

// calls reads a file of fixtures/fused.py.
func calls(t *testing.T, path string) []recorded {
	t.Helper()
	f, err := dump.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors, types := map[string]program.Value{}, map[string]hooks.DType{}
	var names []string
	for i := range f.Tensors {
		x := &f.Tensors[i]
		n := size(x.Shape)
		raw, data := make([]byte, n*x.DType.Size()), make([]float64, n)
		if _, err := x.ReadAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		if err := floats.Decode(data, x.DType, raw); err != nil {
			t.Fatal(err)
		}
		tensors[x.Name], types[x.Name] = program.Value{Shape: x.Shape, Data: data}, x.DType
		if base, ok := strings.CutSuffix(x.Name, ".out"); ok {
			names = append(names, base)
		}
	}
	slices.SortFunc(names, func(a, b string) int { // layers as numbers
		x, y := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
		if c := strings.Compare(a[:x], b[:y]); c != 0 {
			return c
		}
		m, _ := strconv.Atoi(a[x+1:])
		n, _ := strconv.Atoi(b[y+1:])
		return m - n
	})
	var all []recorded
	for _, base := range names {
		all = append(all, recorded{
			base, types[base+".out"], tensors[base+".q"], tensors[base+".k"], tensors[base+".v"], tensors[base+".out"],
			tensors[base+".scale"].Data[0], tensors[base+".window"].Data[0],
		})
	}
	return all
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// attention is transformers' attention on turned queries, as a cut has it, in a fused kernel; 0 for none.
func attention(t *testing.T, r recorded, kernel int) *program.Program {
	t.Helper()
	b := program.NewBuilder()
	heads, tokens, width, keys := r.q.Shape[1], r.q.Shape[2], r.q.Shape[3], r.k.Shape[2]
	scores := []int{1, heads, tokens, keys}
	var in []program.Var
	for i, v := range []program.Value{r.q, r.k, r.v} {
		in = append(in, b.Input(i, v.Shape))
	}
	positions := b.Input(3, []int{1, tokens})
	s := b.R(b.Apply(op.Scores{Scale: r.scale}, "scores", scores, in[:2], nil))
	mask := b.Apply(op.Mask{Window: int(r.window)}, "mask", []int{1, 1, tokens, keys}, []program.Var{positions}, nil)
	s = b.R(b.Apply(op.Add{}, "add", scores, []program.Var{s, mask}, nil))
	p := b.RoundTo(b.Apply(op.Softmax{}, "softmax", scores, []program.Var{s}, nil), program.Single)
	p = b.R(b.Apply(op.Cast{}, "cast", scores, []program.Var{p}, nil))
	made, err := b.Program(b.Apply(op.Context{}, "context", []int{1, tokens, heads * width}, []program.Var{p, in[2]}, nil))
	if err != nil {
		t.Fatal(err)
	}
	made, err = rewrite.InKernel(made, kernel)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// count evaluates a call, and counts the elements that torch has to the bit and those that are beyond the bounds.
func count(t *testing.T, r recorded, p *program.Program, choose func(s *program.Step, c *program.Choice)) (equal, outside int) {
	t.Helper()
	tokens, keys := r.q.Shape[2], r.k.Shape[2]
	positions := program.Value{Shape: []int{1, tokens}}
	for i := range tokens {
		positions.Data = append(positions.Data, float64(keys-tokens+i))
	}
	call := program.Call{Arith: program.Arith{DType: r.dtype, Emulated: true, Bounds: true}, In: []program.Value{r.q, r.k, r.v, positions}, Shape: p.Out.Shape}
	call.Choices = p.Own()
	for i := range p.Steps {
		choose(&p.Steps[i], &call.Choices[i])
	}
	x, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	heads, width := r.out.Shape[1], r.out.Shape[3]
	for h := range heads {
		for row := range tokens {
			for c := range width {
				y, at := r.out.Data[(h*tokens+row)*width+c], (row*heads+h)*width+c
				v, e := x.Data[at], x.Bound[at]
				if y == floats.Round(r.dtype, v) {
					equal++
				} else if y < floats.Round(r.dtype, v-e) || y > floats.Round(r.dtype, v+e) {
					outside++
				}
			}
		}
	}
	return equal, outside
}

// torchsKernel is the number of torch's kernel on a CPU, and anyKernel that of one that is not known.
func torchsKernel() (torch, unknown int) {
	return 1 + slices.Index(rewrite.Kernels, rewrite.Fused{Keys: 512}), 1 + slices.Index(rewrite.Kernels, rewrite.Fused{Unknown: true})
}

// with has a function for the exponential, and 1/l for the quotient, as torch has.
func with(way uint8, round program.Rounding) func(s *program.Step, c *program.Choice) {
	return func(s *program.Step, c *program.Choice) {
		switch {
		case s.Form != rewrite.FusedForm:
		case s.Site == rewrite.FusedExp:
			c.Way = way
		case s.Site == rewrite.FusedProbabilities:
			c.Round = round
		case s.Prim == program.Div:
			c.Way = program.WayReciprocal
		}
	}
}

// What torch's fused attention returns, on queries, keys and values of a trained model, is what the form gives with its function, nearly to the last
// bit; with a right exponential, or with probabilities that are not rounded, fewer elements are. Of a kernel that is not known the bound holds all,
// and of transformers' eager attention thousands are outside. TRACEDIFF_FUSED names another file, of whole layers.
func TestFusedKernelIsTorchs(t *testing.T) {
	path := os.Getenv("TRACEDIFF_FUSED")
	if path == "" {
		path = "../../fixtures/fused/smollm2.safetensors"
	}
	torch, unknown := torchsKernel()
	lanes := program.WayEightLanes
	if os.Getenv("TRACEDIFF_FUSED_LANES") == "16" {
		lanes = program.WaySixteen
	}
	type counts struct{ elements, form, outside, exact, wide, eager, unknown int }
	sums := map[string]*counts{}
	var kinds []string
	for _, r := range calls(t, path) {
		kind := r.name[:strings.LastIndexByte(r.name, '.')]
		if sums[kind] == nil {
			sums[kind] = &counts{}
			kinds = append(kinds, kind)
		}
		c := sums[kind]
		c.elements += len(r.out.Data)
		fused := attention(t, r, torch)
		equal, outside := count(t, r, fused, with(lanes, program.Model))
		c.form, c.outside = c.form+equal, c.outside+outside
		equal, _ = count(t, r, fused, with(program.WayLibrary, program.Model))
		c.exact += equal
		equal, _ = count(t, r, fused, with(lanes, program.Plain))
		c.wide += equal
		_, outside = count(t, r, attention(t, r, 0), func(*program.Step, *program.Choice) {})
		c.eager += outside
		_, outside = count(t, r, attention(t, r, unknown), with(program.WayStatedError, program.Shifted))
		c.unknown += outside
	}
	for _, kind := range kinds {
		c := sums[kind]
		t.Logf("%-28s %8d elements: %d to the bit, %d beyond its bounds; %d with a right exponential, %d with probabilities that are not rounded; eager: %d beyond its bounds; unknown kernel: %d",
			kind, c.elements, c.form, c.outside, c.exact, c.wide, c.eager, c.unknown)
		if c.outside > 0 || c.unknown > 0 {
			t.Errorf("%s: %d of %d elements are beyond the bounds of the kernel, %d beyond those of a kernel that is not known", kind, c.outside, c.elements, c.unknown)
		}
		if strings.Contains(kind, "float32") {
			continue // the order of sums shows
		}
		if 1000*c.form < 999*c.elements || c.exact >= c.form || c.wide >= c.form {
			t.Errorf("%s: %d of %d elements are torch's to the bit; %d with a right exponential, %d with probabilities that are not rounded", kind, c.form, c.elements, c.exact, c.wide)
		}
	}
}
