package isolate

import (
	"context"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// pastCaches certifies an entry that is computed from cached keys or values of an earlier pass that are no tensor of the order's kind, such as
// keys of another shape. What a cache held is what each pass put into it: the cut goes on to the new keys and values of the earlier
// passes. Where these give every element the entry is right, whatever the tensor is that was captured in between. Where they do not the entry
// is not accused, since it may have been computed from that tensor: the certificate is nil. The error is that of reading the trace or the weights.
func pastCaches(ctx context.Context, i *Isolator, n order.Node) (*Certificate, *order.Plan, error) {
	through := 0
	has := func(at order.Node) bool {
		if !i.Has(at) {
			return false
		}
		if _, cache := i.list.At(at).Op.(op.Cache); cache && at.Pass < n.Pass && i.Misfit(at) != nil {
			through++
			return false
		}
		return true
	}
	t, err := i.Unread(n, has)
	if err == nil && through > 0 {
		err = t.ReadAll()
	}
	if Lacking(err) || through == 0 {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	_, left, _, err := t.Judge(ctx, &Arithmetic{})
	if len(left) > 0 || err != nil {
		return nil, nil, err
	}
	return certifiedTrial(ctx, t)
}
