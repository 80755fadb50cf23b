package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// view is one element of a mask: a query and a key. Positions count from the first token.
type view struct {
	Mistake
	q, k        float64 // positions of the query and the key
	row, column int     // indexes of the query in its pass, and of the key in its row
	right       bool    // the right mask lets the query see the key
	window      float64 // of the right mask; 0 for none
	first, last float64 // positions of the first and the last query of the pass
	prompt      float64 // tokens of the prompt
}

// low is the first key that a query at a position sees by the right mask.
func (v view) low(q float64) float64 {
	if v.window > 0 {
		return q - v.window + 1
	}
	return 0
}

// start and end are the first and the last query of the query's chunk of n tokens.
func (v view) start(n int) float64 { return math.Floor(v.q/float64(n)) * float64(n) }
func (v view) end(n int) float64   { return min(v.start(n)+float64(n)-1, v.last) }

// ruled is the key that the rule of a mistake gives for the query.
func (v view) ruled() float64 { return float64(v.edge(int(v.q), int(v.last)+1)) }

// maskRules say which keys queries see.
var maskRules = map[Kind]func(v view) bool{
	"mask.top-left":          func(v view) bool { return v.column <= v.row },
	"mask.causal":            func(v view) bool { return v.right && v.k <= v.q },
	"mask.anti-causal":       func(v view) bool { return v.right && v.k >= v.q },
	"mask.none":              func(view) bool { return true },
	"mask.both-sides":        func(v view) bool { return math.Abs(v.q-v.k) <= float64(v.N) },
	"mask.blocks":            ownBlock,
	"mask.blocks-not-window": ownBlock,
	"mask.prefix":            func(v view) bool { return v.right || v.q < float64(v.N) && v.k < float64(v.N) },
	"mask.window-whole-block": func(v view) bool {
		return v.k <= v.q && v.k >= math.Floor(max(v.low(v.q), 0)/float64(v.N))*float64(v.N)
	},
	"mask.window-both-sides":     func(v view) bool { return math.Abs(v.q-v.k) < v.window },
	"mask.key-masked":            func(v view) bool { return v.right && v.k != float64(v.N) },
	"mask.keys-masked":           func(v view) bool { return v.right && (v.k < float64(v.N) || v.k > float64(v.M)) },
	"mask.key-masked-but-own":    func(v view) bool { return v.right && (v.k != float64(v.N) || v.q == float64(v.N)) },
	"mask.first-keys-masked":     func(v view) bool { return v.right && v.k >= float64(v.N) },
	"mask.first-keys-seen":       func(v view) bool { return v.right || v.k < float64(v.N) && v.k <= v.q },
	"mask.reversed":              func(v view) bool { return v.k >= v.q && v.k <= v.last },
	"mask.prompt-masked":         func(v view) bool { return v.k >= max(v.low(v.q), v.prompt) && v.k <= v.q },
	"mask.own-key-alone":         func(v view) bool { return v.k == v.q },
	"mask.window-no-end":         func(v view) bool { return v.k >= v.low(v.q) && v.k <= v.last },
	"mask.window-of-first-query": func(v view) bool { return v.k >= v.low(v.first) && v.k <= v.q },
	"mask.window-moved": func(v view) bool {
		return v.k >= v.low(v.q)+float64(v.N) && v.k <= v.q+float64(v.N)
	},
	"mask.chunks": func(v view) bool { return v.k >= v.low(v.q) && v.k <= v.end(v.N) },
	"mask.last-block-left-out": func(v view) bool {
		return v.k >= v.low(v.q) && v.k <= min(v.q, math.Floor((v.last+1)/float64(v.N))*float64(v.N)-1)
	},
	"mask.window-of-chunk":        func(v view) bool { return v.k >= v.low(v.start(v.N)) && v.k <= v.q },
	"mask.window-of-chunk-no-end": func(v view) bool { return v.k >= v.low(v.start(v.N)) && v.k <= v.end(v.N) },
	"mask.window-next-block":      func(v view) bool { return v.k >= math.Ceil(v.low(v.q)/float64(v.N))*float64(v.N) && v.k <= v.q },
	"mask.ring":                   func(v view) bool { return v.k >= max(v.low(v.q), v.last-float64(v.N)+1) && v.k <= v.q },
	"mask.ring-of-chunk":          func(v view) bool { return v.k >= max(v.low(v.q), v.end(v.M)-float64(v.N)+1) && v.k <= v.q },
	"mask.step-sees-prompt-alone": func(v view) bool { return v.k >= v.low(v.q) && v.k <= v.q && (v.k < v.prompt || v.k == v.q) },
	firstKeyRule:                  func(v view) bool { return v.k <= v.q && v.k >= v.ruled() },
	lastKeyRule:                   func(v view) bool { return v.right && v.k <= v.ruled() },
}

func ownBlock(v view) bool { return v.k <= v.q && v.k >= v.start(v.N) }

// viewOf returns the fields that all views of a mask of an entry share.
func viewOf(s *subject, e *Entry, mask *program.Step) view {
	pass := s.m.Passes[e.Node.Pass]
	return view{window: mask.Sight().Window, first: float64(pass.Past), last: float64(pass.Past + pass.Tokens - 1), prompt: float64(s.m.Passes[0].Tokens)}
}

// patternOf writes, as a text, which keys the queries of all masks see by a rule. The text is empty if the masks have more than mostPattern elements.
func patternOf(s *search, sees func(v view) bool, m Mistake) string {
	var key []byte
	for _, e := range s.entries {
		for _, i := range masksOf(e) {
			st := &e.Program.Steps[i]
			if len(st.Shape) < 2 || len(key)+program.Size(st.Shape) > mostPattern {
				return ""
			}
			v, keys := viewOf(s.subject, e, st), st.Shape[len(st.Shape)-1]
			v.Mistake = m
			for row := range st.Shape[len(st.Shape)-2] {
				for column := range keys {
					v.q, v.k = v.first+float64(row), v.last+1-float64(keys-column)
					if sees(v) {
						key = append(key, 1)
					} else {
						key = append(key, 0)
					}
				}
			}
		}
	}
	return string(key)
}
