package compare

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// contentOf says whether the tensors of a pair can show anything, and where they cannot, why: both are constant, zero or empty. A
// single number is constant and yet a test, but for 0. What is constant may be confirmed later.
func (p *pair) contentOf(s *measure.Sums) (c Content, why string) {
	m := p.row.Metrics
	constant := func(of *measure.Stats) bool { return of.Min == of.Max && (m.Compared > 1 || of.Min == 0) }
	switch _, given := p.entry.Op.(op.Given); {
	case m.Elements == 0:
		why = "empty"
	case m.NaNBoth > 0:
		return NotFinite, fmt.Sprintf("%d of %d elements are NaN or overflowed%s", m.NaNBoth, m.Elements, p.names.both())
	case p.entry.Op != nil && p.entry.Compare == order.All && m.Masked+min(m.Local.NInf, m.Reference.NInf) > 0:
		return NotFinite, fmt.Sprintf("some of %d elements are as low as masked values%s, and the order has no mask here", m.Elements, p.names.both())
	case p.entry.Name == order.InputIDs || given:
	case p.entry.Compare == order.Pattern:
		if s.Pattern.Masked == 0 && s.Pattern.Shown > 0 {
			why = "nothing is masked"
		} else if s.Pattern.Shown == 0 {
			why = "everything is masked"
		}
	case m.Compared == 0:
		why = "no element is compared"
	case !constant(&m.Local) || !constant(&m.Reference):
	case m.Reference.Min == 0:
		why = p.names[reference].Side + " is zero"
	default:
		why = fmt.Sprintf("%s is %g everywhere", p.names[reference].Side, float64(m.Reference.Min))
	}
	if why != "" {
		return Untested, why
	}
	return Tested, ""
}

// confirm asks the order about a pair that seems to show nothing: a constant that it gives from ids, positions, weights and
// inputs that are not constant is right, and was tested.
func (w *walker) confirm(p *pair) error {
	by := w.o.Confirmer
	if by == nil && w.o.Isolator != nil {
		by = w.o.Isolator.Isolator
	}
	if p.content != Untested || p.row.Firing > 0 || p.row.Derived || by == nil {
		return nil
	}
	switch p.seen {
	case SeenWithin, SeenWider, SeenPast:
	default:
		return nil // a mismatch, whatever its content
	}
	from, err := by.Confirms(w.ctx, p.row.Name, p.row.Pass)
	if err != nil || from == nil {
		return err
	}
	p.content = Confirmed
	p.remark(NoteConfirmed, "%s, as the order gives it from %s", p.untested, listed(from))
	return nil
}

// maxNamed is how many keys a remark names.
const maxNamed = 3

// listed names the first few of some keys.
func listed(keys []string) string {
	if len(keys) <= maxNamed {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:maxNamed], ", "), len(keys)-maxNamed)
}
