package isolate

import (
	"context"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// An operand of an entry may have been captured and still be computed again, from its own inputs: a kernel that fuses two operations reads the result of the
// first before it is rounded.

// Operand is what a rereading computes again.
type Operand struct {
	Role string // the entry's name without its layer, "mlp.act_fn"
	// Inner is the role of a captured operand of that entry, which is computed again too; empty for none.
	Inner string
}

// Recompute returns the trial of an entry whose program computes an operand again; rounded says which readers get the operand rounded. It has the tokens that t
// has: of a large entry a part. It is nil if the entry has no such operand, or if the inputs of the operand were not captured.
func Recompute(ctx context.Context, t *Trial, operand Operand, rounded *PartlyRounded) (*Trial, error) {
	at := Leaf(t, operand.Role)
	if at < 0 {
		return nil, nil
	}
	without := []order.Node{t.Cut.Leaves[at]}
	if operand.Inner != "" {
		inner, ok := operandOf(t.Isolator, without[0], operand.Inner)
		if !ok {
			return nil, nil
		}
		without = append(without, inner)
	}
	again, err := t.Isolator.Unread(t.Node, func(n order.Node) bool { return !slices.Contains(without, n) && t.Isolator.Has(n) })
	if err == nil {
		again.change, again.edited, again.Account = rounded, rounded != nil, t.Account
		err = readAs(ctx, again, t)
	}
	if Lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := again.Prepare(ctx); err != nil || again.Formula == nil {
		return nil, err
	}
	return again, nil
}

// readAs reads the same tokens of the entry as another trial has. If a row depends on further rows, like a row of
// attention, the program computes some rows from all rows of its inputs.
func readAs(ctx context.Context, t *Trial, of *Trial) error {
	keep := of.Rows()
	if of.Call.Some != nil {
		keep = of.Call.Some.Keep
	}
	switch {
	case keep == nil:
		return t.ReadAll()
	case InParts(t):
		t.part.rows = keep
	default:
		if err := t.Prepare(ctx); err != nil {
			return err
		}
		t.Call.Some = &program.Some{Axis: TokenAxis(t.Entry), Keep: keep}
	}
	return readRows(t, keep)
}

// Computes reports whether an operand is a step of the cut.
func Computes(t *Trial, operand string) bool {
	return slices.ContainsFunc(t.Cut.Steps, func(n order.Node) bool { return n.Pass == t.Node.Pass && RoleOf(t.Isolator.list.At(n)) == operand })
}

// Leaf is which leaf of the cut an operand is; −1 for none.
func Leaf(t *Trial, operand string) int {
	return slices.IndexFunc(t.Cut.Leaves, func(n order.Node) bool { return n.Pass == t.Node.Pass && RoleOf(t.Isolator.list.At(n)) == operand })
}

// StepOf is the step by which the program of an entry computes an operand; nil where the operand is no step of it.
func StepOf(t *Trial, operand string) (*program.Step, error) {
	f, parts, err := t.Cut.Parts(t.Passes(), t.Isolator.env.DType, 0)
	if errors.Is(err, order.ErrOwn) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if RoleOf(t.Isolator.list.At(part.Node)) == operand {
			return &f.Steps[part.Out.Step], nil
		}
	}
	return nil, nil
}

// operandOf is the captured operand of an entry that has a role in the same pass. ok is false if the entry has none, or cannot be computed from what was
// captured.
func operandOf(i *Isolator, n order.Node, role string) (order.Node, bool) {
	cut, err := i.list.Cut(i.Has, n)
	if err != nil {
		return order.Node{}, false
	}
	at := slices.IndexFunc(cut.Leaves, func(leaf order.Node) bool { return leaf.Pass == n.Pass && RoleOf(i.list.At(leaf)) == role })
	if at < 0 {
		return order.Node{}, false
	}
	return cut.Leaves[at], true
}

// RoleOf is an entry's name without its layer.
func RoleOf(e *order.Entry) string {
	if name := order.NameOf(e.Name); e.Layer >= 0 && name.Layer() == e.Layer {
		return name.Module()
	}
	return e.Name
}
