package rewrite

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Fused is a kernel of attention that computes scores, softmax and the product with values in one go. It is an online softmax (Milakov and
// Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al., FlashAttention, 2022): for a row of scores s and the values V, keys in
// blocks,
//
//	m = the largest score up to this block
//	p = exp(s − m), of the block's keys
//	l = l·exp(m before − m) + Σp
//	o = o·exp(m before − m) + R(p)·V
//
// and at the end o/l. Scores are float32, which is not rounded to the model's dtype, and so are l and o.
type Fused struct {
	Keys int  // in a block; 0: all keys are one block
	Back bool // from the last block to the first
	// Rounded: Σp is that of the rounded p.
	Rounded bool
	// Unknown: the blocks are not known. What p is rounded relative to is not in the trace then, and neither is what it is rounded to: there is a bound.
	Unknown bool
	// Threads is how many threads a kernel of ggml has. Other kernels have 0.
	Threads int
}

// Kernels are the known fused kernels, the most used first, and the unknown kernel last. A rewrite's kernel is one of these.
var Kernels = []Fused{
	{Keys: 512}, // torch on a CPU
	{Keys: 128},
	{Keys: 64},
	{Keys: 128, Back: true},
	{Keys: 64, Back: true},
	{Keys: 32},
	{Keys: 256},
	{}, // GPUs, by the size of a head; flash attention goes back
	{Rounded: true},
	{Keys: tileGGML, Threads: 1}, // ggml on a CPU
	{Keys: tileGGML, Threads: 2},
	{Keys: tileGGML, Threads: 4},
	{Keys: tileGGML, Threads: 8},
	{Keys: tileGGML, Threads: 16},
	{Keys: tileGGML, Threads: 6},
	{Keys: tileGGML, Threads: 12},
	{Unknown: true},
}

// leastSum is a lower bound of the sum of probabilities that are not divided: the largest score has exp(0) among them. torch's vector function has
// 0.99995 for it.
const leastSum = 0.999

// FusedForm is the form of the steps of a fused attention.
const FusedForm = "attention"

// The names of sites of a fused attention.
const (
	FusedExp           = "exp"
	FusedProbabilities = "probabilities"
)

// attention is a softmax whose result, rounded or not, goes into one product.
type attention struct {
	scores  program.Var // the softmax is of
	path    []int       // the steps from the product of queries and keys to the scores
	product int         // with values
	arg     int         // of that: the probabilities
}

// readersOf counts how many operands each step is.
func readersOf(p *program.Program) []int {
	readers := make([]int, len(p.Steps))
	for i := range p.Steps {
		for _, a := range p.Steps[i].Args {
			readers[a.Step]++
		}
	}
	readers[p.Out.Step]++
	return readers
}

// attentions returns the attentions of a program that one kernel may compute: only the attention reads the values between its two products.
func attentions(p *program.Program) []attention {
	var all []attention
	var readers []int
	for _, i := range edit.Softmaxes(p) {
		if readers == nil {
			readers = readersOf(p)
		}
		x, _ := edit.SoftmaxOf(p, i)
		a := attention{scores: x}
		if !entire(p, x) || !fromProduct(p, x.Step, readers, 2, &a.path) || !intoProduct(p, i, readers, &a) {
			continue
		}
		all = append(all, a)
	}
	return all
}

// entire reports whether a view is all of a step's result, in its rows.
func entire(p *program.Program, v program.Var) bool {
	shape := p.Steps[v.Step].Shape
	return v.Off == 0 && v.Plain() && program.Size(v.Shape) == program.Size(shape) && v.Last() == shape[len(shape)-1]
}

// fromProduct collects the steps by element from products to a step of so many readers. It is false where no product is found, or where another kind
// of step is on the way.
func fromProduct(p *program.Program, step int, readers []int, count int, path *[]int) bool {
	s := &p.Steps[step]
	if readers[step] != count {
		return false
	}
	switch {
	case s.Prim == program.Dot:
		*path = append(*path, step)
		return true
	case s.Prim == program.Floor, s.Prim == program.Gate, !s.Prim.ByElement() && s.Prim != program.Choose:
		return false
	}
	some := false
	for _, a := range s.Args {
		if !reachesProduct(p, a.Step) {
			continue
		}
		if !fromProduct(p, a.Step, readers, 1, path) {
			return false
		}
		some = true
	}
	*path = append(*path, step)
	return some
}

// reachesProduct reports whether a step is made of a product by element.
func reachesProduct(p *program.Program, step int) bool {
	s := &p.Steps[step]
	switch {
	case s.Prim == program.Dot:
		return true
	case !s.Prim.ByElement() && s.Prim != program.Choose && s.Prim != program.Cat:
		return false
	}
	return slices.ContainsFunc(s.Args, func(a program.Var) bool { return reachesProduct(p, a.Step) })
}

// intoProduct follows the result of a softmax to the product that reads it. Nothing else may read the result.
func intoProduct(p *program.Program, softmax int, readers []int, a *attention) bool {
	keys := a.scores.Last()
	for at := softmax; readers[at] == 1; {
		next := slices.IndexFunc(p.Steps, func(s program.Step) bool {
			return slices.ContainsFunc(s.Args, func(v program.Var) bool { return v.Step == at })
		})
		if next < 0 {
			return false
		}
		s := &p.Steps[next]
		switch {
		case s.Prim == program.Dot:
			a.product, a.arg = next, slices.IndexFunc(s.Args, func(v program.Var) bool { return v.Step == at })
			v, other := s.Args[a.arg], s.Args[1-a.arg]
			shape := p.Steps[at].Shape
			return v.Off == 0 && v.Last() == keys && v.Stride[len(v.Stride)-1] == 1 && shape[len(shape)-1] == keys && other.Step != at && divisible(v, keys)
		case s.Prim != program.Round && s.Prim != program.Copy || !entire(p, s.Args[0]):
			return false
		}
		at = next
	}
	return false
}

// divisible reports whether the strides of all axes but the last are whole rows of so many keys.
func divisible(v program.Var, keys int) bool {
	return keys > 0 && !slices.ContainsFunc(v.Stride[:len(v.Stride)-1], func(s int) bool { return s%keys != 0 })
}

// Fuses reports whether a program has an attention that one kernel may compute.
func Fuses(p *program.Program) bool { return len(attentions(p)) > 0 }

// InKernel returns the program with every attention computed by a fused kernel. Kernel k is Kernels[k−1]. A program without attention is returned
// as it is, and so is a program with more than mostByKey keys if the kernel takes keys one by one.
func InKernel(p *program.Program, k int) (*program.Program, error) {
	if k < 1 || k > len(Kernels) {
		return p, nil
	}
	all := attentions(p)
	if len(all) == 0 || slices.ContainsFunc(all, func(a attention) bool { return a.few(Kernels[k-1]) && a.scores.Last() > mostByKey }) {
		return p, nil
	}
	e := edit.NewEditor(p)
	e.Form = FusedForm
	for _, a := range all {
		a.fuse(e, Kernels[k-1])
	}
	d, err := e.End()
	if err != nil {
		return nil, fmt.Errorf("as a fused kernel computes it: %w", err)
	}
	q, _ := d.Whole(program.Call{})
	q.Kernel = k
	return q, nil
}

// KernelOf is the kernel that computes the attentions of a program, or nil.
func KernelOf(p *program.Program) *Fused {
	if p.Kernel == 0 {
		return nil
	}
	return &Kernels[p.Kernel-1]
}

// fuse edits one attention.
func (a *attention) fuse(e *edit.Editor, k Fused) {
	for _, i := range a.path {
		s := e.Step(i)
		if s.Round != program.None && s.Round != program.Welford {
			s.Round = program.Plain
		}
	}
	for _, i := range a.path { // a product that is added to is not rounded before
		if s := &e.Steps[i]; s.Prim == program.Add {
			for _, v := range s.Args {
				if f := &e.Steps[v.Step]; f.Prim == program.Mul && slices.Contains(a.path, v.Step) {
					f.Round = program.None
				}
			}
		}
	}
	var r running
	if k.Threads > 0 {
		r = a.ggml(e, k)
	} else {
		r = a.online(e, k, k.blocks(0, a.scores.Last()))
	}
	e.Become(a.product, program.Div, r.out, a.column(e, r.sum))
	s := &e.Steps[a.product]
	s.Form, s.Name, s.Site = FusedForm, "quotient", "quotient"
	s.Payload = program.Quotient{Least: leastSum}
}

// running is what an online softmax has after some keys: by row of scores the largest and the sum, by row of the output the output.
type running struct{ top, sum, out program.Var }

// online takes blocks of keys one after the other.
func (a *attention) online(e *edit.Editor, k Fused, blocks [][2]int) running {
	last := len(a.scores.Shape) - 1
	var r running
	for n, block := range blocks {
		x := e.Slice(a.scores, last, block[0], block[1])
		largest := e.RowMax(x)
		e.Steps[largest.Step].Payload = program.Relative
		m := largest
		if n > 0 {
			m = e.Max(r.top, largest)
		}
		exp := e.Exp(FusedExp, e.Sub("difference", x, m))
		e.Steps[exp.Step].Payload = program.Fused
		p := e.Append(program.Step{Prim: program.Round, Name: FusedProbabilities, Args: []program.Var{exp}, Shape: exp.Shape, Round: k.rounding()})
		terms := exp
		if k.Rounded {
			terms = p
		}
		l, o := e.Sum("sum", terms), a.part(e, p, block)
		if n > 0 {
			rise := e.Max(e.Sub("difference of maxima", largest, r.top), e.Literal(0)) // 0, whatever the bounds of the maxima, where top stays
			before := e.Exp("exp of the maxima", e.Neg(rise))
			scaled := e.Mul("sum before", before, r.sum)
			e.Steps[scaled.Step].Round = program.None
			l = e.Add("sum of blocks", scaled, l)
			out := e.Mul("output before", r.out, a.column(e, before))
			if a.few(k) {
				e.Steps[out.Step].Round, e.Steps[o.Step].Round = program.Half, program.None
			}
			o = e.Add("output of blocks", out, o)
		}
		if a.few(k) {
			e.Steps[o.Step].Round = program.Half
		}
		r = running{m, l, o}
	}
	return r
}

// Words say what a kernel does that transformers does not, in a model of a dtype.
func (k *Fused) Words(d hooks.DType) string {
	words := "probabilities divided after their product with the values, as fused kernels do"
	switch {
	case k.Threads > 0:
		words = "keys and values, and of few queries these and the output after each key, rounded to float16, as ggml's fused attention does"
	case d != hooks.F32:
		words = fmt.Sprintf("probabilities rounded to %s before they are divided, as fused kernels do", d)
	}
	if k.Unknown {
		words += ", in a kernel that is not known: within a bound"
	}
	return words
}

// rounding is how probabilities are rounded before the product.
func (k Fused) rounding() program.Rounding {
	if k.Unknown {
		return program.Shifted
	}
	return program.Model
}

// blocks are the blocks of the keys from from to to, in order: the first key of each, and the key after the last.
func (k Fused) blocks(from, to int) (all [][2]int) {
	n := k.Keys
	if n == 0 {
		n = max(to-from, 1)
	}
	for ; from < to; from += n {
		all = append(all, [2]int{from, min(from+n, to)})
	}
	if k.Back {
		slices.Reverse(all)
	}
	return all
}

// part is the product of a block's probabilities with its values.
func (a *attention) part(e *edit.Editor, p program.Var, block [2]int) program.Var {
	s := &e.Before.Steps[a.product]
	keys, own := a.scores.Last(), block[1]-block[0]
	args := slices.Clone(e.Steps[a.product].Args)
	v := s.Args[a.arg]
	w := program.Var{Step: p.Step, Off: 0, Shape: slices.Clone(v.Shape), Stride: slices.Clone(v.Stride)}
	last := len(w.Shape) - 1
	for i := range w.Stride[:last] {
		w.Stride[i] = v.Stride[i] / keys * own
	}
	w.Shape[last] = own
	args[a.arg] = w
	args[1-a.arg] = e.Slice(args[1-a.arg], last, block[0], block[1])
	out := e.MoveWith(a.product, args...)
	o := &e.Steps[out.Step]
	o.Form, o.Site, o.Round = FusedForm, "product", program.Plain
	if o.Name = "product"; block[0] > 0 {
		o.Name = fmt.Sprintf("product of keys %d and after", block[0])
	}
	return out
}

// column shows a number a row of scores as one a row of the product.
func (a *attention) column(e *edit.Editor, x program.Var) program.Var {
	v := e.Before.Steps[a.product].Args[a.arg]
	last := len(v.Shape) - 1
	w := program.Var{Step: x.Step, Off: 0, Shape: slices.Clone(v.Shape[:last]), Stride: slices.Clone(v.Stride[:last])}
	for i := range w.Stride {
		w.Stride[i] /= a.scores.Last()
	}
	return w.Expanded(e.Before.Steps[a.product].Shape)
}

// Apply is the program with its attentions in the kernel of a rewrite, and its additions in the order of that.
func Apply(p *program.Program, r program.Rewrite) (*program.Program, error) {
	q, err := p, error(nil)
	if r.Apart() {
		if q, err = readApart(p); err != nil {
			return nil, err
		}
	}
	if q, err = InKernel(q, r.Kernel()); err != nil {
		return nil, err
	}
	return inOrder(q, r.Order())
}
