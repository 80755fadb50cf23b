package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Enough reports whether elements in some number of rows are a proof. If the arithmetic acts on a whole row by one
// number, such as the rounded root in a norm, each row is only one random draw, so the rows count instead.
func Enough(elements, rows int, byRow bool) bool {
	if byRow {
		return rows >= thresholds.Proof.Elements
	}
	return elements >= thresholds.Proof.Elements && rows >= thresholds.Proof.Rows
}

// proven reports whether some entries together show enough that transformers' arithmetic does not give.
func proven(of []*isolate.Evidence) bool {
	elements, rows := counted(of)
	return Enough(elements, rows, false)
}

// counted counts the elements that are left of some entries, and the rows of these elements.
func counted(of []*isolate.Evidence) (elements, rows int) {
	for _, e := range of {
		elements += len(e.Left)
		rows += isolate.RowsIn(e.Trial, e.Left)
	}
	return elements, rows
}

// provenBy reports whether entries prove the arithmetic explaining them: as a whole, in the part beyond the proofs
// of smaller forms, and in each choice of a descent. With so many tries, one choice may explain the remaining
// elements of a mistake by chance, on top of the engine's own arithmetic.
func provenBy(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	if tables, err := provenByTables(ctx, a, of); tables || err != nil {
		return tables, err
	}
	shown, err := shownBy(ctx, a, of)
	if !shown || err != nil {
		return false, err
	}
	if a.Beside != nil {
		if little, err := leavesLittle(ctx, a.Beside, of, a); little || err != nil {
			return false, err
		}
	}
	for at, before := range a.Flips {
		now, ok := a.At[at]
		if b := a.With(at, before); ok && now != before {
			if little, err := leavesLittle(ctx, b, of, a); little || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// shownBy reports whether an arithmetic shows enough that transformers' does not give. An element that it leaves a choice, since a
// rounding point before it lies at a midpoint, shows nothing.
func shownBy(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	own := &isolate.Arithmetic{Open: a.Open}
	byRow, err := actsByRow(a, of, own)
	if err != nil {
		return false, err
	}
	elements, rows := 0, 0
	for _, e := range of {
		if len(e.Left) == 0 && a.Rewrites.Order() == 0 {
			continue
		}
		j, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: a})
		if err != nil {
			return false, err
		}
		k, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: own})
		if err != nil {
			return false, err
		}
		shown := slices.DeleteFunc(slices.Clone(e.Left), func(i int) bool { return !j.Definite(i) || !j.Apart(k, i) })
		if a.Rewrites.Order() != 0 && j.Model == hooks.F32 {
			shown = j.Only(k)
		}
		elements += len(shown)
		rows += isolate.RowsIn(e.Trial, shown)
		if Enough(elements, rows, byRow) {
			return true, nil
		}
	}
	return false, nil
}

// showIn returns the entries in which an arithmetic can show: the entries with elements unexplained by
// transformers', or, for an order of additions, all entries, since an order changes bits everywhere.
func showIn(a *isolate.Arithmetic, entries, left []*isolate.Evidence) []*isolate.Evidence {
	if a.Rewrites.Order() != 0 {
		return entries
	}
	return left
}

// actsByRow reports whether every difference between two arithmetics acts on a row of the result by one number.
func actsByRow(a *isolate.Arithmetic, of []*isolate.Evidence, b *isolate.Arithmetic) (bool, error) {
	if len(of) == 0 || a.Rewrites != b.Rewrites {
		return false, nil
	}
	p, err := of[0].Rewritten(a.Rewrites)
	if err != nil {
		return false, err
	}
	x, y := a.Choices(p), b.Choices(p)
	own := p.Own()
	if x == nil {
		x = own
	}
	if y == nil {
		y = own
	}
	for i := range own {
		if x[i] != y[i] && !edit.ByRow(p, i) {
			return false, nil
		}
	}
	return true, nil
}

// thin says which suspects have too few elements left to be called wrong. The suspects with few elements have to be a proof without the others: a wrong entry
// says nothing about a suspect with one element.
type thin struct {
	few    bool // the suspects with fewer elements than a proof needs
	others bool
}

