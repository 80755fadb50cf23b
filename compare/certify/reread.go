package certify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A kernel that fuses two operations reads the result of the first before it is rounded to 16 bits, and a hook still shows the rounded
// tensor: inductor multiplies silu(gate) by up in float32, while the activation's hook gets bfloat16. So a captured operand may have been
// read with more digits than the trace has. Its value with these digits is known where the operand's own inputs were captured: the
// operand is computed again from them, without its last rounding.

// A kernel with two loops over a row may read the operand in one of them from what it has just computed, and in the other from the tensor that it
// has written: inductor takes the mean of squares of a norm from the sum in float32, and multiplies the rounded sum.

// rereading is an arithmetic of a form whose engine reads one captured operand of the form's operation before that operand is rounded.
type rereading struct {
	operand operand
	rounded *partly // the steps that read the operand as it was captured; nil for none
	// own is the arithmetic of programs that compute the operand again, in most entries of the form at least.
	own *arithmetic
	// thin: own leaves too few elements of the other entries to accuse them.
	thin bool
	// alike marks the rereading of one entry that reads another operand than the entries of the form do. Such a rereading has to give every element.
	alike bool
}

// operand is what a rereading computes again.
type operand struct {
	role string // the entry's name without its layer, "mlp.act_fn"
	// inner is the role of a captured operand of that entry, which is computed again too; empty for none.
	inner string
}

// reread looks for such an operand of the entries of a form, and returns nil if no operand is one. In float32 no rounding is left out.
func reread(ctx context.Context, i *Isolator, entries []*evidence) (*rereading, error) {
	left := (&form{entries: entries}).left()
	if i.env.DType == hooks.F32 || len(left) == 0 {
		return nil, nil
	}
	roles := rereadable(left)
	for _, role := range roles {
		if left[0].account.spent() {
			return nil, nil
		}
		operand := operand{role: role}
		again, err := recomputing(ctx, entries, operand, nil)
		if err != nil {
			return nil, err
		}
		if len(again) != len(entries) {
			continue
		}
		if r, err := rereadBy(ctx, entries, again, operand); r != nil || err != nil {
			return r, err
		}
	}
	return rereadDeeper(ctx, entries, roles)
}

