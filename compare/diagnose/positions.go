package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	positionsSite = "positions" // the place of mistakes of positions
	// mostOffset limits the offset of positions, and the last position that all tokens may share.
	mostOffset = 64
)

// positions yields other positions of the tokens of a pass.
func positions(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if len(edit.StepsOf(s.first.Program, program.Angle)) == 0 {
			return
		}
		p, only := onlyPlace(s)
		var all []Mistake
		if only {
			all = otherPlaces(p)
		}
		all = append(all, usualPositions(s)...)
		if !only { // one position shows no rule
			all = append(all, ruledPositions(s)...)
		}
		for _, m := range all {
			if m.Place = positionsSite; !yield(m) {
				return
			}
		}
	}
}

// end is the position after the last token of all entries.
func end(s *search) (tokens int) {
	for _, e := range s.entries {
		tokens = max(tokens, s.m.Passes[e.Node.Pass].Past+s.m.Passes[e.Node.Pass].Tokens)
	}
	return tokens
}

// usualPositions lists mistakes that ports often have. Positions are a few off, are all 0, count from 0, or are multiplied. Angles or positions have a narrower
// type. Positions are rounded down, or begin again at each chunk.
func usualPositions(s *search) []Mistake {
	all := []Mistake{
		{Kind: "position.first-at", N: 1},
		{Kind: "position.behind-pass", N: -1},
		{Kind: "position.first-at", N: 2},
		{Kind: "position.behind-pass", N: -2},
		{Kind: "position.all-zero"},
		{Kind: "position.from-zero"},
		{Kind: "position.advanced"},
	}
	for _, k := range []float64{2, 4, 8, 16, 0.5, 0.25, 0.125} {
		all = append(all, Mistake{Kind: "position.multiplied", By: literal(k)})
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		all = append(all, Mistake{Kind: "rope.angles-rounded", DType: d}, Mistake{Kind: "position.rounded", DType: d})
	}
	by := []float64{2, 4, 8, 16, 32}
	for _, n := range s.numbers {
		if n.plain && field(n.field) == "factor" && !slices.Contains(by, n.value) {
			by = append(by, n.value)
		}
	}
	for _, n := range by {
		all = append(all, Mistake{Kind: "position.multiples", By: literal(n)})
	}
	for n := 2; n < min(end(s), mostOffset); n++ {
		all = append(all, Mistake{Kind: "position.chunks", N: n})
	}
	return all
}

// ruledPositions lists rules for all positions: the positions stand still, are off by more than 2, end at a last position (the table is too short),
// begin later (tokens are counted as padding), are off from one token on, or count down.
func ruledPositions(s *search) (all []Mistake) {
	add := func(kind Kind, n, m int) { all = append(all, Mistake{Kind: kind, N: n, M: m}) }
	for k := 1; k <= mostOffset; k++ {
		add("position.still", k, 0)
	}
	for k := 3; k <= mostOffset; k++ {
		add("position.offset", k, 0)
		add("position.offset", -k, 0)
	}
	last := min(end(s), mostOffset) - 1
	for n := last - 1; n > 0; n-- {
		add("position.last", n, 0)
	}
	for n := 1; n < last; n++ {
		add("position.padding", n, 0)
	}
	for n := 1; n <= last; n++ {
		add("position.offset-from", 1, n)
		add("position.offset-from", -1, n)
	}
	add("position.reversed", 0, 0)
	return all
}

// otherPlaces lists other positions for entries with only one position, the nearest first. A single position does not show a rule, so otherPlaces
// takes the place of ruledPositions.
func otherPlaces(p float64) (all []Mistake) {
	add := func(k float64) {
		m := Mistake{Kind: "position.ahead", For: literal(p), X: some(k), By: literal(k - p)}
		if k < p {
			m.Kind, m.By = "position.behind", literal(p-k)
		}
		all = append(all, m)
	}
	for d := 1.0; d <= mostOffset; d++ {
		if add(p + d); p >= d {
			add(p - d)
		}
	}
	for k := 0.0; k < min(p-mostOffset, mostOffset+1); k++ {
		add(k)
	}
	return all
}

