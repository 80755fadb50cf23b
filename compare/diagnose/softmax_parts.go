package diagnose

import (
	"github.com/tracediff/tracediff/order/program"
)

// sizes of blocks, and numbers of equal parts, in which a softmax may be taken.
var (
	blocksOfKeys = []int{2, 4, 8, 16, 32, 64, 128}
	partsOfKeys  = []int{2, 3, 4}
)

// softmaxParts tries softmaxes that are taken in parts of the keys and put together in a wrong way: each part has a maximum and a sum of its
// own, as in a kernel that goes over blocks of keys.
func (s *search) softmaxParts() error {
	p := s.first.Program
	all := p.Softmaxes()
	if len(all) == 0 {
		return nil
	}
	keys := 0
	for _, e := range s.entries {
		for _, i := range e.Program.Softmaxes() {
			keys = max(keys, e.Program.Steps[i].Shape[len(e.Program.Steps[i].Shape)-1])
		}
	}
	try := func(of Mistake, ends func(keys int) []int) error {
		for _, way := range []struct {
			kind Kind
			join func(ed *program.Editor, parts []program.Var) program.Var
		}{
			{"softmax.parts-averaged", func(ed *program.Editor, parts []program.Var) program.Var {
				return ed.Div("", own(ed, parts), ed.Literal(float64(len(parts))))
			}},
			{"softmax.parts-added", own},
			{"softmax.parts-own-maximum", func(ed *program.Editor, parts []program.Var) program.Var {
				return shared(ed, parts, false)
			}},
			{"softmax.parts-not-rescaled", func(ed *program.Editor, parts []program.Var) program.Var {
				return shared(ed, parts, true)
			}},
		} {
			m := of
			m.Kind, m.Place = way.kind, s.site(s.first, all[0])
			if err := s.variant(m, func(e *Entry) *program.Edited {
				return e.Program.SoftmaxBy(func(ed *program.Editor, x program.Var) program.Var {
					last, from := len(x.Shape())-1, 0
					var parts []program.Var
					for _, end := range ends(x.Last()) {
						parts, from = append(parts, ed.Slice(x, last, from, end)), end
					}
					if len(parts) < 2 { // it is one softmax
						parts = []program.Var{x}
					}
					return way.join(ed, parts)
				})
			}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range partsOfKeys {
		if n >= keys {
			continue
		}
		if err := try(Mistake{N: n}, func(keys int) (all []int) {
			for k := 1; k < n && keys >= n; k++ {
				all = append(all, k*(keys/n))
			}
			return append(all, keys)
		}); err != nil {
			return err
		}
	}
	for _, size := range blocksOfKeys {
		if size >= keys {
			break
		}
		if err := try(Mistake{M: size}, func(keys int) (all []int) {
			for at := size; at < keys; at += size {
				all = append(all, at)
			}
			return append(all, keys)
		}); err != nil {
			return err
		}
	}
	return nil
}

// leastScore is below every score that is not masked.
const leastScore = -1e30

// own has a softmax of each part.
func own(ed *program.Editor, parts []program.Var) program.Var {
	var all []program.Var
	for _, x := range parts {
		exp := ed.Exp("", ed.Sub("", x, ed.RowMax(x)))
		all = append(all, ed.Div("", exp, ed.Sum("", exp)))
	}
	return ed.Cat(len(parts[0].Shape())-1, all...)
}

// shared has one sum for all parts, each of which takes its own maximum off, or that of the parts until then.
func shared(ed *program.Editor, parts []program.Var, running bool) program.Var {
	var all []program.Var
	var top program.Var
	for k, x := range parts {
		own := ed.Max(ed.RowMax(x), ed.Literal(leastScore)) // a block whose keys are all masked has no part in the sum
		if k == 0 || !running {
			top = own
		} else {
			top = ed.Max(top, own)
		}
		all = append(all, ed.Exp("", ed.Sub("", x, top)))
	}
	exp := ed.Cat(len(parts[0].Shape())-1, all...)
	return ed.Div("", exp, ed.Sum("", exp))
}
