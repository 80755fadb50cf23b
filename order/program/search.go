package program

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Search evaluates one program on one set of inputs under many choices. What has been computed once is not computed again:
// a step with the same choice on equal operands has an equal result. Operands are equal when their numbers are, however they
// came about: most roundings change nothing that a later step sees. Not for several goroutines.
type Search struct {
	p       *Program
	c       Call
	leaves  run
	memo    map[string]int
	results []operand
	of      []int // the step of each result
	byHash  map[uint64][]int
	held    int // elements of results

	Evaluations, Steps int // how many were asked for, and how many steps were computed
}

// maxHeld is how many elements of results are kept; what is more is forgotten, and computed again.
const maxHeld = 1 << 24

// Search prepares a program for many choices on the same inputs. The error is that of the inputs.
func (p *Program) Search(c Call) (*Search, error) {
	single := *p
	single.stages, single.whole = nil, nil
	for i := range p.Steps {
		if !p.Steps[i].Prim.IsLeaf() {
			single.stages = append(single.stages, alone(p, i))
		}
	}
	if err := c.Some.in(p.Out.Shape); err != nil {
		return nil, err
	}
	s := &Search{p: &single, c: c}
	s.forget()
	s.leaves = run{p: s.p, c: &s.c, a: c.Arith, values: make([]operand, len(p.Steps)), need: single.need(c.Some, nil, single.stages), few: single.columns(c.Some)}
	s.leaves.slots = single.slots(s.leaves.need)
	if c.Some != nil {
		s.leaves.spare = spare{}
	}
	for i := range p.Steps {
		if st := &p.Steps[i]; st.Prim.IsLeaf() && st.Prim != Number {
			if err := s.leaves.leaf(i, st); err != nil {
				return nil, err
			}
			if o := &s.leaves.values[i]; c.Bounds && o.e == nil {
				o.e = make([]float64, len(o.v))
			}
		}
	}
	return s, nil
}

// forget drops all results. Their room is used again if the search evaluates a part: then no caller holds a result, only copies.
func (s *Search) forget() {
	for id, o := range s.results {
		s.leaves.free(s.of[id], o)
	}
	s.memo, s.byHash, s.results, s.of, s.held = map[string]int{}, map[uint64][]int{}, nil, nil, 0
}

// alone is the stage of one step.
func alone(p *Program, i int) stage {
	s := &p.Steps[i]
	st := stage{steps: []int{i}}
	if s.Prim.ByElement() || s.Prim.byRow() {
		w := s.Shape[len(s.Shape)-1]
		st.rows, st.width = Size(s.Shape)/max(w, 1), w
		if s.Prim.byRow() {
			st.width = s.Args[0].Last()
		}
	}
	return st
}

// Eval evaluates the program with choices. The result is shared with other results: it is not to be written to. The error is
// that of reading a weight.
func (s *Search) Eval(choices []Choice) (Value, error) {
	s.Evaluations++
	if s.held > maxHeld {
		s.forget()
	}
	r := run{p: s.p, c: &s.c, a: s.c.Arith, values: slices.Clone(s.leaves.values), need: s.leaves.need, slots: s.leaves.slots, few: s.leaves.few, spare: s.leaves.spare}
	r.a.Choices = choices
	ids := make([]int, len(s.p.Steps)) // of the results; a leaf that is always the same is −1
	var key []byte
	stage := 0
	for i := range s.p.Steps {
		st := &s.p.Steps[i]
		ids[i] = -1
		if st.Prim == Number {
			r.values[i] = r.number(i)
			if ids[i] = s.intern(r.values[i]); ids[i] == len(s.of) {
				s.of = append(s.of, i)
			}
			continue
		}
		if st.Prim.IsLeaf() {
			continue
		}
		key = binary.AppendUvarint(key[:0], uint64(i))
		key = append(key, choices[i].Way, byte(choices[i].Round))
		switch { // what else its bound depends on
		case st.Prim == RowMax && r.rounds(st.Form):
			key = append(key, 1)
		case st.Prim == Rsqrt:
			key = binary.BigEndian.AppendUint64(key, math.Float64bits(r.lowest(st.Args[0].Step)))
		case st.Prim == Gather, st.Prim == Scatter, st.Prim == Collect:
			if at, rank := chosen(s.p, st.Args[1]); at != nil {
				key = binary.AppendVarint(key, int64(ids[s.p.Steps[rank].Args[0].Step]))
			}
		}
		for _, a := range st.Args {
			key = binary.AppendVarint(key, int64(ids[a.Step]))
		}
		id, ok := s.memo[string(key)]
		if ok {
			r.values[i] = s.results[id]
		} else {
			s.Steps++
			if err := r.stage(stage); err != nil {
				return Value{}, err
			}
			own := r.values[i]
			if id = s.intern(own); id < len(s.of) {
				r.free(i, own)
			} else {
				s.of = append(s.of, i)
			}
			s.memo[string(key)] = id
			r.values[i] = s.results[id]
		}
		ids[i] = id
		stage++
	}
	return r.some()
}

// intern returns the number of a result, which is the number of an equal result if there is one. Two results are equal if their needed numbers are.
func (s *Search) intern(o operand) int {
	sum := mixed(mixed(0, o.v), o.e)
	for _, id := range s.byHash[sum] {
		if same := s.results[id]; sameBits(same.v, o.v) && sameBits(same.e, o.e) {
			return id
		}
	}
	s.results = append(s.results, o)
	s.held += len(o.v) + len(o.e)
	id := len(s.results) - 1
	s.byHash[sum] = append(s.byHash[sum], id)
	return id
}

// mixed mixes the bits of numbers into a hash.
func mixed(hash uint64, x []float64) uint64 {
	for _, v := range x {
		high, low := bits.Mul64(hash^math.Float64bits(v), 0x9e3779b97f4a7c15) // 2⁶⁴ over the golden ratio
		hash = high ^ low + 1
	}
	return hash
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