// rereadBy looks for the readers of an operand that read it before it is rounded: all of them, or some. again are the entries with programs that compute
// the operand again.
func rereadBy(ctx context.Context, entries, again []*evidence, operand operand) (*rereading, error) {
	if r, err := unrounded(ctx, again, operand, nil); r != nil || err != nil {
		return r, err
	}
	changes, err := computing(again, operand).readers(operand.role)
	if err != nil {
		return nil, err
	}
	for _, some := range changes {
		if again, err = recomputing(ctx, entries, operand, some); err != nil {
			return nil, err
		}
		if r, err := unrounded(ctx, again, operand, some); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// rereadable lists the operands that more than half of the entries have. The first layer may read another tensor than the other layers. Products with
// a matrix are left out, unless a bias is added to them, since no other kernel computes such a product.
func rereadable(entries []*evidence) []string {
	var all []string
	count := map[string]int{}
	for _, e := range entries {
		own := map[string]bool{}
		for _, n := range e.cut.Leaves {
			leaf := e.i.list.At(n)
			linear, product := leaf.Op.(op.Linear)
			if _, given := leaf.Op.(op.Given); leaf.Op == nil || given || product && !linear.Bias || leaf.DTypeOf(e.i.env.DType) != e.i.env.DType || n.Pass != e.node.Pass {
				continue
			}
			role := roleOf(leaf)
			if own[role] {
				continue
			}
			own[role] = true
			if count[role]++; count[role] == 1 {
				all = append(all, role)
			}
		}
	}
	return slices.DeleteFunc(all, func(role string) bool { return 2*count[role] <= len(entries) })
}

// computing is the first of some entries that computes an operand. Most of them do.
func computing(of []*evidence, operand operand) *evidence {
	return of[max(slices.IndexFunc(of, func(e *evidence) bool { return e.leaf(operand.role) < 0 && e.computes(operand.role) }), 0)]
}

// roleOf is an entry's name without its layer.
func roleOf(e *order.Entry) string {
	return strings.TrimPrefix(e.Name, fmt.Sprintf("layers.%d.", e.Layer))
}

// numbered is a number of a layer, or of an expert, in a name.
var numbered = regexp.MustCompile(`(^|\.)\d+(\.|$)`)

// roleInLayers is an entry's name without numbers: that of the same entry in every layer.
func roleInLayers(name string) string { return numbered.ReplaceAllString(name, "${1}*${2}") }

// recomputing returns entries with programs that compute an operand again; rounded says which readers get the operand rounded. It returns fewer entries
// if the inputs of an operand were not captured.
func recomputing(ctx context.Context, entries []*evidence, operand operand, rounded *partly) ([]*evidence, error) {
	var all []*evidence
	for _, e := range entries {
		t, err := e.recompute(ctx, operand, rounded)
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			all = append(all, &evidence{t, e.left})
		case e.leaf(operand.role) < 0:
			all = append(all, e)
		default:
			return all, nil
		}
	}
	return all, nil
}

// computes reports whether an operand is a step of the cut.
func (t *trial) computes(operand string) bool {
	return slices.ContainsFunc(t.cut.Steps, func(n order.Node) bool { return n.Pass == t.node.Pass && roleOf(t.i.list.At(n)) == operand })
}

// leaf is which leaf of the cut an operand is; −1 for none.
func (t *trial) leaf(operand string) int {
	return slices.IndexFunc(t.cut.Leaves, func(n order.Node) bool { return n.Pass == t.node.Pass && roleOf(t.i.list.At(n)) == operand })
}

// recompute returns the trial of an entry whose program computes an operand again; rounded says which readers get the operand rounded. It has the tokens that t
// has: of a large entry a part. It is nil if the entry has no such operand, or if the inputs of the operand were not captured.
func (t *trial) recompute(ctx context.Context, operand operand, rounded *partly) (*trial, error) {
	at := t.leaf(operand.role)
	if at < 0 {
		return nil, nil
	}
	without := []order.Node{t.cut.Leaves[at]}
	if operand.inner != "" {
		inner, ok := t.i.operandOf(without[0], operand.inner)
		if !ok {
			return nil, nil
		}
		without = append(without, inner)
	}
	again, err := t.i.unread(t.node, func(n order.Node) bool { return !slices.Contains(without, n) && t.i.has(n) })
	if err == nil {
		again.change, again.edited, again.account = rounded, rounded != nil, t.account
		err = again.readAs(ctx, t)
	}
	if lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := again.prepare(ctx); err != nil || again.formula == nil {
		return nil, err
	}
	return again, nil
}

// readAs reads the tokens of the entry that another trial of the same entry has. If a row is computed from other rows too, such as the rows of attention, the
// program computes some rows from all rows of its inputs.
func (t *trial) readAs(ctx context.Context, of *trial) error {
	keep := of.kept
	if of.call.Some != nil {
		keep = of.call.Some.Keep
	}
	switch {
	case keep == nil:
		return t.readAll()
	case t.inParts():
		t.kept, t.tokens = keep, len(keep)
	default:
		if err := t.prepare(ctx); err != nil {
			return err
		}
		t.call.Some = &program.Some{Axis: tokenAxis(t.entry), Keep: keep}
	}
	return t.readRows(keep)
}

// unrounded looks for the arithmetic of programs that compute an operand again and do not round it: the presets, with one site less. The
// arithmetic is the form's if it explains more than half of the entries, two at least, and shows enough in them; the entries that it does not
// explain are suspect. Without such an arithmetic the result is nil.
func unrounded(ctx context.Context, entries []*evidence, operand operand, rounded *partly) (*rereading, error) {
	left := (&form{entries: entries}).left()
	one := computing(left, operand)
	s, err := one.stepOf(operand.role)
	if err != nil || s == nil {
		return nil, err
	}
	searches := []*search{newSearch(left, entries)}
	for _, e := range samples(left) {
		searches = append(searches, searchOf(e, left, entries))
	}
	var given []ranked
	for _, of := range searches {
		starts, err := of.starts()
		if err != nil {
			return nil, err
		}
		if operand.inner != "" {
			starts = fewStarts(starts)
		}
		for k, a := range starts {
			a = unroundedAt(&partly{form: s.Form, name: s.Name}, one.trial, a)
			starts[k] = rounded.with(a)
		}
		all, err := of.all(ctx, starts)
		if err != nil {
			return nil, err
		}
		if given = append(given, of.given...); all != nil {
			break
		}
	}
	own, suspects, err := most(ctx, entries, left, given)
	held := len(entries) - len(suspects)
	if err != nil || own.strict() || len(suspects) > 0 && (held < 2 || 2*held <= len(entries)) {
		return nil, err
	}
	r := &rereading{operand: operand, rounded: rounded, own: own}
	if len(suspects) > 0 && held < proofElements*len(suspects) {
		r.thin, err = own.thin(ctx, suspects)
	}
	return r, err
}

// stepOf is the step by which the program of an entry computes an operand; nil where the operand is no step of it.
func (t *trial) stepOf(operand string) (*program.Step, error) {
	f, parts, err := t.cut.Parts(t.passes(), t.i.env.DType, 0)
	if errors.Is(err, order.ErrOwn) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if roleOf(t.i.list.At(part.Node)) == operand {
			return &f.Steps[f.Source(part.Out)], nil
		}
	}
	return nil, nil
}

// judge judges an entry in the arithmetic that reads the operand before it is rounded. It returns the trial that computes the operand again, nil if
// that cannot be computed, and the elements of the entry that the arithmetic leaves.
func (r *rereading) judge(ctx context.Context, t *trial) (again *trial, j *judged, left []int, order string, err error) {
	if again, err = t.recompute(ctx, r.operand, r.rounded); again == nil || err != nil {
		return nil, nil, nil, "", err
	}
	j, left, order, err = again.strict(ctx, r.own)
	return again, j, left, order, err
}

// words say what an engine does that reads an operand so.
func (r *rereading) words() string {
	words := "reads " + r.operand.role + " before it is rounded"
	if r.operand.inner != "" {
		words = "reads " + r.operand.role + ", and " + r.operand.inner + " for that, before they are rounded"
	}
	if r.rounded != nil {
		words += ", but at " + strings.Join(r.rounded.readers, ", ")
	}
	return words + ", as a kernel does that fuses the two"
}
