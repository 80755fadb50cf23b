package isolate

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// FormKey names a form. The entries of a form have the same program except for numbers, and an engine has one
// arithmetic for all of them.
type FormKey struct {
	// made are the operations from captured entries to an entry, its own first, with madeOf between them.
	made string
	// OneToken: the entries are those of passes of a single token, for which engines have kernels of their own.
	OneToken bool
}

// NewFormKey is the form of some operations, that of the entries first.
func NewFormKey(operations []string, oneToken bool) FormKey {
	return FormKey{strings.Join(operations, madeOf), oneToken}
}

// madeOf stands between the operations of a form.
const madeOf = " < "

// String is the form in words.
func (f FormKey) String() string {
	if f.OneToken {
		return f.made + " (one token)"
	}
	return f.made
}

// Operations are those of the form.
func (f FormKey) Operations() []string { return strings.Split(f.made, madeOf) }

// Others is the same form in the passes of the other kind.
func (f FormKey) Others() FormKey { return FormKey{f.made, !f.OneToken} }

// SeveralTokens is the same form in the prompt's passes.
func (f FormKey) SeveralTokens() FormKey { return FormKey{f.made, false} }

// FormOf is the form of an entry: its operation, those that are computed on the way, and whether the pass is of a single token.
func (i *Isolator) FormOf(cut *order.Plan, n order.Node) FormKey {
	forms := []string{op.Form(i.list.At(n).Op)}
	for k := len(cut.Steps) - 1; k >= 0; k-- {
		if f := op.Form(i.list.At(cut.Steps[k]).Op); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	slices.Sort(forms[1:])
	return NewFormKey(forms, i.env.Passes[n.Pass].Tokens == 1 || i.lastRow(n))
}
