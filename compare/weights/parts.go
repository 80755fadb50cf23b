package weights

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/quant"
)

// sectionOf is the data from some byte on.
func sectionOf(data io.ReaderAt, from int64) io.ReaderAt {
	return io.NewSectionReader(data, from, math.MaxInt64-from)
}

// finding is what one row, or the wrong part of it, is.
type finding struct {
	kind     Kind
	factor   float64 // of ScaledRows
	shift    int     // of ShiftedRows and OtherBlock: the original's row is so many on; of Shifted: the original's column
	aside    int     // of OtherBlock: the original's columns are so many on
	from, to int     // columns, both included; the whole row for a row of its own
}

// run is consecutive rows with the same finding.
type run struct {
	finding
	first, last int
	least, most float64 // factors
}

// parts is the search for a name of each wrong row.
type parts struct{ *pair }

// inParts examines each wrong row separately.
func inParts(ctx context.Context, of *pair) (bool, error) {
	a := parts{of}
	rows, columns := a.local.flat()
	var mine, theirs []uint64
	if !a.single() { // a row in the place of another differs in more than one element
		var err error
		if mine, theirs, err = a.rowHashes(ctx); err != nil {
			return false, err
		}
	}
	where := map[uint64][]int{}
	for i, h := range theirs {
		if len(where[h]) < 8 {
			where[h] = append(where[h], i)
		}
	}
	bad := a.t.badRows()
	found := make([]finding, len(bad))
	var left []*piece
	for i, r := range bad {
		b, err := a.read(ctx, part{r, r + 1, 0, columns})
		if err != nil {
			return false, err
		}
		var same []int // rows of the original
		if mine != nil {
			same = where[mine[r]]
		}
		if found[i], err = a.ofBadRow(ctx, &b, same, len(left) <= mostPieces); err != nil {
			return false, err
		}
		if found[i].kind == Values && len(left) <= mostPieces {
			left = append(left, newPiece(&b, found[i], &found[i]))
		}
	}
	if len(left) > 0 && len(left) <= mostPieces {
		if err := a.piecesElsewhere(ctx, left); err != nil {
			return false, err
		}
	}
	var runs []run
	for i, r := range bad {
		runs = joinRun(runs, found[i], r)
	}
	return a.say(runs, rows, columns), nil
}

// ofBadRow names what is wrong with a row. same are rows of the original with its numbers; search says whether codes are looked for among all rows.
func (a parts) ofBadRow(ctx context.Context, b *block, same []int, search bool) (finding, error) {
	r, columns := b.r0, b.columns()
	from, to := int(a.t.left[r]), int(a.t.right[r])
	if a.coded() { // a mistake is one of whole groups, and some of their codes may be right
		group := b.group()
		from, to = from/group*group, min((to/group+1)*group, columns)-1
	}
	f := a.ofRow(b, from, to)
	if f.kind != Values {
		return f, nil
	}
	if off, is := a.stepOff(b, from, to); is {
		return off, nil
	}
	at := -1
	if len(same) > 0 {
		at = slices.MinFunc(same, func(x, y int) int { return abs(x-r) - abs(y-r) })
	} else if a.coded() && search {
		var err error
		if at, err = a.rowElsewhere(ctx, b); err != nil {
			return f, err
		}
	}
	if at >= 0 {
		return finding{kind: ShiftedRows, shift: at - r, from: 0, to: columns - 1}, nil
	}
	return a.shiftedRow(b, f), nil
}

func abs(x int) int { return max(x, -x) }

// rowHashes are those of all rows of both sides by the rule; nil for codes, whose rows are never the original's, and for one row.
func (a parts) rowHashes(ctx context.Context) (mine, theirs []uint64, err error) {
	if rows, _ := a.local.flat(); a.local.Coding != nil || rows < 2 {
		return nil, nil, nil
	}
	l, err := a.r.hashed(ctx, a.local, func(x float64) float64 { return x })
	if err != nil {
		return nil, nil, err
	}
	o, err := a.r.hashed(ctx, a.original, a.q.rounds)
	if err != nil {
		return nil, nil, err
	}
	return l[0], o[0], nil
}

