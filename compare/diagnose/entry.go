package diagnose

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Entry is one unexplained entry: the arithmetic of the port does not give all of its elements. Program is the program of the cut between the entry and
// its captured ancestors.
type Entry struct {
	Node    order.Node
	Program *program.Program
	Call    program.Call
	Inputs  []order.Node   // by the number of the program's input
	Items   []*int         // for an input, the index of the first axis that is read; nil for the whole tensor
	Weights []order.Weight // by the number of the weight
	Left    []int          // elements that the arithmetic does not give
	Few     *Few           // tokens that a hypothesis must give first; nil for a small entry
	Judge

	// Like is, for an entry of another role with the same program, the entry of the searched role. The steps have the signatures of that entry's steps.
	Like *Entry

	from []int // of an entry with an earlier mistake: for each step, the step of the right program with the same result; −1 for none
	remembered
}

// remembered is what a search keeps for an entry.
type remembered struct {
	parts   *edit.StepIndex
	sourced *sourced // nil until the first request
	kept    *program.Kept
	begun   bool   // values were kept before
	worked  int    // work of the entry's own values, and of hypotheses before these values were dropped
	tokens  []bool // tokens with unexplained elements; see leftTokens
	// The constants that positions are multiplied by.
	frequencies []*frequencies
	edits       map[Earlier]*Entry // the entry with an earlier mistake; nil where the mistake does not fit
}

// Few are a few tokens of an entry: a hypothesis that does not give them is refused before all tokens are computed.
type Few struct {
	Some program.Some
	Left []int // indexes of the elements of Some that the arithmetic does not give
	// Leaves, Far and Target are the functions of [Judge] for these tokens.
	Leaves func(x program.Value, limit int) ([]int, error)
	Far    func(x program.Value) float64
	Target func() (y, half []float64)
}

// itemOf is the index of the first axis that an input reads; nil for the whole tensor, and for an input that is no tensor of the order.
func (e *Entry) itemOf(input int) *int {
	if input < 0 || input >= len(e.Items) {
		return nil
	}
	return e.Items[input]
}

// Judge compares values with the trace's tensor.
type Judge interface {
	// Small is the entry with fewer rows and columns, for a search; or the entry itself.
	Small() *Entry
	// Choices are the choices of the arithmetic in a program.
	Choices(p *program.Program) []program.Choice
	// Target is the trace's tensor, and for each element half the distance to the next number of the dtype.
	Target() (y, half []float64)
	// Leaves lists the elements that a value before its last rounding does not give, up to a limit.
	Leaves(x program.Value, limit int) ([]int, error)
	// Far is the distance of a value from the trace's tensor: the root mean square of the differences.
	Far(x program.Value) float64
	// Refuses reports whether a program misses an element of the few tokens of a large entry, in every order of summation.
	Refuses(p *program.Program, c program.Call) (bool, error)
	// Explains reports whether a program gives every element, in some order of summation. Shown counts the unexplained elements that the program gives
	// without a choice and that differ from the result of the entry's own program; rows counts the rows of these elements.
	Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error)
}

// Model is the model of the entries.
type Model struct {
	Study
	List    *order.List
	Passes  []order.Pass
	Weights func(order.Weight) (program.Rows, error)
	Spare   []order.Weight // vectors of the checkpoint that no entry reads
	Read    func(order.Node) (program.Value, error)
	// Has reports whether the trace has a tensor, in whole and with the shape that the order gives.
	Has func(order.Node) bool
	RightEntries
	// Peers are wrong entries of other roles with the programs of the searched entries. It may be nil.
	Peers func() ([]*Entry, error)
	Room  int64 // bytes of memory for values that are computed at one time
	Work  int   // work that the searches for one finding may use; 0 for DefaultWork

	remains
}

// remains is what the searches of a model leave for later ones.
type remains struct {
	kept    []*Entry // entries with kept values, the last used one last
	unnamed *search  // the first call of Find without a name
	spent
}

// RightEntries are the entries of the searched roles that are right.
type RightEntries struct {
	// Rest are the entries without unexplained elements. It may be nil.
	Rest func() ([]*Entry, error)
	// Unread counts the right entries that Rest leaves out.
	Unread int
}

