// Package rewrite makes programs that are the same in exact arithmetic and round elsewhere: additions in another order, attention in a fused kernel, and
// results that some steps read rounded. A [program.Rewrite] numbers them, and [Apply] makes the program.
package rewrite

import (
	"fmt"
	"sync"

	"github.com/tracediff/tracediff/order/program"
)

// rewritten are programs of single operations with a kernel or an order of additions of their own.
var rewritten struct {
	sync.Mutex
	of map[key]*program.Program
}

type key struct {
	of *program.Program
	by program.Rewrite
}

// maxRewritten is how many are kept.
const maxRewritten = 1 << 12

// Of is [program.Of] with all of a rewrite. The program is shared.
func Of(o program.Op, form func(program.Op) string, by program.Rewrite, shape []int, in [][]int, w [][2]int) (*program.Program, error) {
	p, err := program.Of(o, form, by, shape, in, w)
	if err != nil || by == by.Steps() {
		return p, err
	}
	rewritten.Lock()
	defer rewritten.Unlock()
	k := key{p, by}
	if q, ok := rewritten.of[k]; ok {
		return q, nil
	}
	q, err := Apply(p, by)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Kind(), err)
	}
	if rewritten.of == nil || len(rewritten.of) >= maxRewritten {
		rewritten.of = map[key]*program.Program{}
	}
	rewritten.of[k] = q
	return q, nil
}