// minFactor is how many elements of a row have to have one factor.
const minFactor = 4

// ofRow says what the columns from and to of a row are, by themselves: zero, one number, not finite, or the original times a factor.
func (a parts) ofRow(b *block, from, to int) finding {
	f := finding{kind: Values, from: from, to: to}
	zero, constant, odd, others := true, true, 0, false
	var both, whole float64
	n := 0
	for c := from; c <= to; c++ {
		l, x := b.local[c], a.q.makes(b.original[c])
		zero = zero && l == 0
		constant = constant && l == b.local[from]
		if l-l != 0 {
			odd++
		} else if !a.q.holds(l, b.original[c]) && b.coding == nil {
			others = true
		}
		if p := l * x; x != 0 && p-p == 0 {
			n++
			both += l * x
			whole += x * x
		}
	}
	switch {
	case zero:
		f.kind = Zero
		return f
	case odd > 0:
		if !others {
			f.kind = NotFinite
		}
		return f
	case constant && to > from:
		f.kind, f.factor = Constant, b.local[from]
		return f
	case n < minFactor || both == 0 || a.q.add != 0:
		return f
	}
	factors := a.factors()
	factor := factors.near(both / whole)
	q := rule{scale: factor, round: a.q.round}.nearly(a.local, 1)
	some := b.some(from, to+1)
	bad := make([]bool, to-from+1)
	q.judge(&some, bad)
	if slices.Contains(bad, true) {
		return f
	}
	if some.moves() {
		var e evidence
		if e.add(&a.q, &some, &q, some.original, 0, len(bad)); len(bad) < quant.MinMean || !e.enough() { // larger errors do not prove a factor
			return f
		}
	}
	f.kind, f.factor = ScaledRows, factor
	return f
}

// joinRun puts a row to the run before it, where the same is to be said of both.
func joinRun(runs []run, f finding, r int) []run {
	if n := len(runs); n > 0 {
		last := &runs[n-1]
		alike := last.kind == f.kind && last.last == r-1 && last.shift == f.shift && last.aside == f.aside
		switch f.kind {
		case Values, ScaledRows: // their columns and factors are those of all together
		case Constant:
			alike = alike && last.factor == f.factor
		case ScaledStep, ScaledOffset:
			alike = alike && last.factor == f.factor && last.from == f.from && last.to == f.to
		default:
			alike = alike && last.from == f.from && last.to == f.to
		}
		if alike {
			last.last = r
			last.from, last.to = min(last.from, f.from), max(last.to, f.to)
			last.least, last.most = min(last.least, f.factor), max(last.most, f.factor)
			return runs
		}
	}
	return append(runs, run{f, r, r, f.factor, f.factor})
}

// say makes a sentence of the runs. It names a kind where all rows are explained.
func (a parts) say(runs []run, rows, columns int) bool {
	if len(runs) == 0 {
		return false
	}
	kinds := map[Kind]int{}
	for _, r := range runs {
		kinds[r.kind]++
	}
	if kinds[Values] > 0 {
		return !a.moves() && a.block(runs, rows, columns)
	}
	const most = 4
	words := a.ofRun(runs[0], columns)
	for i, r := range runs[1:] {
		if i+1 == most {
			words = say("", "%s; %s more", words, count(len(runs)-most, "run of rows", "runs of rows"))
			break
		}
		words = say("", "%s; %s", words, a.ofRun(r, columns))
	}
	kind := Several
	if len(kinds) == 1 {
		kind = kindOf(runs[0], columns)
	}
	if a.t.bad < a.t.elements {
		words = say("", "%s; %s", words, a.elsewhere("every other element is right"))
	}
	a.row.wrong(Mistake, kind, "%s", words)
	return true
}

// elsewhere is the end of a sentence about the other elements: right, or, where errors move, right by the size of the errors.
func (a parts) elsewhere(right string) choice {
	return either(a.moves(), "the errors of all other elements have the right size", right)
}

