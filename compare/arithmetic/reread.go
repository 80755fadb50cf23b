package arithmetic

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
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
	operand isolate.Operand
	rounded *isolate.PartlyRounded // the steps that read the operand as it was captured; nil for none
	// Own is the arithmetic of programs that compute the operand again, in most entries of the form at least.
	Own  *isolate.Arithmetic
	thin thin // of the other entries
	// alike marks the rereading of one entry that reads another operand than the entries of the form do. Such a rereading has to give every element.
	alike bool
}

// reread looks for such an operand of the entries of a form, and returns nil if no operand is one. A rereading has to explain at
// least as many entries as an arithmetic that reads what was captured: least. In float32 no rounding is left out.
func reread(ctx context.Context, i *isolate.Isolator, entries []*isolate.Evidence, least int) (*rereading, error) {
	left := (&Form{Entries: entries}).Unexplained()
	if i.Env().DType == hooks.F32 || len(left) == 0 {
		return nil, nil
	}
	roles := rereadable(left)
	for _, role := range roles {
		if left[0].Account.Spent() {
			return nil, nil
		}
		operand := isolate.Operand{Role: role}
		again, err := recomputing(ctx, entries, operand, nil)
		if err != nil {
			return nil, err
		}
		if len(again) != len(entries) {
			continue
		}
		if r, err := rereadBy(ctx, entries, again, operand, least); r != nil || err != nil {
			return r, err
		}
	}
	return rereadDeeper(ctx, entries, roles, least)
}