// is reports whether a suspect with this many elements left is thin.
func (t thin) is(left int) bool {
	if left < thresholds.Proof.Elements {
		return t.few
	}
	return t.others
}

// thinUnder says what is thin of the elements that an arithmetic other than transformers' leaves of suspects. The search chose the arithmetic by the number of
// explained elements; a different arithmetic with as many may explain the elements left.
func thinUnder(ctx context.Context, a *isolate.Arithmetic, suspects []*isolate.Evidence) (thin, error) {
	if a.Strict() {
		return thin{}, nil
	}
	var few, others []*isolate.Evidence
	for _, e := range suspects {
		_, rest, _, err := e.Judge(ctx, a)
		if err != nil {
			return thin{}, err
		}
		if len(rest) < thresholds.Proof.Elements {
			few = append(few, e)
		} else {
			others = append(others, e)
		}
	}
	var t thin
	var err error
	if t.few, err = leavesLittle(ctx, a, few, nil); err != nil {
		return thin{}, err
	}
	t.others, err = leavesLittle(ctx, a, others, nil)
	return t, err
}

// leavesLittle reports whether an arithmetic leaves fewer elements of some entries than a proof of other needs. If
// other is nil, the fewest elements of any proof count.
func leavesLittle(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence, other *isolate.Arithmetic) (bool, error) {
	byRow := false
	if other != nil {
		var err error
		if byRow, err = actsByRow(a, of, other); err != nil {
			return false, err
		}
	}
	elements, rows := 0, 0
	for _, e := range of {
		_, rest, _, err := e.Judge(ctx, a)
		if err != nil {
			return false, err
		}
		elements, rows = elements+len(rest), rows+isolate.RowsIn(e.Trial, rest)
	}
	return !Enough(elements, rows, byRow), nil
}

// An engine has one arithmetic for all entries of a form, because the programs of their cuts are equal except for
// numbers. So an explanation of one entry, other than transformers' own arithmetic, is tested on all entries of the
// form.

// Verdict is what is known of a form's arithmetic.
type Verdict struct {
	// Own is the arithmetic of the form, transformers' or another; nil if no arithmetic holds for most entries.
	// Second is the arithmetic of the remaining entries, or nil.
	Own, Second *isolate.Arithmetic
	// unproven explains all entries, or all that some choice of roundings gives, but the entries show too few elements to tell this arithmetic from a mistake:
	// a way of making tables, or any arithmetic if Own has suspects. What it explains is neither right nor wrong.
	unproven *isolate.Arithmetic
	// Wrong is the change to the operation that explains all entries, where no arithmetic does.
	Wrong Mistake
	// Definite: the change is one under own, and an entry may be held to it. Else the change may be under another arithmetic.
	Definite bool
	// Reread is the operand that the engine reads before it is rounded, where no arithmetic on captured operands holds.
	Reread *rereading
	// HasSuspects: own leaves something of entries, and second does not explain it.
	HasSuspects bool
	thin        thin
	stopped     bool // a search for the arithmetic stopped at its limit
}

// explainedBy reports whether each entry is explained by one of some arithmetics; nil arithmetics are skipped.
func (f *Form) explainedBy(ctx context.Context, some ...*isolate.Arithmetic) (bool, error) {
	for _, e := range f.Entries {
		explained := false
		for _, a := range some {
			if a == nil || explained {
				continue
			}
			var err error
			if explained, err = givenBy(ctx, e, a); err != nil {
				return false, err
			}
		}
		if !explained {
			return false, nil
		}
	}
	return true, nil
}

// hasMistake reports whether the change found in the examined entries of the form also explains this entry.
func (f *Verdict) hasMistake(ctx context.Context, t *isolate.Trial) (bool, error) {
	if f.Wrong == nil || !f.Definite {
		return f.Wrong != nil, nil
	}
	j, err := f.Wrong.Judge(ctx, t, f.Own)
	return j != nil, err
}
