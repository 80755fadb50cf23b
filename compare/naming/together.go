package naming

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// roles are the wrong entries of several roles, each with its arithmetic.
type roles struct {
	left  []*isolate.Evidence
	own   []*isolate.Arithmetic
	right []order.Node // of these roles
}

// together adds the wrong entries of further roles that may have the same mistake: operations of one kind with the same inputs. table has the roles of
// one module, such as the cosines and sines of a table; all has the roles of every module, such as two tables with wrong positions. Each is nil if it
// adds nothing.
func (k *Names) together(ctx context.Context, role string, own roles) (table, all *roles, err error) {
	e := k.i.List().At(own.left[0].Node)
	if e.Op == nil || len(e.Weights) > 0 {
		return nil, nil, nil
	}
	seen := map[string]bool{role: true}
	near, every := own.clone(), own.clone()
	for at := range k.i.List().Entries {
		o := &k.i.List().Entries[at]
		other := order.NameOf(o.Name).Role()
		if seen[other] || o.Op == nil || o.Op.Kind() != e.Op.Kind() || len(o.Weights) > 0 || !k.i.Fixed(at) || o.Level != e.Level || o.Layer != e.Layer ||
			!slices.EqualFunc(o.Inputs, e.Inputs, func(a, b order.Ref) bool { return a.Name == b.Name }) {
			continue
		}
		seen[other] = true
		var more roles
		if more.left, more.own, more.right, err = k.leftOf(ctx, other); err != nil {
			return nil, nil, err
		}
		every.add(more)
		if parent(other) == parent(role) {
			near.add(more)
		}
	}
	if len(near.left) > len(own.left) {
		table = &near
	}
	if len(every.left) > len(near.left) {
		all = &every
	}
	return table, all, nil
}

// parent is the module of a role: "rotary.full" of "rotary.full.cos"; empty without a point.
func parent(role string) string { return role[:max(strings.LastIndexByte(role, '.'), 0)] }

func (r roles) clone() roles {
	return roles{slices.Clone(r.left), slices.Clone(r.own), slices.Clone(r.right)}
}

func (r *roles) add(o roles) {
	r.left, r.own, r.right = append(r.left, o.left...), append(r.own, o.own...), append(r.right, o.right...)
}

// nameTogether looks for the mistake of a role. If the role has no name, or a name that is wrong for the rest of its table, it looks for the mistake of
// the table, and without any name for that of all roles. share limits the next search. A name of the role stays if its table has none.
func (k *Names) nameTogether(ctx context.Context, model *diagnose.Model, share func(), own roles, table, all *roles) (*diagnose.Finding, error) {
	in := func(r *roles) (*diagnose.Finding, error) {
		share()
		return k.nameIn(ctx, model, r.left, r.own, func(n order.Node) (*isolate.Evidence, error) { return k.i.Evidence(ctx, n) }, r.right)
	}
	found, err := in(&own)
	if err != nil {
		return nil, err
	}
	wider := []*roles{table, all}
	if found.Named() {
		if table == nil {
			return found, nil
		}
		if wrong, err := contradicted(ctx, k.Forms, found.Edit(), table.left[len(own.left):]); !wrong || err != nil {
			return found, err
		}
		wider = wider[:1]
	}
	for _, r := range wider {
		if r == nil {
			continue
		}
		if more, err := in(r); more.Named() || err != nil {
			return more, err
		}
	}
	return found, nil
}

// contradicted reports whether a mistake fits the programs of entries of other roles, and does not give their elements. In bfloat16 a wrong base may
// give the cosines, which are near 1, and not the sines.
func contradicted(ctx context.Context, forms *arithmetic.Forms, made *diagnose.Mistake, others []*isolate.Evidence) (bool, error) {
	if made == nil {
		return false, nil
	}
	for _, e := range others {
		fits, given, err := gives(ctx, forms, made, e)
		if err != nil {
			return false, err
		}
		if fits && !given {
			return true, nil
		}
	}
	return false, nil
}

// gives reports whether a mistake fits the program of an entry, and whether it gives all elements in one of the arithmetics of the entry's form.
func gives(ctx context.Context, forms *arithmetic.Forms, made *diagnose.Mistake, e *isolate.Evidence) (fits, given bool, err error) {
	tries, err := forms.Tries(ctx, e)
	if err != nil {
		return false, false, err
	}
	for _, a := range tries {
		if a == nil {
			continue
		}
		s, d, err := withEdit(ctx, e.Trial, a, made)
		if err != nil {
			return false, false, err
		}
		if d == nil {
			continue
		}
		p, call := d.Whole(s.entry.Call)
		if j, err := s.given(ctx, p, call); j != nil || err != nil {
			return true, j != nil, err
		}
		fits = true
	}
	return fits, false, nil
}
