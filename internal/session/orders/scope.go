package orders

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// CheckScope reports what was typed and can select nothing.
func CheckScope(s capture.Scope, l *order.List) error {
	if err := (capture.Scope{Layers: s.Layers}).Check(l); err != nil {
		return hint.Add(err, "layers count from 0, and 5- is everything from 5 on; tracediff order lists the tensors of each")
	}
	return hint.Add(s.Check(l), "tracediff order --format text lists the names; '*' in a pattern is any run of characters")
}

// CheckRun reports what was typed and can select nothing of a run with these numbers of tokens, pass by pass.
func CheckRun(s capture.Scope, tokens []int) error {
	if err := s.CheckRun(tokens); err != nil {
		return hint.Add(fmt.Errorf("--%w", err), "--passes counts forward calls from 0, --positions tokens from 0 over all of them; --max-new-tokens N decodes more")
	}
	return nil
}

// RunTokens are the numbers of tokens of the passes of two traces, of that with more. What is not known is a pass without any
// limit of positions.
func RunTokens(traces ...*capture.Trace) []int {
	var most []int
	for _, t := range traces {
		var tokens []int
		ids, _ := t.IDs() // no ids, no positions to miss
		for _, pass := range ids {
			tokens = append(tokens, len(pass))
		}
		for n := sides.Passes(t); len(tokens) < n; {
			tokens = append(tokens, capture.NoEnd>>8)
		}
		if len(tokens) > len(most) {
			most = tokens
		}
	}
	return most
}
