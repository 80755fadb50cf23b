package quant

import (
	"io"
	"math"
	"slices"
)

// Coding is how a tensor is stored as codes.
type Coding interface {
	// Data is where the codes lie, and what they stand for.
	Data() *Grid
	// Nearest is the tensor of the file, if each of its groups has to have the nearest codes for a step of its own; else nil.
	Nearest() *Tensor
	// Moves reports whether the writer moves errors from code to code: a single code that is not the nearest is no mistake.
	Moves() bool
	// MayMove reports whether some writers of the format do.
	MayMove() bool
	// Moving is the coding, held to what a writer that moves errors makes.
	Moving() Coding
	// Judge marks the wrong elements of a run, and reports whether the run as a whole is right.
	Judge(r *Run, bad []bool) bool
	// Whole judges a tensor without wrong runs by the errors of all its codes: they are so many times the error of rounding, and up to worst
	// times is right. rounded are the squared errors that rounding makes, group by group.
	Whole(e *Sums, rounded float64) (is Judgement, times, worst float64)

	at(*Grid) Coding
}

// Grid is where the codes of a tensor lie, and what they stand for.
type Grid struct {
	Name   string // of the format, for people
	Planes        // of each element, in the order of the tensor's shape. Slack may be nil: none; so may Unit and Offset: not known
	Group  int    // so many elements of a row share a step, or a step of steps

	// Codes are those of the whole tensor of the file, from whose element First on the rows of this one lie: row i is the file's row
	// Row(i), of the whole tensor; Row may be nil where it is row i. nil where the elements do not lie in the file's rows.
	Codes *Tensor
	First int64
	Row   func(i int) int

	shared, mixed bool // see [Scheme]
}

// Coding returns the coding of a tensor's elements from planes in the order of [Planes.Readers]: the tensor's own planes, or the planes
// after a change of layout.
func (t *Tensor) Coding(planes []io.ReaderAt) Coding {
	g := &Grid{Group: t.group}
	for i, p := range g.readers() {
		*p = planes[i]
	}
	if t.group == 1 && len(t.Shape) > 0 { // each element has a step of its own: a group is not consecutive
		g.Group = t.Shape[len(t.Shape)-1]
	}
	c := t.Scheme.Coding(g)
	if m, ok := c.(movedCodes); ok && t.group == 1 {
		return apartCodes{m}
	}
	return c
}

// Coding is what the usual writers of a scheme make.
func (s Scheme) Coding(g *Grid) Coding {
	if g.Name, g.shared, g.mixed = s.Name, s.Shared, s.Mixed; s.Moves {
		return movedCodes{g}
	}
	return nearestCodes{g}
}

// Readers returns the planes in the order that [Tensor.Coding] takes: Step, Low, High, Slack, Unit, Offset.
func (p Planes) Readers() []io.ReaderAt {
	var list []io.ReaderAt
	for _, r := range p.readers() {
		list = append(list, *r)
	}
	return list
}

func (p *Planes) readers() []*io.ReaderAt {
	return []*io.ReaderAt{&p.Step, &p.Low, &p.High, &p.Slack, &p.Unit, &p.Offset}
}

// Element is the number of the first element of a row in Codes.
func (g *Grid) Element(row, columns int) int64 {
	row += int(g.First / int64(columns))
	if g.Row != nil {
		row = g.Row(row)
	}
	return int64(row) * int64(columns)
}

// From is the coding from some element on. section returns a plane from some byte on.
func From(c Coding, element int64, section func(io.ReaderAt, int64) io.ReaderAt) Coding {
	const size = 4
	part := *c.Data()
	part.First += element
	for _, p := range part.readers() {
		if *p != nil {
			*p = section(*p, element*size)
		}
	}
	return c.at(&part)
}

// Bounds holds, for each of some elements, the numbers that a code of the element can stand for: Low, Low+Step, ... up to High. Slack is an
// additional distance between a number and its code, because a writer chose the code before it rounded the scale.
type Bounds struct{ Step, Low, High, Slack []float64 }

// Read fills the bounds with those of n elements. read reads one plane.
func (b *Bounds) Read(c *Grid, n int, read func(dst []float64, plane io.ReaderAt) error) error {
	for _, x := range []struct {
		into  *[]float64
		plane io.ReaderAt
	}{{&b.Step, c.Step}, {&b.Low, c.Low}, {&b.High, c.High}, {&b.Slack, c.Slack}} {
		*x.into = grown(*x.into, n)
		if x.plane == nil {
			clear(*x.into)
		} else if err := read(*x.into, x.plane); err != nil {
			return err
		}
	}
	return nil
}

// Slice is the bounds of the elements from one to another.
func (b *Bounds) Slice(from, to int) Bounds {
	if b.Step == nil {
		return Bounds{}
	}
	return Bounds{b.Step[from:to], b.Low[from:to], b.High[from:to], b.Slack[from:to]}
}

// Clone is a copy of the bounds.
func (b *Bounds) Clone() Bounds {
	return Bounds{slices.Clone(b.Step), slices.Clone(b.Low), slices.Clone(b.High), slices.Clone(b.Slack)}
}

// Add appends element i of other bounds.
func (b *Bounds) Add(o *Bounds, i int) {
	b.Step, b.Low = append(b.Step, o.Step[i]), append(b.Low, o.Low[i])
	b.High, b.Slack = append(b.High, o.High[i]), append(b.Slack, o.Slack[i])
}

// Within is x, or the end of what the codes of element i stand for that is nearest to it.
func (b *Bounds) Within(i int, x float64) float64 { return min(max(x, b.Low[i]), b.High[i]) }

// Last reports whether v is the value of the lowest or the highest code of element i, which also stands for all values beyond.
func (b *Bounds) Last(i int, v float64) bool {
	return b.High[i] > b.Low[i] && (v <= b.Low[i] || v >= b.High[i])
}

// Allows reports whether x may be the number that was rounded to v, the value of element i's code: v is at most one and a half steps
// plus slack from x, or from the nearest end of the range for an x outside of the range. With a step of 0, v is at most slack from x.
func (b *Bounds) Allows(i int, v, x, slack float64) bool {
	if b.Step[i] == 0 && !(math.Abs(x-v) <= slack) {
		return false
	}
	return math.Abs(b.Within(i, x)-v) <= 1.5*b.Step[i]+slack
}
