package recorded

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// Limits of what a file may claim. A real program has some ten thousand lines, and its values are the values of a
// forward pass. Reading a file at the limits takes about three seconds, and eight hundred megabytes in addition to
// the numbers of its constants.
const (
	maxBytes       = 64 << 20 // of the file
	maxParts       = 1 << 20  // numbers, texts, lists and objects of it
	maxWritten     = 1 << 17  // lines of all templates together
	maxLines       = 1 << 18  // of all passes of a run: 64 refinement steps of a model of 32 layers are 140,000
	maxAllLines    = 1 << 19  // of all runs
	maxAllOperands = 3 << 18  // operands and results of a run
	maxTables      = 1 << 16  // constants and weights
	maxPasses      = 1 << 12  // of all runs
	maxElements    = 1 << 31  // of one value, and of each step within an operation
	maxMade        = 1 << 25  // numbers that are made to find those of the constants
	maxRank        = 16       // axes
	MaxNumbers     = 17 << 19 // of all constants together: two masks of 2,048 tokens
	maxOperands    = 1 << 12  // of one step
	maxExpression  = 1 << 9   // bytes: recorders cut expressions at 80 characters
	maxFormulas    = 1 << 16  // steps of the formulas of all operations that are not alike
	maxFormed      = 1 << 23  // numbers in these formulas, without the numbers of constants
	maxOwn         = 1 << 22  // of one of them
	maxFree        = 1 << 22  // elements that a step may have, whatever it is computed from; more only where
	maxGrowth      = 1 << 12  // the largest argument, constant or weight of it has no fewer than so many times less
)

// Program is what was recorded of a model: the steps of each forward call, and the names of what they compute.
type Program struct {
	Class     string      // of the model, with its module
	ModelType string      // of its configuration
	DType     hooks.DType // that most of the parameters have: the model's
	Passes    []Pass
	Weights   map[string]*Weight // by the parameter's name
	Constants []*Constant
	Sources   []Source

	Values []Value // the results of all steps, by number
	others *others // the model on prompts of other lengths
	Alone  string  // why it has no lengths
}

// Source is a place in the source of a model.
type Source struct {
	Line       string // "transformers/models/qwen3/modeling_qwen3.py:213"
	Expression string // that computes it there: "hidden_states * scale"; empty where it is not known
}

// OfPrompt says why the program holds only for its own prompt: some numbers depend on the token ids without being
// token ids, or depend on another argument of the model, whose value for another prompt is unknown; or Python code
// read a computed value. The text is empty if the program holds for other prompts.
func (p *Program) OfPrompt() string {
	for _, c := range p.Constants {
		for _, name := range c.Depends {
			if c.Is == "" && !strings.HasPrefix(name, "buffer ") {
				return fmt.Sprintf("a constant of %v depends on %.80s", c.Shape, name)
			}
		}
	}
	for _, pass := range p.Passes {
		for i := range pass.Lines {
			if l := &pass.Lines[i]; l.Step != nil && l.Step.Op == Guard {
				return "Python looked at what was computed: " + p.What(l)
			}
		}
	}
	return ""
}

// What names a line for an error.
func (p *Program) What(l *Line) string {
	switch {
	case l.Name != nil:
		return l.Name.Name
	case l.Step.Source >= 0:
		return l.Step.Op + " at " + p.Sources[l.Step.Source].Line
	}
	return l.Step.Op
}

// Runs returns the passes of each further recorded run, on a prompt of another length; nil for a program of a single
// run.
func (p *Program) Runs() ([][]Pass, error) { return p.others.all() }

// Empty is a program of the same model that has no passes yet, no constants and no values.
func (p *Program) Empty() *Program {
	to := *p
	to.Passes, to.Constants, to.Values, to.others = nil, nil, nil, nil
	return &to
}

// Guard is the operation that has no result: what Python looked at.
const Guard = "guard"

// Pass is one forward call.
type Pass struct {
	Tokens, Past int
	Lines        []Line

	First int // the number of its first value
}

// Line is a step or a name: one of the two.
type Line struct {
	Layer int // −1 outside the layers
	Step  *Step
	Name  *Name
}

// Step is one operation.
type Step struct {
	Op     string
	In     []Ref
	Out    []Value
	First  int // the number of its first result; the others follow
	Attr   map[string]any
	Source int // of the program's sources; −1 where it is not known
}

// Value is the result of a step: memory with the number of elements of Shape, viewed through strides.
type Value struct {
	DType  string
	Shape  []int
	Stride []int // that show each element of the memory once

	complex bool // the last axis are the parts of complex numbers
}

// Name is a tensor that a capture calls by a name.
type Name struct {
	Name  string
	Of    Ref
	Level int
}

// RefKind is what a reference is to.
type RefKind uint8

// The kinds of references.
const (
	ToNothing  RefKind = iota // an argument that was left out, or memory that nobody wrote
	ToValue                   // a step's result
	ToWeight                  // a parameter or buffer
	ToConstant                // numbers of the file
	ToNumber                  // one number
)

// Ref is an operand: a strided view of a value, of a weight or of a constant, or a number.
type Ref struct {
	Kind          RefKind
	Index         int    // of the value or constant
	Weight        string // the parameter
	Number        float64
	Shape, Stride []int
	Off           int
}

// Weight is a parameter or a buffer.
type Weight struct {
	Name   string
	DType  string
	Shape  []int
	File   string    // the checkpoint's tensor that it is
	Turned bool      // that tensor is its transpose
	Rows   []Tensor  // the checkpoint's tensors that make up the weight, in sequence
	Lost   bool      // no tensor of the checkpoint is known to be it
	Data   *Constant // of a buffer: its numbers
}

// Constant are numbers that depend on no parameter.
type Constant struct {
	DType   string
	Shape   []int
	Numbers []float64
	SHA256  string
	Like    string   // digest of the recorded numbers that these numbers, made for another length, replace
	Depends []string // the model's arguments, except token ids and positions, on which the numbers depend
	// Is names the argument with exactly these numbers: "input_ids" or "position_ids"; empty for other numbers.
	Is string

	mask *mask // the mask of the model's dtype, if the numbers are a mask that is added to scores; nil for other numbers
}

// mask is 0 where a query may see a key, k ≤ q and with a window k > q − window, and the lowest number of the constant's dtype elsewhere.
type mask struct {
	positions []float64 // of the queries
	window    int       // 0 for none
	hidden    float64
}
