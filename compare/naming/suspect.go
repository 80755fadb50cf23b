package naming

import (
	"context"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// suspect is an entry with unexplained elements, prepared for a search for its mistake.
type suspect struct {
	*isolate.Evidence // Left has the elements unexplained by a
	a                 *isolate.Arithmetic
	entry             *diagnose.Entry
	small             *diagnose.Entry
	few               *suspect // of few tokens; nil for a small entry
	own               *isolate.Judgement
	wrong             bool // the entry is known to be wrong: a name decides no verdict
	// interrupted is the error of the search for which the entry was prepared; nil while the search goes on.
	interrupted func() error
}

// suspectOf prepares an entry for a search.
func suspectOf(ctx context.Context, e *isolate.Evidence, a *isolate.Arithmetic) (*diagnose.Entry, error) {
	s, err := suspectIn(ctx, e, a)
	if err != nil {
		return nil, err
	}
	if some := e.FocusAbove(isolate.FocusWork, isolate.FocusTokens, isolate.FocusColumns, false); some.Trial != e.Trial {
		if s.small, err = suspectOf(ctx, some, a); err != nil {
			return nil, err
		}
	}
	if few := e.Few(); few != nil {
		s.few = &suspect{Evidence: few, a: a, interrupted: ctx.Err}
		s.entry.Few = &diagnose.Few{Some: *few.Call.Some, Left: few.Left, Leaves: s.few.Leaves, Far: s.few.Far, Target: s.few.Target}
	}
	return s.entry, nil
}

// wrongOf prepares an entry that is known to be wrong for a search.
func wrongOf(ctx context.Context, e *isolate.Evidence, a *isolate.Arithmetic) (*diagnose.Entry, error) {
	entry, err := suspectOf(ctx, e, a)
	if err == nil {
		entry.Judge.(*suspect).wrong = true
	}
	return entry, err
}

// suspectIn prepares an entry in an arithmetic. Its judgement covers all elements.
func suspectIn(ctx context.Context, e *isolate.Evidence, a *isolate.Arithmetic) (*suspect, error) {
	p, err := e.Rewritten(a.Rewrites)
	if err != nil {
		return nil, err
	}
	s := &suspect{Evidence: e, a: a, interrupted: ctx.Err}
	call := e.Call
	call.Arith = e.Isolator.Env().Arith
	if a.Wide {
		call.In = e.Widened()
	}
	var items []*int
	for k := range e.Formula.Inputs {
		items = append(items, e.Formula.Item(k))
	}
	s.entry = &diagnose.Entry{
		Node: e.Node, Program: p, Call: call, Inputs: e.Formula.Inputs, Items: items, Weights: e.Formula.Weights, Left: e.Left, Judge: s,
	}
	s.small = s.entry
	return s, nil
}

// Small is the entry with fewer tokens and columns, where it is large.
func (s *suspect) Small() *diagnose.Entry { return s.small }

// Choices are those of the arithmetic.
func (s *suspect) Choices(p *program.Program) []program.Choice { return s.a.Choices(p) }

// Target is the trace's tensor.
func (s *suspect) Target() (y, half []float64) {
	half = make([]float64, len(s.Y.Data))
	for i, v := range s.Y.Data {
		half[i] = isolate.LastPlace(s.DType, v) / 2
	}
	return s.Y.Data, half
}

// Leaves lists elements not explained by a value, at most limit, beginning with the elements of Left.
func (s *suspect) Leaves(x program.Value, limit int) ([]int, error) {
	if !s.a.Open && s.Wider() { // what is shared is not written to
		x = program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
	}
	j, err := s.Hold(x, s.a, false)
	if err != nil {
		return nil, err
	}
	if rest := j.OutsideOf(s.Left, limit); len(rest) >= limit {
		return rest, nil
	}
	return j.OutsideOf(nil, limit), nil
}

// Far is the root mean square of the differences of a value and the trace's tensor.
func (s *suspect) Far(x program.Value) float64 {
	sum := 0.0
	for i, v := range x.Data {
		d := v - s.Y.Data[i]
		sum += d * d
	}
	return math.Sqrt(sum / float64(max(len(x.Data), 1)))
}

// Refuses judges another program than the entry's own in few tokens, also in orders of summation.
func (s *suspect) Refuses(p *program.Program, c program.Call) (bool, error) {
	if err := s.interrupted(); s.few == nil || err != nil {
		return false, err
	}
	c.Some = s.few.Call.Some
	j, err := s.few.given(context.Background(), p, c)
	return j == nil, err
}

// Explains judges another program than the entry's own, also in orders of summation.
func (s *suspect) Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	if err := s.interrupted(); err != nil {
		return false, 0, 0, err
	}
	if s.own == nil && s.Isolator.Env().DType == hooks.F32 { // else it is not asked
		if s.own, err = s.Evaluate(context.Background(), isolate.Evaluation{Arithmetic: s.a}); err != nil {
			return false, 0, 0, err
		}
	}
	j, err := s.given(context.Background(), p, c)
	if j == nil || err != nil {
		return false, 0, 0, err
	}
	apart := slices.DeleteFunc(slices.Clone(s.Left), func(i int) bool { return !j.Consistent(i) || !j.Definite(i) || !j.Apart(s.own, i) })
	rows = isolate.RowsIn(s.Evidence.Trial, apart)
	if bits, proof := suspectBits(s, j); !arithmetic.Enough(len(apart), rows, false) && proof > len(apart) {
		return true, proof, isolate.RowsIn(s.Evidence.Trial, bits), nil
	}
	if s.wrong && s.own != nil && !arithmetic.Enough(len(apart), rows, false) {
		if nearer := s.nearer(j.X.Data, s.own.X.Data); len(nearer) > len(apart) {
			return true, len(nearer), isolate.RowsIn(s.Evidence.Trial, nearer), nil
		}
	}
	return true, len(apart), rows, nil
}

// againstABit is how many elements of proof one unequal element takes away. The right edit gives at least 19 of 20 elements to the bit. A wrong edit whose
// bounds hold the trace gives half of them. So an equal element is log2(0.95/0.5) ≈ 1 bit of proof, and an unequal element takes log2(0.5/0.05) < 4
// bits away.
const againstABit = 4

// suspectBits lists the remaining elements that a program gives to the bit. proof is the number of definite elements that would prove as much. In 16 bits a
// rounding point near the midpoint of two numbers leaves every element of the row a choice, so that no element of the row is definite.
func suspectBits(s *suspect, j *isolate.Judgement) (bits []int, proof int) {
	if j.Model == hooks.F32 {
		return nil, 0
	}
	for _, i := range s.Left {
		if s.Y.Data[i] == j.Round(j.X.Data[i]) {
			bits = append(bits, i)
		}
	}
	return bits, len(bits) - againstABit*(len(s.Left)-len(bits))
}

// given judges another program than the entry's own, also in orders of summation. It returns nil if the program leaves an element, or if an element is guessed.
func (s *suspect) given(ctx context.Context, p *program.Program, c program.Call) (*isolate.Judgement, error) {
	return s.WithProgram(ctx, p, c, s.a)
}