// kindOf is the kind of a tensor whose runs are all of one.
func kindOf(r run, columns int) Kind {
	whole := r.from == 0 && r.to == columns-1
	switch {
	case r.kind == Zero && whole:
		return ZeroRows
	case r.kind == Zero:
		return ZeroBlock
	case r.kind == ScaledRows && !whole:
		return ScaledBlock
	}
	return r.kind
}

// between is "row 3" or "rows 3 to 5".
func between(noun string, first, last int) phrase {
	if first == last {
		return say("", "%s %d", noun, first)
	}
	return say("", "%ss %d to %d", noun, first, last)
}

// at names the place of a run: its rows, and its columns if the run has only some columns.
func (a parts) at(r run, columns int) phrase {
	cut := r.from > 0 || r.to < columns-1
	switch vector := len(a.local.Shape) < 2; {
	case vector && cut:
		return between("element", r.from, r.to)
	case vector:
		return say("", "the vector")
	case cut:
		return say("", "%s, %s", between("row", r.first, r.last), between("column", r.from, r.to))
	}
	return between("row", r.first, r.last)
}

// ofRun says what a run is.
func (a parts) ofRun(r run, columns int) phrase {
	at := a.at(r, columns)
	some := r.first < r.last || len(a.local.Shape) < 2 && r.to-r.from < columns-1 && r.from < r.to // rows, or elements of a vector
	switch r.kind {
	case Zero:
		return say(r.kind, "%s: zero", at)
	case Constant:
		return say(r.kind, "%s: every element is %s", at, number(r.factor))
	case ScaledStep:
		return say(r.kind, "%s: steps that are %s times the right ones, with right offsets%s", at, number(r.factor), exponent(r.factor))
	case ScaledOffset:
		return say(r.kind, "%s: offsets that are %s times the right ones, with right steps%s", at, number(r.factor), exponent(r.factor))
	case NotFinite:
		return say(r.kind, "%s: NaN or infinite", at)
	case ShiftedRows:
		return say(r.kind, "%s %s the original's %s", at, either(some, "are", "is"), between("row", r.first+r.shift, r.last+r.shift))
	case OtherBlock:
		theirs := r
		theirs.first, theirs.last, theirs.from, theirs.to = r.first+r.shift, r.last+r.shift, r.from+r.aside, r.to+r.aside
		return say(r.kind, "%s %s the original's %s", at, either(some || r.from < r.to, "are", "is"), a.at(theirs, columns))
	case Shifted:
		return say(r.kind, "%s %s the original's elements %d places to the %s", at, either(some, "have", "has"), abs(r.shift), either(r.shift > 0, "left", "right"))
	case ScaledRows:
		if r.least == r.most {
			return say(r.kind, "%s: %s times the original%s", at, number(r.least), exponent(r.least))
		}
		return say(r.kind, "%s: each row is the original's times a factor of its own, %s to %s", at, number(r.least), number(r.most))
	}
	return at
}

// block says where the wrong elements are when they are not everywhere. Nothing explains them.
func (a parts) block(runs []run, rows, columns int) bool {
	box := run{finding: finding{kind: Values, from: columns, to: -1}, first: runs[0].first, last: runs[len(runs)-1].last}
	bad := 0
	for _, r := range a.t.badRows() {
		bad++
		box.from, box.to = min(box.from, int(a.t.left[r])), max(box.to, int(a.t.right[r]))
	}
	inside := (box.last - box.first + 1) * (box.to - box.from + 1)
	switch {
	case inside*2 <= a.t.elements && (box.from > 0 || box.to < columns-1):
		a.row.wrong(Different, WrongBlock, "%s: %s of %d there differ, and no known relation explains them; %s", a.at(box, columns), count(a.t.bad, "element", "elements"), inside, a.elsewhere("every element elsewhere is right"))
	case bad*2 <= rows:
		a.row.wrong(Different, WrongRows, "%s, the first is row %d: no known relation explains them; %s", count(bad, "row differs", "rows differ"), box.first,
			a.elsewhere("every other row is right"))
	default:
		return false
	}
	return true
}