// rereadBy finds the steps that read an operand before rounding: all readers of the operand, or some. again are the
// entries with programs that recompute the operand.
func rereadBy(ctx context.Context, entries, again []*isolate.Evidence, operand isolate.Operand, least int) (*rereading, error) {
	if r, err := unrounded(ctx, again, operand, nil, least); r != nil || err != nil {
		return r, err
	}
	changes, err := isolate.Readers(computing(again, operand).Trial, operand.Role)
	if err != nil {
		return nil, err
	}
	for _, some := range changes {
		if again, err = recomputing(ctx, entries, operand, some); err != nil {
			return nil, err
		}
		if r, err := unrounded(ctx, again, operand, some, least); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// rereadable lists the operands that more than half of the entries have. The first layer may read another tensor than the other layers. Products with
// a matrix are left out, unless a bias is added to them, since no other kernel computes such a product.
func rereadable(entries []*isolate.Evidence) []string {
	var all []string
	count := map[string]int{}
	for _, e := range entries {
		own := map[string]bool{}
		for _, n := range e.Cut.Leaves {
			leaf := e.Isolator.List().At(n)
			linear, product := leaf.Op.(op.Linear)
			if _, given := leaf.Op.(op.Given); leaf.Op == nil || given || product && !linear.Bias || leaf.DTypeOf(e.Isolator.Env().DType) != e.Isolator.Env().DType || n.Pass != e.Node.Pass {
				continue
			}
			role := isolate.RoleOf(leaf)
			if own[role] {
				continue
			}
			own[role] = true
			if count[role]++; count[role] == 1 {
				all = append(all, role)
			}
		}
	}
	return slices.DeleteFunc(all, func(role string) bool { return !mostOf(count[role], len(entries)) })
}

// computing is the first of some entries that computes an operand. Most of them do.
func computing(of []*isolate.Evidence, operand isolate.Operand) *isolate.Evidence {
	return of[max(slices.IndexFunc(of, func(e *isolate.Evidence) bool {
		return isolate.Leaf(e.Trial, operand.Role) < 0 && isolate.Computes(e.Trial, operand.Role)
	}), 0)]
}

// recomputing returns entries with programs that compute an operand again; rounded says which readers get the operand rounded. It returns fewer entries
// if the inputs of an operand were not captured.
func recomputing(ctx context.Context, entries []*isolate.Evidence, operand isolate.Operand, rounded *isolate.PartlyRounded) ([]*isolate.Evidence, error) {
	var all []*isolate.Evidence
	for _, e := range entries {
		t, err := isolate.Recompute(ctx, e.Trial, operand, rounded)
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			all = append(all, &isolate.Evidence{Trial: t, Left: e.Left})
		case isolate.Leaf(e.Trial, operand.Role) < 0:
			all = append(all, e)
		default:
			return all, nil
		}
	}
	return all, nil
}

// unrounded looks for the arithmetic of programs that compute an operand again and do not round it: the presets, with one site less. The
// arithmetic is the form's if it explains more than half of the entries, at least two, at least least, and shows enough in them; the entries that it does
// not explain are suspect. Without such an arithmetic the result is nil.
func unrounded(ctx context.Context, entries []*isolate.Evidence, operand isolate.Operand, rounded *isolate.PartlyRounded, least int) (*rereading, error) {
	left := (&Form{Entries: entries}).Unexplained()
	one := computing(left, operand)
	s, err := isolate.StepOf(one.Trial, operand.Role)
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
		if operand.Inner != "" {
			starts = fewStarts(starts)
		}
		for k, a := range starts {
			a = unroundedAt(&isolate.PartlyRounded{Form: s.Form, Name: s.Name}, one.Trial, a)
			starts[k] = rounded.With(a)
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
	if err != nil || own.Strict() || held < least || !decides(held, len(entries)) {
		return nil, err
	}
	r := &rereading{operand: operand, rounded: rounded, Own: own}
	if len(suspects) > 0 && held < thresholds.Proof.Elements*len(suspects) {
		r.thin, err = thinUnder(ctx, own, suspects)
	}
	return r, err
}

// Judge judges an entry in the arithmetic of an operand read before rounding. It returns the trial that recomputes
// the operand, or nil if this is impossible, and the elements left by the arithmetic.
func (r *rereading) Judge(ctx context.Context, t *isolate.Trial) (again *isolate.Trial, j *isolate.Judgement, left []int, order string, err error) {
	if again, err = isolate.Recompute(ctx, t, r.operand, r.rounded); again == nil || err != nil {
		return nil, nil, nil, "", err
	}
	j, left, order, err = again.Judge(ctx, r.Own)
	return again, j, left, order, err
}

// words say what an engine does that reads an operand so.
func (r *rereading) words() string {
	words := "reads " + r.operand.Role + " before it is rounded"
	if r.operand.Inner != "" {
		words = "reads " + r.operand.Role + ", and " + r.operand.Inner + " for that, before they are rounded"
	}
	if r.rounded != nil {
		words += ", except in " + strings.Join(r.rounded.Readers, ", ")
	}
	return words + ", as a fused kernel does"
}

// A kernel that recomputes an operand repeats the operand's own kernel. If that kernel read a captured tensor
// before rounding, so does the repetition. An example is Gemma 3 compiled by inductor: the sum at the end of a
// layer reads the last norm of the layer in float32, and the mean of squares in the next norm recomputes this sum.
// Sum and norm are one kernel.

// rereadDeeper looks for an operand recomputed together with one of its own captured operands. Only the simplest
// arithmetics are tried, since such a kernel is float32 throughout.
func rereadDeeper(ctx context.Context, entries []*isolate.Evidence, roles []string, least int) (*rereading, error) {
	for _, role := range roles {
		again, err := recomputing(ctx, entries, isolate.Operand{Role: role}, nil)
		if err != nil {
			return nil, err
		}
		if len(again) != len(entries) {
			continue
		}
		for _, inner := range rereadable(again) {
			if slices.Contains(roles, inner) {
				continue
			}
			operand := isolate.Operand{Role: role, Inner: inner}
			deeper, err := recomputing(ctx, entries, operand, nil)
			if err != nil {
				return nil, err
			}
			if len(deeper) != len(entries) {
				continue
			}
			if r, err := rereadBy(ctx, entries, deeper, operand, least); r != nil || err != nil {
				return r, err
			}
		}
	}
	return nil, nil
}

// fewStarts are the presets that say one thing for all sites of a program, with the program's own order of steps and of additions.
func fewStarts(starts []*isolate.Arithmetic) []*isolate.Arithmetic {
	return slices.DeleteFunc(starts, func(a *isolate.Arithmetic) bool {
		return a.Rewrites != 0 || !slices.Contains(besideOrder, a.Preset)
	})
}

// The first layer reads another tensor than the other layers do: the embeddings, where others read the sum at the end of the layer before. A compiler
// makes the same kernel of it.

// of returns the rereading of an entry: the form's, or, if the entry lacks the operand and has exactly one other
// rereadable leaf, the same reading of this leaf.
func (r *rereading) of(ctx context.Context, t *isolate.Trial) (*rereading, error) {
	if isolate.Leaf(t, r.operand.Role) >= 0 || isolate.Computes(t, r.operand.Role) {
		return r, nil
	}
	roles := rereadable([]*isolate.Evidence{{Trial: t, Left: nil}})
	if len(roles) != 1 {
		return r, nil
	}
	alike := &rereading{operand: isolate.Operand{Role: roles[0]}, alike: true}
	again, err := isolate.Recompute(ctx, t, alike.operand, nil)
	if again == nil || err != nil {
		return r, err
	}
	s, err := isolate.StepOf(again, alike.operand.Role)
	if s == nil || err != nil {
		return r, err
	}
	step := &isolate.PartlyRounded{Form: s.Form, Name: s.Name}
	if r.rounded != nil {
		step.Readers = r.rounded.Readers
		alike.rounded = step
	}
	alike.Own = unroundedAt(step, again, r.Own)
	return alike, nil
}

// unroundedAt returns an arithmetic without rounding at a step and at the steps passing its result on, in the
// program of a trial.
func unroundedAt(step *isolate.PartlyRounded, t *isolate.Trial, a *isolate.Arithmetic) *isolate.Arithmetic {
	for _, at := range step.Handed(t.Formula.Program) {
		s := &t.Formula.Steps[at]
		a = a.With(program.Site{Form: s.Form, Name: s.Site}, program.Choice{Round: program.Plain})
	}
	return a
}
