package chain

import (
	"context"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
)

// maxTogether bounds the elements of products computed together over several passes, since all of them are in
// memory at one time.
const maxTogether = 1 << 22

// prepared is one entry in some passes. A product with a weight has several passes, so the weight is read once.
type prepared struct {
	name     string
	passes   []int
	elements int
	cost     int
}

// Prepare certifies entries, given by pass, on all cores, the most costly entry first. No certificate depends on
// the order: an entry is computed without other entries, or together with the same entry of other passes. If right
// is set, Prepare leaves out the entries with a need for a search for an arithmetic, so a comparison ending earlier
// has not searched in vain; [Chain.At] certifies these entries.
func (c *Chain) Prepare(ctx context.Context, entries map[int][]string, right bool) {
	c.askFirst(ctx)
	var all []prepared
	open := map[string]int{} // the last of an entry
	for _, pass := range slices.Sorted(maps.Keys(entries)) {
		for _, name := range entries[pass] {
			if pass >= len(c.i.Env().Passes) {
				continue
			}
			elements, cost, joins := isolate.Costs(c.i, name, pass)
			if at, ok := open[name]; ok && joins && all[at].elements+elements <= maxTogether {
				p := &all[at]
				p.passes, p.elements, p.cost = append(p.passes, pass), p.elements+elements, p.cost+cost
				continue
			}
			if all = append(all, prepared{name, []int{pass}, elements, cost}); joins {
				open[name] = len(all) - 1
			}
		}
	}
	together, costs := make([]int, len(all)), make([]int, len(all))
	for n := range all {
		together[n], costs[n] = isolate.AtOnce(c.i, all[n].name, all[n].passes, all[n].elements), all[n].cost
	}
	results := make([][]isolate.Result, len(all))
	isolate.InTurns(together, costs, isolate.MostLarge(c.i), func(n int) {
		if ctx.Err() == nil {
			results[n] = isolate.Results(ctx, c.i, all[n].name, all[n].passes, right)
		}
	})
	for n, of := range results {
		for k, r := range of {
			if r.Cert != nil || r.Err != nil {
				c.ready[capture.Key(all[n].passes[k], all[n].name, 0)] = r
			}
		}
	}
}
