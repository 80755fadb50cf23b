package redflag

import (
	"context"
	"math"
	"slices"
	"strings"
)

// rope compares queries and keys before and after their rotation: [.., T, h, D] or [.., T, h·D] before, [.., h, T, D] after.
func rope(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		base, ok := strings.CutSuffix(s.name, "_rope")
		if !ok || !s.DType.Float() || len(s.Shape) < 3 || s.elements() == 0 || s.dim(1) > maxRow {
			continue
		}
		plain := v.find(s.pass, base+"_norm")
		if plain == nil {
			plain = v.find(s.pass, base+"_proj")
		}
		if plain == nil || plain.elements() != s.elements() || plain.DType != s.DType {
			continue
		}
		if err := turned(ctx, v, f, plain, s); err != nil {
			return err
		}
	}
	return nil
}

// turned compares the vectors of each token before and after the rotation.
func turned(ctx context.Context, v *view, f *found, plain, s *subject) error {
	heads, tokens, width := s.dim(3), s.dim(2), s.dim(1)
	if int64(heads)*int64(tokens)*int64(width) != s.elements() {
		return nil // more than one sequence
	}
	at := above(v, s.pass, tokens)
	if len(at) == 0 || !f.look(RopeUnchanged) {
		return nil
	}
	still, first, least := 0, -1, math.Inf(1)
	x, y := make([]float64, width), make([]float64, width)
	most := make([]float64, min(heads, maxHeads)) // by head, the largest change
	for _, t := range at {
		diff, length := 0., 0.
		for h := range heads {
			if err := v.read(ctx, plain, (int64(t)*int64(heads)+int64(h))*int64(width), x); err != nil {
				return err
			}
			if err := v.read(ctx, s, (int64(h)*int64(tokens)+int64(t))*int64(width), y); err != nil {
				return err
			}
			here, long := 0., 0.
			for j := range x {
				here += (x[j] - y[j]) * (x[j] - y[j])
				long += x[j] * x[j]
			}
			if change := math.Sqrt(here / long); h < len(most) && !(change <= most[h]) { // NaN for a head of zeros, which says nothing
				most[h] = change
			}
			diff, length = diff+here, length+long
		}
		if !(length > 0) {
			continue // zeros have a flag of their own
		}
		change := math.Sqrt(diff / length)
		least = min(least, change)
		if change <= v.limits.rotation.unturned {
			if still++; first < 0 {
				first = t
			}
		}
	}
	if still == 0 {
		turnedByHead(v, f, plain, s, len(at), most)
		return nil
	}
	f.raise(RopeUnchanged, s, []Number{number("tokens", float64(len(at))), number("unchanged", float64(still)), number("change", least), number("limit", v.limits.rotation.unturned)},
		"%d of the %d tokens looked at, the first at index %d, equal %s: the relative change is %.3g", still, len(at), first, plain.name, least)
	return nil
}

// turnedByHead looks for a head that is turned at no token, while other heads are turned.
func turnedByHead(v *view, f *found, plain, s *subject, tokens int, most []float64) {
	for h, change := range most {
		if change <= v.limits.rotation.unturned {
			f.raise(RopeUnchanged, s, []Number{number("head", float64(h)), number("heads", float64(s.dim(3))), number("tokens", float64(tokens)), number("change", change), number("limit", v.limits.rotation.unturned)},
				"head %d of %d equals %s, at all %d tokens looked at: the relative change is at most %.3g", h, s.dim(3), plain.name, tokens, change)
			return
		}
	}
}

// above returns up to turnedTokens rows of a pass whose tokens stand above position 0: the first, the last, and rows evenly between.
func above(v *view, pass, rows int) []int {
	from := 0
	if index, _, known := v.fed.token(pass, 0, rows); pass == 0 && (index == 0 || !known) {
		from = 1
	}
	n := rows - from
	if n <= 0 {
		return nil
	}
	count := min(n, turnedTokens)
	at := make([]int, count)
	for i := range at {
		at[i] = from
		if count > 1 {
			at[i] += int(int64(i) * int64(n-1) / int64(count-1))
		}
	}
	return at
}

