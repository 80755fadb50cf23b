package redflag

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// fed holds the token ids of each pass, and the positions of the tokens that a trace shows.
type fed struct {
	scope  capture.Scope
	ids    [][]int       // by pass; nil if a pass has none
	length []int         // by pass, the tokens of one sequence
	shown  map[int][]int // by pass, the tokens that a capture of some positions shows
}

// readFed reads the token ids of every pass. If a pass has no ids, or has ids of another form, no ids are known.
func (v *view) readFed(ctx context.Context) (fed, error) {
	f := fed{scope: v.t.Manifest().Scope, shown: map[int][]int{}}
	for pass := range v.passes {
		s := v.find(pass, order.InputIDs)
		if s == nil || s.DType.Float() || s.elements() > maxRow {
			f.ids = nil
			return f, nil
		}
		row, err := v.row(ctx, s, 0, int(s.elements()))
		if err != nil {
			return f, err
		}
		ids := make([]int, len(row))
		for i, x := range row {
			ids[i] = int(x)
		}
		f.ids, f.length = append(f.ids, ids), append(f.length, s.dim(1))
	}
	return f, nil
}

// partial reports whether the trace is a capture of some positions.
func (f *fed) partial() bool { return len(f.scope.Positions) > 0 }

// of returns the ids of a pass; nil if the ids are not known.
func (f *fed) of(pass int) []int {
	if pass >= len(f.ids) {
		return nil
	}
	return f.ids[pass]
}

// token returns the token of the pass to which a row of a tensor belongs, and the number of tokens of the pass. In a capture of some positions the
// tensor has rows for some tokens only. known is false if the token cannot be determined.
func (f *fed) token(pass, row, rows int) (index, tokens int, known bool) {
	if !f.partial() {
		return row, rows, true
	}
	if pass >= len(f.ids) {
		return 0, 0, false
	}
	if _, there := f.shown[pass]; !there {
		past := 0
		for _, ids := range f.ids[:pass] {
			past += len(ids)
		}
		f.shown[pass] = f.scope.Rows(past, len(f.ids[pass]))
	}
	shown := f.shown[pass]
	if len(shown) != rows || row >= rows {
		return 0, 0, false
	}
	return shown[row], len(f.ids[pass]), true
}

// id returns the id at a row of a tensor of a pass, and whether it is known.
func (f *fed) id(pass, row, rows int) (int, bool) {
	index, tokens, known := f.token(pass, row, rows)
	if !known || pass >= len(f.ids) || len(f.ids[pass]) != tokens {
		return 0, false
	}
	return f.ids[pass][index], true
}

// behind returns the id of the token whose row of logits is given, and whether the id is known. A single row of a pass of several tokens
// belongs to the last token.
func (f *fed) behind(pass, row, rows int) (id int, known bool) {
	if ids := f.of(pass); rows == 1 && len(ids) > 1 && !f.partial() {
		return ids[len(ids)-1], true
	}
	return f.id(pass, row, rows)
}

// upTo is the number of tokens of a sequence up to the end of a pass; 0 if the number is not known.
func (f *fed) upTo(pass int) (tokens int64) {
	if pass >= len(f.ids) {
		return 0
	}
	for _, n := range f.length[:pass+1] {
		tokens += int64(n)
	}
	return tokens
}
