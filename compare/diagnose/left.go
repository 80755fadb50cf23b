package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
)

// Left is what a mistake leaves if it does not give every element. A large entry is counted in some tokens and columns.
type Left struct {
	Gives int `json:"gives"` // entries without elements left
	Of    int `json:"of"`    // entries that are wrong
	// First is the key of the first entry with elements left. Elements counts them, and OfElements all elements of the entry.
	First      string `json:"first,omitempty"`
	Elements   int    `json:"elements,omitempty"`
	OfElements int    `json:"of_elements,omitempty"`
	// RelL2 is the relative L2 error of the mistake in the first entry of the search, and Right is the error of the right operation there. Both are 0 if
	// not measured.
	RelL2 float64 `json:"rel_l2,omitempty"`
	Right float64 `json:"right,omitempty"`
}

// mostLeft is the largest part of the right operation's error that a mistake may leave to be called near, if the mistake gives no entry. Among thousands
// of edits, one makes an error somewhat smaller by chance; hardly any halves the error.
const mostLeft = 0.5

// distant is a hypothesis and its distance from the first entry. The zero value has no hypothesis.
type distant struct {
	hypothesis
	far float64
	any bool
}

// take keeps a hypothesis if it is nearer. A distance that is not finite tells nothing.
func (d *distant) take(h hypothesis, far float64) {
	if far-far == 0 && (!d.any || far < d.far) {
		*d = distant{h, far, true}
	}
}

// sayNearest adds the nearest hypothesis to a finding without a name. The most plausible hypothesis that gives all elements and shows too little comes
// first, then a hypothesis that gives some entries, or nearly. Otherwise it is the hypothesis with the smallest error in the first entry, if the error is
// much smaller than the error of the right operation. The returned error comes from an evaluation.
func sayNearest(s *search, f *Finding) (err error) {
	if len(s.little) > 0 {
		best := slices.MinFunc(s.little, survivor.compare)
		s.nearest = near{best.hypothesis, len(s.entries)}
	}
	if s.nearest.entries > 0 {
		f.Nearest = s.name(s.nearest.hypothesis).Text()
		f.Left, err = leftOf(s, s.nearest.hypothesis)
		return outside(err)
	}
	if !s.closer.any {
		return nil
	}
	right, size, err := s.first.distance()
	if err != nil || !(s.closer.far <= mostLeft*right) || !(size > 0) {
		return outside(err)
	}
	left, err := leftOf(s, s.closer.hypothesis)
	if left == nil || err != nil {
		return outside(err)
	}
	left.RelL2, left.Right = s.closer.far/size, right/size
	f.Nearest, f.Left = s.name(s.closer.hypothesis).Text(), left
	return nil
}

// leftOf counts the elements that a hypothesis leaves.
func leftOf(s *search, h hypothesis) (*Left, error) {
	l := &Left{Of: len(s.entries)}
	for _, e := range s.entries {
		e = e.Small()
		all := e.elements()
		n := all
		if d := s.edited(h, e); d != nil {
			p, call := d.Whole(e.Call)
			call.Choices = e.Choices(p)
			x, err := p.Eval(call)
			if err != nil {
				return nil, err
			}
			left, err := e.Leaves(x, all+1)
			if err != nil {
				return nil, err
			}
			n = len(left)
		}
		if n == 0 {
			l.Gives++
		} else if l.First == "" {
			l.First, l.Elements, l.OfElements = capture.Key(e.Node.Pass, s.m.List.Entries[e.Node.Entry].Name, 0), n, all
		}
	}
	return l, s.err
}

// distance is the distance of the entry's own program from the trace's tensor, and the size of the tensor, as root mean squares. A large entry is measured
// in the few tokens that a search looks at first.
func (e *Entry) distance() (far, size float64, err error) {
	call := e.Call
	call.Choices = e.Choices(e.Program)
	few := e.Few != nil && len(e.Few.Left) > 0
	if few {
		call.Some = &e.Few.Some
	}
	x, err := e.Program.Eval(call)
	if err != nil {
		return 0, 0, err
	}
	var y []float64
	if few {
		far = e.Few.Far(x)
		y, _ = e.Few.Target()
	} else {
		far = e.Far(x)
		y, _ = e.Target()
	}
	for _, v := range y {
		size += v * v
	}
	return far, math.Sqrt(size / float64(max(len(y), 1))), nil
}

// nearer compares the nearest mistakes of two findings without a name. The mistake that gives more entries is nearer, then the mistake with the smaller error.
func nearer(a, b *Finding) (words string, left *Left) {
	if b.Nearest == "" || a.Nearest != "" && b.Left.after(a.Left) {
		return a.Nearest, a.Left
	}
	return b.Nearest, b.Left
}

// after reports whether other is nearer than l, or as near.
func (l *Left) after(other *Left) bool {
	if l == nil || other == nil {
		return l == nil
	}
	return cmp.Or(cmp.Compare(l.Gives, other.Gives), cmp.Compare(other.RelL2, l.RelL2)) <= 0
}
