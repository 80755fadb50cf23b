package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// Sample returns the entries of a form from which its arithmetic is decided.
func (k *Forms) Sample(ctx context.Context, name isolate.FormKey) ([]*isolate.Evidence, error) {
	all, _, err := k.entriesOf(ctx, name)
	return all, err
}

// entriesOf returns a sample of a form's captured entries, and the nodes outside the sample.
func (k *Forms) entriesOf(ctx context.Context, name isolate.FormKey) (all []*isolate.Evidence, others []order.Node, err error) {
	nodes := k.I.CapturedForms().Nodes[name]
	nodes = isolate.Permuted(nodes, isolate.Scattered(len(nodes)))
	elements := 0
	for at, n := range nodes {
		if len(all) >= MaxEntries || len(all) >= MinEntries && elements >= FormElements {
			return all, nodes[at:], nil
		}
		e, err := k.I.Evidence(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		if e != nil && e.Shows() {
			all = append(all, e)
			elements += len(e.Y.Data)
		}
	}
	return all, nil, nil
}

// beyondSample adds a second arithmetic to the verdict on a form with more entries than the sample: a kernel of some layers may be missing from the
// sample. The second arithmetic has to give what the form's own arithmetic leaves of a few entries outside the sample.
func (k *Forms) beyondSample(ctx context.Context, known Verdict, name isolate.FormKey) (Verdict, error) {
	f, err := k.alone(ctx, name)
	if err != nil || len(f.others) == 0 || known.Own == nil || known.Second != nil {
		return known, err
	}
	return k.sampled.Get(ctx, name, func(ctx context.Context) (Verdict, error) {
		beyond := known
		suspects, err := k.suspectsBeyond(ctx, known.Own, f.others)
		if len(suspects) > 0 && err == nil {
			drawOn(&isolate.Account{}, suspects)
			beyond.Second, err = f.secondOf(ctx, known.Own, suspects)
		}
		return beyond, err
	})
}

// suspectsBeyond are a few of the entries that were not looked at, which an arithmetic does not give.
func (k *Forms) suspectsBeyond(ctx context.Context, own *isolate.Arithmetic, others []order.Node) ([]*isolate.Evidence, error) {
	var suspects []*isolate.Evidence
	for _, n := range others {
		if len(suspects) == MinEntries {
			break
		}
		e, err := k.I.Evidence(ctx, n)
		if err != nil {
			return nil, err
		}
		if e == nil || len(e.Left) == 0 {
			continue
		}
		if _, rest, _, err := e.Judge(ctx, own); err != nil {
			return nil, err
		} else if len(rest) > 0 {
			suspects = append(suspects, e)
		}
	}
	return suspects, nil
}

// Entries of a form are looked at until there are maxEntries, or formElements elements of minEntries, spread over the trace:
// what a search costs does not grow with the trace. Before another entry is accused, a second arithmetic is looked for in those that
// were not looked at: see beyondSample.
const (
	MaxEntries   = 256
	MinEntries   = 4
	FormElements = 1 << 20
)