// farPlace counts the solved numbers of a mistake of one position: the new position counts unless it is 0 or near the right one.
func farPlace(m Mistake) int {
	if math.Abs(m.X.Value-m.For.X) > 2 && m.X.Value != 0 {
		return 1
	}
	return 0
}

// onlyPlace returns the position of the entries if they have a single position, as in one decode step.
func onlyPlace(s *search) (p float64, only bool) {
	pass := s.first.Node.Pass
	if s.m.Passes[pass].Tokens > 1 || slices.ContainsFunc(s.entries, func(e *Entry) bool { return e.Node.Pass != pass }) {
		return 0, false
	}
	for k, i := range edit.StepsOf(s.first.Program, program.Angle) {
		positions, ok := s.valueAt(s.first, s.first.Program.Steps[i].Args[1])
		if !ok {
			return 0, false
		} else if k == 0 {
			p = positions[0]
		}
		if slices.ContainsFunc(positions, func(x float64) bool { return x != p }) {
			return 0, false
		}
	}
	return p, true
}

// otherPositions makes a program with other positions, which the program computes from the right positions.
func otherPositions(s *subject, e *Entry, m Mistake) *program.Edited {
	pass := s.m.Passes[e.Node.Pass]
	by, plus := 1.0, 0.0
	switch m.Kind {
	case "position.all-zero":
		by = 0
	case "position.multiplied":
		by = m.By.X
	case "position.from-zero":
		plus = -float64(pass.Past)
	case "position.advanced":
		plus = float64(pass.Tokens)
	default:
		plus = float64(m.N)
	}
	return edit.Positions(e.Program, func(ed *edit.Editor, v program.Var) program.Var {
		if by != 1 {
			return ed.Mul("", v, ed.Literal(by))
		}
		return ed.Add("", v, ed.Literal(plus))
	})
}

// positioned is a mistake at one position of a pass, with the number of tokens of the prompt.
type positioned struct {
	Mistake
	p, prompt float64
}

// positionRules give the position that the port uses for a token.
var positionRules = map[Kind]func(at positioned) float64{
	"position.rounded":   func(at positioned) float64 { return floats.Round(at.DType, at.p) },
	"position.multiples": func(at positioned) float64 { return math.Floor(at.p/at.By.X) * at.By.X },
	"position.chunks":    func(at positioned) float64 { return math.Mod(at.p, float64(at.N)) },
	"position.still":     func(at positioned) float64 { return float64(at.N) },
	"position.offset":    func(at positioned) float64 { return at.p + float64(at.N) },
	"position.offset-from": func(at positioned) float64 {
		if at.p >= float64(at.M) {
			return at.p + float64(at.N)
		}
		return at.p
	},
	"position.last":       func(at positioned) float64 { return min(at.p, float64(at.N)) },
	"position.padding":    func(at positioned) float64 { return max(at.p-float64(at.N), 0) },
	"position.reversed":   func(at positioned) float64 { return math.Abs(at.prompt - 1 - at.p) },
	"position.ahead":      func(at positioned) float64 { return at.X.Value },
	"position.behind":     func(at positioned) float64 { return at.X.Value },
	"rope.angles-rounded": func(at positioned) float64 { return at.p },
}

// otherAngles makes the products of frequencies and the port's positions.
func otherAngles(s *subject, e *Entry, m Mistake) *program.Edited {
	ed, rule := edit.NewEditor(e.Program), positionRules[m.Kind]
	all := edit.StepsOf(e.Program, program.Angle)
	for _, i := range all {
		st := &e.Program.Steps[i]
		frequencies, ok := s.valueAt(e, st.Args[0])
		positions, has := s.valueAt(e, st.Args[1])
		if !ok || !has || len(frequencies) != len(positions) {
			return nil
		}
		v := program.Value{Shape: st.Shape, Data: make([]float64, len(positions)), Bound: make([]float64, len(positions))}
		for k, p := range positions {
			angle := float64(float32(frequencies[k] * float64(float32(rule(positioned{m, p, float64(s.m.Passes[0].Tokens)})))))
			if m.Kind == "rope.angles-rounded" {
				angle = floats.Round(m.DType, angle)
			}
			v.Data[k], v.Bound[k] = angle, 3*0x1p-24*math.Abs(angle) // the bound of the primitive
		}
		ed.Pass(i, ed.Other(v))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
