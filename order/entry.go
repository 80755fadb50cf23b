package order

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/op"
)

// Entry is a named tensor of a forward pass, with the operation that computes the tensor: a row of TENSOR_ORDER, whose columns are the fields.
type Entry struct {
	Name    string
	Layer   int      // −1 before and after the layers
	Level   int      // how much to capture: 1 block boundaries, 2 module outputs, 3 internals
	Op      op.Op    // nil in a list of names only
	Inputs  []Ref    // in the order that Op defines
	Weights []Weight // likewise
	Shape   []Dim
	Axes    string // the role of each axis, one letter each: see the constants below
	DType   string // as torch spells it; empty for the model's
	Compare Rule
	HF      Source // where transformers shows it
	Line    string // of a recorded program: the line of source that computed it, "transformers/models/qwen3/modeling_qwen3.py:213"
	// Expression is the code on the line: "hidden_states * scale". It is empty if the program does not have it.
	Expression string
}

// The roles of axes, as letters of Entry.Axes.
const (
	AxisStream  = 'a' // AltUp stream
	AxisBatch   = 'b' // always 1 here
	AxisToken   = 't' // query token of this pass
	AxisKey     = 's' // key position
	AxisHead    = 'h'
	AxisLayer   = 'l' // of per-layer tables
	AxisChannel = 'c' // hidden, head-dimension or other feature
	AxisVocab   = 'v'
)

// Ref is one input of an operation: an entry by name.
type Ref struct {
	Name  string `json:"name"`
	Index *int   `json:"index,omitempty"` // one index of the first axis: a stream of a stack
	Prev  bool   `json:"prev,omitempty"`  // of the pass before; absent in pass 0
	Back  int    `json:"back,omitempty"`  // with Prev: of so many passes before that
}

// Weight is one checkpoint tensor that an operation needs. Name has no checkpoint prefix.
type Weight struct {
	Name     string `json:"name"`
	Fallback string `json:"fallback,omitempty"` // the name to use when Name is absent: the embedding, for a tied head
	Shape    []int  `json:"shape"`
	DType    string `json:"dtype,omitempty"` // that the model has it in; empty for the model's
}

// Rule says which elements of an entry are compared.
type Rule string

// The rules. The zero Rule compares all elements.
const (
	All Rule = ""
	// Pattern compares which elements are masked: below half the lowest finite number of the dtype, or −Inf, or false
	// where the mask is boolean. Another finite number, such as −1e9, counts as seen: it is only nearly a mask.
	Pattern Rule = "pattern"
	// Allowed compares the pattern, then the values of what neither side masks: a masked score absorbs its value.
	Allowed Rule = "allowed"
)

// Dim is one size of a shape: a number, or a symbol that a pass gives a value.
type Dim int

// The symbols.
const (
	T        Dim = -1 - iota // tokens of this pass
	SFull                    // keys that full layers see in this pass
	SSliding                 // keys that sliding layers see in this pass
)

var dimNames = map[Dim]string{T: "T", SFull: "S.full", SSliding: "S.sliding"}

// String is the number, or "T", "S.full" or "S.sliding".
func (d Dim) String() string {
	if s, ok := dimNames[d]; ok {
		return s
	}
	return strconv.Itoa(int(d))
}

// MarshalJSON writes a number or the symbol's name.
func (d Dim) MarshalJSON() ([]byte, error) {
	if s, ok := dimNames[d]; ok {
		return json.Marshal(s)
	}
	return json.Marshal(int(d))
}

// Source says where transformers shows an entry. Modules are paths below the text model; "" is the text model itself
// and a path that starts with "^" is below the outer model.
type Source struct {
	Kind   string `json:"kind"`             // one of the constants below
	Module string `json:"module,omitempty"` // the module, or the owner of the method
	Name   string `json:"name,omitempty"`   // parameter, method, attention role or output field
	Arg    string `json:"arg,omitempty"`    // of a call: the parameter wanted; empty for the result
	Call   int    `json:"call,omitempty"`   // which call within the pass, from 0
	When   string `json:"when,omitempty"`   // only the call whose argument layer_type has this value
	Item   *int   `json:"item,omitempty"`   // which item of a tuple
	LastT  bool   `json:"last_t,omitempty"` // only the last T positions of the axis before the last
	// HeadsFirst: the tensor there is [1,h,T,D] and the entry [1,T,h,D], so axes 1 and 2 have to be exchanged.
	HeadsFirst bool `json:"heads_first,omitempty"`
}

