package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// masked is which keys queries see: positions of both from the first token, the row of the query in its pass and the column of the key.
type masked func(q, k float64, row, column int, right bool) bool

// mostMasked is how many tokens a prefix or a block is tried with, and of how many keys each is masked.
const mostMasked = 64

// seen tries masks that are not causal with a window: of blocks, with a prefix, from the wrong corner, and with a key or the first keys
// masked or seen by all.
func (s *search) seen() error {
	all := masksOf(s.first)
	if len(all) == 0 {
		return nil
	}
	window := s.first.Program.Steps[all[0]].Value
	rank := 200
	try := func(m Mistake, sees masked) error {
		rank++
		m.Place = "mask"
		return s.variant(rank, m, func(e *Entry) *program.Edited { return s.masking(e, sees) })
	}
	if err := try(Mistake{Kind: "mask.top-left"}, func(_, _ float64, row, column int, _ bool) bool {
		return column <= row
	}); err != nil {
		return err
	}
	keys := s.first.Program.Steps[all[0]].Shape
	most := min(keys[len(keys)-1], mostMasked)
	if s.first.Program.Steps[all[0]].Prim == program.Vector {
		if err := s.seenBoth(most, try); err != nil {
			return err
		}
	}
	for n := 2; n <= most; n++ {
		size := float64(n)
		blocks := Mistake{Kind: "mask.blocks", N: n}
		if window > 0 {
			blocks.Kind = "mask.blocks-not-window"
		}
		if err := try(blocks, func(q, k float64, _, _ int, _ bool) bool { return k <= q && math.Floor(k/size) == math.Floor(q/size) }); err != nil {
			return err
		}
		if err := try(Mistake{Kind: "mask.prefix", N: n}, func(q, k float64, _, _ int, right bool) bool {
			return right || q < size && k < size
		}); err != nil {
			return err
		}
	}
	if window > 0 {
		for size := 2.0; size <= float64(most); size *= 2 {
			if err := try(Mistake{Kind: "mask.window-whole-block", N: int(size)}, func(q, k float64, _, _ int, _ bool) bool {
				return k <= q && k >= math.Floor(max(q-window+1, 0)/size)*size
			}); err != nil {
				return err
			}
		}
		if err := try(Mistake{Kind: "mask.window-both-sides"}, func(q, k float64, _, _ int, _ bool) bool {
			return math.Abs(q-k) < window
		}); err != nil {
			return err
		}
	}
	for n := range most {
		at := float64(n)
		if err := try(Mistake{Kind: "mask.key-masked", N: n}, func(_, k float64, _, _ int, right bool) bool { return right && k != at }); err != nil {
			return err
		}
		if err := try(Mistake{Kind: "mask.key-masked-but-own", N: n}, func(q, k float64, _, _ int, right bool) bool { return right && (k != at || q == at) }); err != nil {
			return err
		}
		if n == 0 || n > 8 {
			continue
		}
		if err := try(Mistake{Kind: "mask.first-keys-masked", N: n}, func(_, k float64, _, _ int, right bool) bool { return right && k >= at }); err != nil {
			return err
		}
		if err := try(Mistake{Kind: "mask.first-keys-seen", N: n}, func(q, k float64, _, _ int, right bool) bool {
			return right || k < at && k <= q
		}); err != nil {
			return err
		}
	}
	if s.first.Program.Steps[all[0]].Prim != program.Mask {
		return nil
	}
	tried := map[string]bool{}
	return s.edged(window, most, func(m Mistake, sees func(q, k float64, in span) bool) error {
		rank++
		key := s.pattern(sees)
		if m.Kind == "" || key != "" && tried[key] { // in these passes it is the right one, or another of them
			tried[key] = true
			return nil
		}
		tried[key] = true
		m.Place = "mask"
		return s.try(hypothesis{
			class: program.Known, rank: rank, weak: true, say: func(*Entry) Name { return m.name() },
			make: func(e *Entry) *program.Edited { return s.spanned(e, sees) },
		})
	})
}

// seenBoth tries masks in the place of one that is no causal one, as that of a model which sees later tokens: a causal one, none, and those
// of windows to both sides.
func (s *search) seenBoth(most int, try func(m Mistake, sees masked) error) error {
	if err := try(Mistake{Kind: "mask.causal"}, func(q, k float64, _, _ int, right bool) bool { return right && k <= q }); err != nil {
		return err
	}
	if err := try(Mistake{Kind: "mask.anti-causal"}, func(q, k float64, _, _ int, right bool) bool { return right && k >= q }); err != nil {
		return err
	}
	if err := try(Mistake{Kind: "mask.none"}, func(_, _ float64, _, _ int, _ bool) bool { return true }); err != nil {
		return err
	}
	for n := range most {
		if err := try(Mistake{Kind: "mask.both-sides", N: n}, func(q, k float64, _, _ int, _ bool) bool { return math.Abs(q-k) <= float64(n) }); err != nil {
			return err
		}
	}
	return nil
}

