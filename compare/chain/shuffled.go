//go:build shuffled

package chain

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/tracediff/tracediff/compare/isolate"
)

// askFirst certifies all entries of the trace before the walk asks for any, in an order drawn with the seed in TRACEDIFF_SHUFFLED, once. The program
// that internal/reports builds for its flag -shuffled has this method: no report may depend on the order in which forms are asked for. Errors are
// ignored here: the walk meets them again.
func (c *Chain) askFirst(ctx context.Context) {
	if c.asked {
		return
	}
	c.asked = true
	seed, err := strconv.ParseUint(os.Getenv("TRACEDIFF_SHUFFLED"), 10, 64)
	if err != nil {
		panic("the program was built with the tag shuffled, and TRACEDIFF_SHUFFLED is not a seed")
	}
	records := c.i.Trace().Records()
	for _, k := range rand.New(rand.NewPCG(seed, 1)).Perm(len(records)) {
		r := records[k]
		if e, ok := c.i.List().Lookup(r.Name); ok && !c.i.Recomputed(e.Name) && r.Firing == 0 && ctx.Err() == nil {
			isolate.ResultOf(ctx, c.i, r.Name, r.Pass, false)
		}
	}
}
