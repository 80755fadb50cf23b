package rewrite

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// ggml's fused attention for a CPU (ggml_compute_forward_flash_attn_ext, ggml/src/ggml-cpu/ops.cpp) computes in float32 from keys and values in
// float16, as its cache has them. Of tileGGML queries and more it takes blocks of as many keys. Of fewer, queries are float16 too, and it takes one
// key after the other:
//
//	o = R(R(o·exp(m before − m)) + p·v), R to float16
//
// where p·v is not rounded before it is added. Each thread takes a part of the keys of a single query where the cache has splitGGML cells or more,
// and the parts are put together in float32.
const (
	tileGGML  = 64
	splitGGML = 512
	cellsGGML = 256 // llama.cpp rounds the number of cells of its cache up to a multiple; the last cells are empty
)

// mostByKey is the largest number of keys for a program with a step sequence per key, twelve steps a key.
const mostByKey = 2048

// few reports whether a kernel takes key by key.
func (a *attention) few(k Fused) bool {
	return k.Threads > 0 && a.queries() < tileGGML
}

// queries is how many rows of scores a head has.
func (a *attention) queries() int {
	if n := len(a.scores.Shape); n > 1 {
		return a.scores.Shape[n-2]
	}
	return 1
}

// ggml computes an attention as ggml does.
func (a *attention) ggml(e *edit.Editor, k Fused) running {
	keys := a.scores.Last()
	for _, i := range a.path {
		s := &e.Before.Steps[i]
		if s.Prim != program.Dot {
			continue
		}
		for n, v := range s.Args {
			if ofKeys := v.Shape[len(s.Shape)-1] > 1; ofKeys || a.few(k) {
				e.Read(i, n, inFloat16(e, v))
			}
		}
	}
	e.Read(a.product, 1-a.arg, inFloat16(e, e.Before.Steps[a.product].Args[1-a.arg]))
	if !a.few(k) {
		return a.online(e, k, k.blocks(0, keys))
	}
	cells := (keys + cellsGGML - 1) / cellsGGML * cellsGGML
	if a.queries() > 1 || cells < splitGGML {
		return a.online(e, k, Fused{Keys: 1}.blocks(0, keys))
	}
	part := (cells + k.Threads - 1) / k.Threads
	r := a.online(e, k, Fused{Keys: 1}.blocks(0, min(part, keys)))
	for from := part; from < keys; from += part {
		r = a.together(e, r, a.online(e, k, Fused{Keys: 1}.blocks(from, min(from+part, keys))))
	}
	return r
}

// together is what two parts of the keys give together.
func (a *attention) together(e *edit.Editor, one, other running) running {
	m := e.Max(one.top, other.top)
	of := func(r running) (sum, out program.Var) {
		by := e.Exp("exp of the maxima", e.Sub("difference of maxima", r.top, m))
		return e.Mul("sum of a part", r.sum, by), e.Mul("output of a part", r.out, a.column(e, by))
	}
	l, o := of(one)
	sum, out := of(other)
	return running{m, e.Add("sum of parts", l, sum), e.Add("output of parts", o, out)}
}

// inFloat16 is a view with what it shows in float16.
func inFloat16(e *edit.Editor, v program.Var) program.Var {
	whole := e.Before.Result(v.Step)
	r := e.Append(program.Step{Prim: program.Round, Name: "in float16", Args: []program.Var{whole}, Shape: whole.Shape, Round: program.Half})
	v.Step = r.Step
	return v
}

// Computes reports whether a kernel computes in a model's dtype. That of ggml computes in float32 only.
func (k Fused) Computes(d hooks.DType) bool { return k.Threads == 0 || d == hooks.F32 }