// masksOf are the steps of a program that make a mask, and those constants that are one: of 0 and of numbers that hide what they are added
// to, by query and key. A program that is nothing else may hide nothing.
func masksOf(e *Entry) []int {
	all := e.Program.Of(program.Mask)
	if len(all) > 0 {
		return all
	}
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		alone := len(e.Program.Steps) == 1
		if n := len(st.Shape); st.Prim != program.Vector || n < 2 || st.Shape[n-1] < 2 || st.Shape[n-2] < 2 && !alone || len(st.Values) != st.Shape[n-1]*st.Shape[n-2] {
			continue
		}
		hidden := slices.ContainsFunc(st.Values, func(x float64) bool { return x != 0 })
		if (hidden || alone) && !slices.ContainsFunc(st.Values, func(x float64) bool { return x != 0 && x > -hides }) {
			all = append(all, i)
		}
	}
	return all
}

// hides is what a score is lowered by at least that is hidden.
const hides = 1e30

// masking has other masks.
func (s *search) masking(e *Entry, sees masked) *program.Edited {
	ed := e.Program.Edit()
	for _, i := range masksOf(e) {
		st := &e.Program.Steps[i]
		own, ok := s.valueAt(e, e.Program.Result(i))
		if !ok {
			return nil
		}
		keys := st.Shape[len(st.Shape)-1]
		positions := make([]float64, len(own)/keys)
		for q := range positions { // those of a constant are those of the pass
			positions[q] = float64(s.m.Passes[e.Node.Pass].Past + q)
		}
		if st.Prim == program.Mask {
			if positions, ok = s.valueAt(e, st.Args[0]); !ok {
				return nil
			}
		}
		first := positions[len(positions)-1] + 1 - float64(keys)
		v := program.Value{Shape: st.Shape, Data: make([]float64, len(own))}
		for k := range own {
			row, column := k/keys, k%keys
			if !sees(positions[row], first+float64(column), row, column, own[k] == 0) {
				v.Data[k] = e.Call.Arith.Lowest()
			}
		}
		if st.Prim == program.Vector {
			ed.SetVector(i, v.Data)
		} else {
			ed.Pass(i, ed.Other(v))
		}
	}
	return ended(ed)
}

// valueAt is what a variable of the entry's own program shows; not to be written to.
func (s *search) valueAt(e *Entry, v program.Var) ([]float64, bool) {
	d, err := e.Program.Edit().Only(v)
	if err != nil {
		return nil, false
	}
	kept, err := s.m.values(e)
	if s.failed(err) {
		return nil, false
	}
	x, err := kept.Eval(d)
	if s.failed(err) || len(x.Data) == 0 {
		return nil, false
	}
	return x.Data, true
}

// lowered tries other scores in the place of masked ones, where a mask is added: numbers that are usual, those of the configuration's
// caps, and the one that masked elements of the result have.
func (s *search) lowered() error {
	for i := range s.first.Program.Steps {
		mask, ok := s.maskOf(s.first, i)
		if !ok {
			continue
		}
		values := []float64{0}
		for _, f := range s.numbers {
			if f.plain && strings.Contains(f.field, fieldWords[SoftCap]) {
				values = append(values, -f.value)
			}
		}
		if c, ok := s.common(i, mask); ok && !slices.Contains(values, c) {
			values = append(values, c)
		}
		for rank, c := range append(values, -1, -10, -100, -1e4, -1e9) {
			m := Mistake{Kind: "mask.value", Place: "mask", X: some(c)}
			switch {
			case c == 0:
				m.Kind = "mask.multiplied"
			case slices.ContainsFunc(s.numbers, func(f number) bool {
				return f.plain && f.value == -c && strings.Contains(f.field, fieldWords[SoftCap])
			}):
				m.Kind = "mask.before-soft-cap"
			}
			if err := s.variant(300+rank, m, func(e *Entry) *program.Edited { return s.filled(e, c) }); err != nil {
				return err
			}
		}
		break
	}
	return nil
}