// rotary looks at the tables of cosines and sines, [.., T, D].
func rotary(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		sin := &v.subjects[i]
		base, ok := strings.CutSuffix(sin.name, "sin")
		if !ok || !sin.is(roleTable) || !sin.DType.Float() || sin.elements() == 0 {
			continue
		}
		cos := v.find(sin.pass, base+"cos")
		if cos == nil || !slices.Equal(cos.Shape, sin.Shape) || len(sin.Shape) < 2 || sin.dim(1) > maxRow {
			continue
		}
		if err := compareAngles(ctx, v, f, cos, sin); err != nil {
			return err
		}
	}
	return nil
}

// angles are the cosines and sines of one token, from a pair of tables.
type angles struct{ cos, sin []float64 }

func newAngles(width int) angles { return angles{make([]float64, width), make([]float64, width)} }

// compareAngles walks a pair of tables token by token, from the last token of the pass before.
func compareAngles(ctx context.Context, v *view, f *found, cos, sin *subject) error {
	width, tokens := sin.dim(1), sin.dim(2)
	if sin.elements() != int64(width)*int64(tokens) {
		return nil // a table for each of several sequences
	}
	wanted := f.look(RotaryFrozen)
	if zeroAngles(v, f, sin) || !wanted { // zero angles do not grow: one flag is enough
		return nil
	}
	before, err := lastAngles(ctx, v, cos, sin)
	if err != nil {
		return err
	}
	known := before.cos != nil
	if !known {
		before = newAngles(width)
	}
	here := newAngles(width)
	for t := range tokens {
		if err := v.read(ctx, cos, int64(t)*int64(width), here.cos); err != nil {
			return err
		}
		if err := v.read(ctx, sin, int64(t)*int64(width), here.sin); err != nil {
			return err
		}
		if known && frozen(v, f, sin, t, before, here) {
			return nil
		}
		before, here, known = here, before, true
	}
	return nil
}

// zeroAngles looks for a table whose angles are all zero. A table of position 0 only is not judged.
func zeroAngles(v *view, f *found, sin *subject) bool {
	if sin.pass == 0 && sin.dim(2) == 1 {
		return false
	}
	m := &sin.seen.moments
	if !f.look(RotaryZero) || sin.seen.bad() || max(m.Max, -m.Min) > v.limits.rotation.angle {
		return false
	}
	f.raise(RotaryZero, sin, []Number{number("largest", sin.seen.largest), number("limit", v.limits.rotation.angle)}, "the sines of all %d tokens are at most %.3g", sin.dim(2), sin.seen.largest)
	return true
}

// lastAngles are the angles of the last token of the pass before; empty if the trace does not have them.
func lastAngles(ctx context.Context, v *view, cos, sin *subject) (last angles, err error) {
	a, b := v.find(sin.pass-1, cos.name), v.find(sin.pass-1, sin.name)
	width := sin.dim(1)
	if a == nil || b == nil || !slices.Equal(a.Shape, b.Shape) || b.dim(1) != width || b.dim(2) == 0 || b.elements() != int64(width)*int64(b.dim(2)) {
		return angles{}, nil
	}
	from := b.elements() - int64(width)
	if last.cos, err = v.row(ctx, a, from, width); err != nil {
		return angles{}, err
	}
	last.sin, err = v.row(ctx, b, from, width)
	return last, err
}

// frozen compares the angles of a token with the angles of the token before.
func frozen(v *view, f *found, sin *subject, t int, before, here angles) bool {
	c0, s0, c, s := before.cos, before.sin, here.cos, here.sin
	most := 0.
	for j := range c {
		for _, far := range []float64{math.Abs(c[j] - c0[j]), math.Abs(s[j] - s0[j])} {
			if !(far <= most) {
				most = far
			}
		}
	}
	if most <= v.limits.rotation.angle {
		f.raise(RotaryFrozen, sin, []Number{number("token", float64(t)), number("difference", most), number("limit", v.limits.rotation.angle)},
			"token %d has the angles of the token before it, within %.3g", t, most)
		return true
	}
	// The first frequency is the highest, and turns at most 1 radian per position. In a capture of some positions two rows may be any number of
	// positions apart.
	turn := math.Atan2(s[0]*c0[0]-c[0]*s0[0], c[0]*c0[0]+s[0]*s0[0])
	if !v.fed.partial() && turn < -v.limits.rotation.backwards {
		f.raise(RotaryFrozen, sin, []Number{number("token", float64(t)), number("turn", turn), number("limit", -v.limits.rotation.backwards)},
			"the first angle of token %d is %.3g radians less than the angle of the token before it", t, -turn)
		return true
	}
	return false
}
