package diagnose

import (
	"regexp"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Entry is one entry that is left: an arithmetic that is its engine's does not give all of its elements. Its program is of the cut
// between the entry and its captured ancestors.
type Entry struct {
	Node    order.Node
	Program *program.Program
	Call    program.Call
	Inputs  []order.Node   // by the number of the program's input
	Items   []*int         // which index of its first axis an input is; nil for all of it
	Weights []order.Weight // by the number of its weight
	Left    []int          // elements that the arithmetic does not give
	Few     *Few           // what a hypothesis has to give first; nil for a small entry
	Judge

	remembered
}

// remembered is what a search keeps of an entry.
type remembered struct {
	parts   *edit.StepIndex
	sourced *sourced // nil until it is asked for
	kept    *program.Kept
	begun   bool   // its values were kept before
	worked  int    // the work of its own values, and of hypotheses before its values were dropped
	tokens  []bool // those that have something left; see leftTokens
	// What is known of the constants that positions are multiplied by.
	frequencies []*frequencies
}

// Few are a few tokens of an entry: a hypothesis that does not give them is refused before all tokens are computed.
type Few struct {
	Some program.Some
	Left []int // indexes into the elements of Some: those that the arithmetic does not give
	// Leaves, Far and Target are those of [Judge] for these tokens.
	Leaves func(x program.Value, limit int) ([]int, error)
	Far    func(x program.Value) float64
	Target func() (y, half []float64)
}

// itemOf is which index of its first axis an input is; nil for all of it, and for what is no tensor of the order.
func (e *Entry) itemOf(input int) *int {
	if input < 0 || input >= len(e.Items) {
		return nil
	}
	return e.Items[input]
}

// Judge holds the trace's tensor to values.
type Judge interface {
	// Small is the entry with fewer rows and columns, for a search; or itself.
	Small() *Entry
	// Choices are those of the arithmetic in a program.
	Choices(p *program.Program) []program.Choice
	// Target is the trace's tensor, and by element half the distance to the next number of its dtype.
	Target() (y, half []float64)
	// Leaves lists elements that a value before its last rounding does not give, up to a limit.
	Leaves(x program.Value, limit int) ([]int, error)
	// Far is how far a value is from the trace's tensor: the root mean square of the differences.
	Far(x program.Value) float64
	// Refuses reports whether a program leaves an element of the few tokens of a large entry, in every order of summation.
	Refuses(p *program.Program, c program.Call) (bool, error)
	// Explains reports whether a program gives every element, in some order of summation. Shown counts those of what is left that it
	// gives without a choice and that are apart from what the entry's own program gives, and rows where they lie.
	Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error)
}

// Model is what the entries are of.
type Model struct {
	Study
	List    *order.List
	Passes  []order.Pass
	Weights func(order.Weight) (program.Rows, error)
	Read    func(order.Node) (program.Value, error)
	// Has reports whether the trace has a tensor, in whole and of the shape that the order gives it.
	Has func(order.Node) bool
	// Rest are the entries of the roles that are looked at of which nothing is left: they are right. It may be nil.
	Rest func() ([]*Entry, error)
	// Unread is how many more are right that Rest leaves out.
	Unread int
	Room   int64 // bytes of memory that what is computed at one time keeps to
	Work   int   // what the searches for one finding may take; 0 for DefaultWork

	kept []*Entry // whose values are kept, last those that were asked for last
	spent
}

// spent is what all searches of a model took.
type spent struct {
	tried, work int
	most        int // work that the next searches may come to; 0 for all of the account
}

// layerKind is what a tensor of all layers of one kind is called by: tables and masks of layers with a window, and without.
var layerKind = regexp.MustCompile(`\.(sliding|full)(\.|$)`)

// signed are the steps of the entry's program by signature: a step is the same in layers with a window and without.
func (e *Entry) signed(m *Model) *edit.StepIndex {
	if e.parts == nil {
		e.parts = edit.NewStepIndex(e.Program, func(p program.Prim, k int) string {
			if p == program.Input {
				n := e.Inputs[k]
				role := layerKind.ReplaceAllString(order.NameOf(m.handedOn(e, n.Entry)).Role(), ".*$2")
				if n.Pass != e.Node.Pass {
					role += edit.Before
				}
				return role
			}
			return order.NameOf(e.Weights[k].Name).Role()
		})
	}
	return e.parts
}

// handedOn returns the name that a tensor from outside has in the layer of an entry. A layer calls its input layers.1.in, and that input is layers.0.out. A step that reads the
// input has thus the same signature in all layers. If the layer has no name for the tensor, handedOn returns the tensor's own name.
func (m *Model) handedOn(e *Entry, tensor int) string {
	own := m.List.Entries[tensor].Name
	layer := order.NameOf(m.List.Entries[e.Node.Entry].Name)
	if !layer.Within() || layer.SameLayer(order.NameOf(own)) {
		return own
	}
	for k := range m.List.Entries {
		o := &m.List.Entries[k]
		if layer.SameLayer(order.NameOf(o.Name)) && o.Op != nil && len(o.Inputs) == 1 && len(o.Weights) == 0 && o.Inputs[0].Name == own && !o.Inputs[0].Prev && o.Inputs[0].Index == nil && m.handsOn(o, e.Node.Pass) {
			return o.Name
		}
	}
	return own
}

// handsOn reports whether an operation gives what it reads.
func (m *Model) handsOn(o *order.Entry, pass int) bool {
	b, size := program.NewBuilder(), o.Size(m.Passes[pass], m.List.Config.SlidingWindow)
	p, err := b.Program(b.Apply(o.Op, "", size, []program.Var{b.Input(0, size)}, nil))
	if err != nil {
		return false
	}
	i := p.Out.Step
	for p.Steps[i].Prim == program.Round || p.Steps[i].Prim == program.Copy {
		i = p.Steps[i].Args[0].Step
	}
	return p.Steps[i].Prim == program.Input
}

// keptPart is the part of the memory of a comparison for the values of entries that are kept for the next hypothesis, unless one entry alone has more.
const keptPart = 4

// values returns the values of an entry's own program. If kept values take too much memory, those with the oldest use are dropped.
func (m *Model) values(e *Entry) (*program.Kept, error) {
	if at := slices.Index(m.kept, e); at >= 0 {
		m.kept = slices.Delete(m.kept, at, at+1)
	} else {
		var err error
		if e.kept, err = e.Program.Keep(e.Call, e.Choices); err != nil {
			e.kept = nil
			return nil, err
		}
		if !e.begun { // values that are computed again are not counted again: how many are kept depends on the room
			e.begun, e.worked = true, e.worked+e.Program.Time()+program.StepTime*len(e.Program.Steps)
		}
	}
	all, most := 0, int(m.Room/keptPart/8)
	m.kept = append(m.kept, e)
	for at, k := range slices.Backward(m.kept) {
		if all += k.kept.Numbers(); all > most && k != e {
			for _, old := range m.kept[:at+1] {
				old.worked, old.kept = old.worked+old.kept.Time, nil
			}
			m.kept = m.kept[at+1:]
			break
		}
	}
	return e.kept, nil
}

// ended is what an editor has made; nil where it is no program.
func ended(ed *edit.Editor) *program.Edited {
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