// common is the one number that the trace has in all masked elements, where the sum with the mask is the result.
func (s *search) common(step int, mask []float64) (c float64, ok bool) {
	p := s.first.Program
	y, _ := s.first.Target()
	if step != p.Source(p.Out) || len(mask) != len(y) {
		return 0, false
	}
	for i, m := range mask {
		switch {
		case m == 0:
		case !ok:
			c, ok = y[i], true
		case y[i] != c:
			return 0, false
		}
	}
	return c, ok
}

// maskOf is the mask that a sum adds, as the sum sees it.
func (s *search) maskOf(e *Entry, step int) ([]float64, bool) {
	st := &e.Program.Steps[step]
	if st.Prim != program.Add || len(st.Args) != 2 {
		return nil, false
	}
	for _, a := range st.Args {
		v, ok := s.valueAt(e, a)
		some := false
		if !ok || slices.ContainsFunc(v, func(x float64) bool { some = some || x != 0; return x != 0 && x > -1e30 }) || !some {
			continue
		}
		return v, true
	}
	return nil, false
}

// filled has a number in place of masked scores.
func (s *search) filled(e *Entry, c float64) *program.Edited {
	ed, some := e.Program.Edit(), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		mask, ok := s.maskOf(e, i)
		if !ok {
			continue
		}
		some = true
		for k := range st.Args {
			if v, _ := s.valueAt(e, st.Args[k]); !slices.Equal(v, mask) {
				continue
			}
			keep, fill := program.Value{Shape: st.Shape, Data: make([]float64, len(mask))}, program.Value{Shape: st.Shape, Data: make([]float64, len(mask))}
			for j, m := range mask {
				if m == 0 {
					keep.Data[j] = 1
				} else {
					fill.Data[j] = c
				}
			}
			ed.Pass(i, ed.Add("", ed.Mul("", st.Args[1-k], ed.Other(keep)), ed.Other(fill)))
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// after tries a softmax of what is not masked, whose result is masked: of what the mask is added to, or of a captured tensor.
func (s *search) after() error {
	p := s.first.Program
	all := p.Softmaxes()
	if len(all) == 0 {
		return nil
	}
	m := Mistake{Kind: "mask.after-softmax", Place: s.site(s.first, all[0])}
	if err := s.variant(400, m, func(e *Entry) *program.Edited { return s.maskedLast(e, "") }); err != nil {
		return err
	}
	inputs := leafSteps(s.first.signed(s.m), program.Input)
	if len(inputs) == 0 {
		return nil
	}
	own := s.m.List.Entries[s.first.Inputs[p.Steps[inputs[0]].Index].Entry].Name
	for rank, other := range s.captured(own) {
		if err := s.variant(401+rank, m, func(e *Entry) *program.Edited {
			return s.maskedLast(e, beside(other, s.m.List.Entries[e.Node.Entry].Name))
		}); err != nil {
			return err
		}
	}
	return nil
}

// maskedLast has softmaxes of a captured tensor, or of what a mask is added to, with 0 where the right result has it.
func (s *search) maskedLast(e *Entry, other string) *program.Edited {
	p, ed := e.Program, e.Program.Edit()
	all := p.Softmaxes()
	for _, i := range all {
		x, _ := p.SoftmaxOf(i)
		own, ok := s.valueAt(e, p.Result(i))
		if !ok {
			return nil
		}
		keep := program.Value{Shape: p.Steps[i].Shape, Data: make([]float64, len(own))}
		for k, v := range own {
			if v > 0 {
				keep.Data[k] = 1
			}
		}
		var from program.Var
		if other == "" {
			sum := p.Source(x)
			mask, ok := s.maskOf(e, sum)
			if !ok {
				return nil
			}
			st := &p.Steps[sum]
			from = st.Args[0]
			if v, _ := s.valueAt(e, from); slices.Equal(v, mask) {
				from = st.Args[1]
			}
		} else {
			v, ok := s.tensor(e, source{name: other})
			if !ok || !slices.Equal(v.Shape, x.Shape()) {
				return nil
			}
			from = ed.Other(v)
		}
		exp := ed.Exp("", ed.Sub("", from, ed.RowMax(from)))
		ed.Pass(i, ed.Mul("", ed.Div("", exp, ed.Sum("", exp)), ed.Other(keep)))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}

// FirstKeysMasked reports whether the mistake is a mask that hides the first n keys from every query. Padding in front of a text has the same effect.
func (f *Finding) FirstKeysMasked(n int) bool {
	if f == nil {
		return false
	}
	m := f.Mistake
	m.Place = ""
	return m == Mistake{Kind: "mask.first-keys-masked", N: n}
}