// The kinds of Source.
const (
	Input     = "input"   // an argument of the whole call
	In        = "in"      // a module's input, bound by parameter name
	Out       = "out"     // a module's output
	Call      = "call"    // an argument or the result of a method called through its instance
	Attention = "attn"    // inside the eager attention function of a layer
	Result    = "result"  // a field of the model's output
	Derived   = "derived" // shown nowhere: the capture side recomputes it by the entry's operation
)

// String is a short form such as "out:layers.3.self_attn.q_norm" or "in:layers.0(position_ids)".
func (s Source) String() string {
	var b strings.Builder
	b.WriteString(s.Kind)
	if s.Kind == Derived {
		return b.String()
	}
	b.WriteByte(':')
	b.WriteString(s.Module)
	switch s.Kind {
	case In, Attention:
		fmt.Fprintf(&b, "(%s)", s.Name)
	case Call:
		if s.Module != "" {
			b.WriteByte('.')
		}
		b.WriteString(s.Name)
		if s.Arg != "" {
			fmt.Fprintf(&b, "(%s)", s.Arg)
		}
	case Input, Result:
		b.WriteString(s.Name)
	}
	if s.When != "" {
		fmt.Fprintf(&b, "[%s]", s.When)
	}
	if s.Item != nil {
		fmt.Fprintf(&b, ".%d", *s.Item)
	}
	if s.Call > 0 {
		fmt.Fprintf(&b, "#%d", s.Call)
	}
	if s.LastT {
		b.WriteString("[-T:]")
	}
	if s.HeadsFirst {
		b.WriteString(".transpose(1,2)")
	}
	return b.String()
}

// Derived reports whether the reference side recomputes the entry itself instead of seeing it: such a tensor is never
// gated and never missing.
func (e *Entry) Derived() bool { return e.HF.Kind == Derived }

// Pass is the geometry of one forward call.
type Pass struct{ Past, Tokens int }

// Size gives a shape its numbers for one pass: with Past tokens cached, full layers see Past + Tokens keys and sliding
// ones the last window−1 of the past and the new.
func (e *Entry) Size(p Pass, window int) []int {
	shape := make([]int, len(e.Shape))
	for i, d := range e.Shape {
		switch d {
		case T:
			shape[i] = p.Tokens
		case SFull:
			shape[i] = p.Past + p.Tokens
		case SSliding:
			shape[i] = min(p.Past, max(window-1, 0)) + p.Tokens
		default:
			shape[i] = int(d)
		}
	}
	return shape
}

// MarshalJSON writes an entry as one object; see [List.MarshalJSON].
func (e Entry) MarshalJSON() ([]byte, error) {
	type object struct {
		Name       string          `json:"name"`
		Layer      int             `json:"layer"`
		Level      int             `json:"level"`
		Op         json.RawMessage `json:"op,omitempty"`
		Inputs     []Ref           `json:"inputs,omitempty"`
		Weights    []Weight        `json:"weights,omitempty"`
		Shape      []Dim           `json:"shape"`
		Axes       string          `json:"axes"`
		DType      string          `json:"dtype,omitempty"`
		Compare    Rule            `json:"compare,omitempty"`
		HF         *Source         `json:"hf,omitempty"`
		Line       string          `json:"line,omitempty"`
		Expression string          `json:"expression,omitempty"`
	}
	out := object{e.Name, e.Layer, e.Level, nil, e.Inputs, e.Weights, e.Shape, e.Axes, e.DType, e.Compare, &e.HF, e.Line, e.Expression}
	if e.Op == nil { // names only: nothing else is known
		out.HF = nil
		return json.Marshal(out)
	}
	var err error
	if out.Op, err = op.Marshal(e.Op); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
