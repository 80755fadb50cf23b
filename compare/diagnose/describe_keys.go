package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// otherKeys describes masks by the keys that queries see and should not see, or do not see and should. The result of a softmax shows the keys, too: a key
// that a query does not see has no weight. Of a softmax the keys are a part of the difference, so they propose mistakes and do not describe it.
func otherKeys(x *difference) *Description {
	s := x.search
	k := keysOf{
		d:    &Description{Kind: "described.keys", Of: theResult},
		mask: s.first.exact() || s.m.List.Entries[s.first.Node.Entry].Compare == order.Pattern,
	}
	if !k.mask && !endsWithSoftmax(s.first) {
		return nil
	}
	for n := range x.results {
		o := &x.results[n]
		pass := s.m.Passes[o.e.Node.Pass]
		if len(o.shape) < 2 || !k.mask && !ofKeys(o.shape, pass) {
			return nil
		}
		k.add(o, pass)
	}
	if k.d.Explained == 0 {
		return nil
	}
	k.d.Wrong = k.d.Numbers
	if !k.broken {
		x.draft(k.d).proposes = rules(k.all)
	}
	if k.mask && len(k.lost) > 1 && !k.gains {
		m := Mistake{Kind: "mask.keys-masked", Place: maskSite, N: slices.Min(k.lost), M: slices.Max(k.lost)}
		x.draft(k.d).proposes = append(x.draft(k.d).proposes, m)
	}
	x.draft(k.d).quiet = !k.mask
	return k.d
}

// keysOf collects the keys that the queries of some entries see.
type keysOf struct {
	d      *Description
	mask   bool // the entries are masks; else results of a softmax
	all    []seen
	lost   []int // the positions of the keys that a query should see and does not see
	gains  bool  // a query sees a key that it should not see
	broken bool  // not all queries are there, a query sees no key, or a query does not see a key between two others
}

// add takes in the queries of an entry, whose result o has the axes of queries and keys last.
func (k *keysOf) add(o *observed, pass order.Pass) {
	last := len(o.shape) - 1
	keys, queries, end := o.shape[last], o.shape[last-1], pass.Past+pass.Tokens
	for row := 0; row < len(o.want); row += keys {
		has, right, lost, gained := k.row(o, row, keys)
		k.d.Elements += keys
		k.d.Explained += len(lost) + len(gained)
		for _, key := range lost {
			if at := end - keys + key; !slices.Contains(k.lost, at) {
				k.lost = append(k.lost, at)
			}
		}
		k.gains = k.gains || len(gained) > 0
		query := end - queries + row/keys%queries
		if k.broken = k.broken || queries != pass.Tokens || !unbroken(has) || !unbroken(right); !k.broken {
			first := end - keys // the position of the first key
			k.all = append(k.all, seen{
				query: query, keys: end,
				first: first + has[0], last: first + has[len(has)-1],
				rightFirst: first + right[0], rightLast: first + right[len(right)-1],
			})
		}
		if text := queryWords(query, lost, gained); text != "" && !slices.Contains(k.d.Cases, text) {
			k.d.Numbers++
			if len(k.d.Cases) <= mostValues {
				k.d.Cases = append(k.d.Cases, text)
			}
		}
	}
}

// row compares the visible keys of one query (has) with the keys that should be visible (right). lost has the keys of right that are not visible. gained
// has the visible keys that are not in right.
func (k *keysOf) row(o *observed, from, keys int) (has, right, lost, gained []int) {
	for key := range keys {
		i := from + key
		should, does := k.sees(o.value[i], o.off[i]), k.sees(o.want[i], o.half[i])
		if should {
			right = append(right, key)
		}
		if does {
			has = append(has, key)
		}
		switch {
		case should && !does:
			lost = append(lost, key)
		case does && !should:
			gained = append(gained, key)
		}
	}
	return has, right, lost, gained
}

// sees reports whether an element of a mask, or a weight with its error, is that of a visible key.
func (k *keysOf) sees(x, off float64) bool {
	if k.mask {
		return x > -hides
	}
	return x > off
}

// ofKeys reports whether the last two axes of a shape may count all queries of a pass, and keys.
func ofKeys(shape []int, pass order.Pass) bool {
	n := len(shape)
	return n > 1 && shape[n-2] == pass.Tokens && shape[n-1] >= pass.Tokens && shape[n-1] <= pass.Past+pass.Tokens
}

// endsWithSoftmax reports whether the last computing steps of an entry are a softmax.
func endsWithSoftmax(e *Entry) bool {
	all := edit.Softmaxes(e.Program)
	return len(all) > 0 && !slices.ContainsFunc(e.Program.Steps[all[len(all)-1]+1:], func(s program.Step) bool { return s.Prim.Computes() })
}

// unbroken reports whether some keys, in order, are all keys between the first and the last of them.
func unbroken(keys []int) bool { return len(keys) > 0 && keys[len(keys)-1]-keys[0] == len(keys)-1 }