// spent is the work of all searches of a model.
type spent struct {
	tried, work int
	most        int // the work that the next searches may reach; 0 for all work
}

// layerKind is the part of a tensor's name for one kind of layers: tables and masks of layers with a window, and without.
var layerKind = regexp.MustCompile(`\.(sliding|full)(\.|$)`)

// signed indexes the steps of the entry's program by signature. The signature of a step is the same in layers with a window and without.
func (e *Entry) signed(m *Model) *edit.StepIndex {
	if e.parts == nil {
		of := cmp.Or(e.Like, e)
		e.parts = edit.NewStepIndex(e.Program, func(p program.Prim, k int) string {
			if p == program.Input {
				n := of.Inputs[k]
				role := layerKind.ReplaceAllString(order.NameOf(m.handedOn(of, n.Entry)).Role(), ".*$2")
				if n.Pass != of.Node.Pass {
					role += edit.Before
				}
				return role
			}
			return order.NameOf(of.Weights[k].Name).Role()
		})
	}
	return e.parts
}

// handedOn returns the name that a tensor from outside has in the layer of an entry: layers.0.out is layers.1.in for layer 1. Thus a step that reads the
// input has the same signature in all layers. If the layer has no name for the tensor, handedOn returns the tensor's own name.
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

// handsOn reports whether an operation returns its input.
func (m *Model) handsOn(o *order.Entry, pass int) bool {
	p, end := m.unary(o, pass)
	return p != nil && p.Steps[end].Prim == program.Input
}

// unary builds the program of an operation with one input and no weight; end is the last step, without roundings. The program is nil for other operations.
func (m *Model) unary(o *order.Entry, pass int) (p *program.Program, end int) {
	if o.Op == nil || len(o.Inputs) != 1 || len(o.Weights) > 0 {
		return nil, 0
	}
	b, size := program.NewBuilder(), o.Size(m.Passes[pass], m.List.Config.SlidingWindow)
	p, err := b.Program(b.Apply(o.Op, "", size, []program.Var{b.Input(0, size)}, nil))
	if err != nil {
		return nil, 0
	}
	return p, beforeRounding(p, p.Out.Step)
}

// beforeRounding is the step whose result a step rounds or copies, or the step itself.
func beforeRounding(p *program.Program, step int) int {
	for p.Steps[step].Prim == program.Round || p.Steps[step].Prim == program.Copy {
		step = p.Steps[step].Args[0].Step
	}
	return step
}

// factorOf is the factor that an operation multiplies its only input by, or 0. An operation that hands its input on has the factor of the operation before.
func (m *Model) factorOf(tensor, pass int) float64 {
	o := &m.List.Entries[tensor]
	p, end := m.unary(o, pass)
	if p == nil {
		return 0
	}
	st := &p.Steps[end]
	for k, a := range st.Args {
		if x := &p.Steps[a.Step]; st.Prim == program.Mul && x.Prim == program.Number && p.Steps[st.Args[1-k].Step].Prim == program.Input {
			return x.Number().Value
		}
	}
	if before := m.List.Index(o.Inputs[0].Name); st.Prim == program.Input && before >= 0 && before < tensor {
		return m.factorOf(before, pass)
	}
	return 0
}

// keptPart divides the memory of a comparison: values that are kept for the next hypothesis may take one part. A single entry may take more.
const keptPart = 4

// values returns the values of an entry's own program. If kept values take too much memory, the values with the oldest use are dropped.
func (m *Model) values(e *Entry) (*program.Kept, error) {
	if at := slices.Index(m.kept, e); at >= 0 {
		m.kept = slices.Delete(m.kept, at, at+1)
	} else {
		var err error
		if e.kept, err = e.Program.Keep(e.Call, e.Choices); err != nil {
			e.kept = nil
			return nil, err
		}
		if !e.begun { // counted once: how often values are computed again depends on the memory
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

// ended is the program of an editor; nil if the edit is no program.
func ended(ed *edit.Editor) *program.Edited {
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
