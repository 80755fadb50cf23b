package diagnose

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// masked is an entry that is a mask of a prompt of six tokens, with a window; 0 for none.
func masked(t *testing.T, window float64) (*Model, *Entry) {
	t.Helper()
	m := tiny(t, "gemma3n-tiny")
	m.Passes = []order.Pass{{Tokens: 6}}
	positions := node(m, order.PositionIDs, 0)
	numbers := m.Read
	m.Read = func(n order.Node) (program.Value, error) {
		if n == positions {
			return program.Value{Shape: []int{1, 6}, Data: []float64{0, 1, 2, 3, 4, 5}}, nil
		}
		return numbers(n)
	}
	e := entryOf(t, m, node(m, "mask.full", 0), []order.Node{positions}, func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Apply(op.Mask{Window: int(window)}, "mask", []int{1, 1, 6, 6}, in, nil)
	})
	return m, e
}

// drawn draws a mask: a row for each query, with # for the keys that it sees.
func drawn(mask []float64, keys int) string {
	var b strings.Builder
	for i, x := range mask {
		if i > 0 && i%keys == 0 {
			b.WriteByte('\n')
		}
		if x == 0 {
			b.WriteByte('#')
		} else {
			b.WriteByte('.')
		}
	}
	return b.String()
}

// A mistake of a mask lets queries see the keys that are drawn. A neighbour, with another number, does not.
func TestMasksAreApplied(t *testing.T) {
	for _, c := range []struct {
		window    float64
		m         Mistake
		neighbour int // another N
		want      string
	}{
		{0, Mistake{Kind: "mask.not-causal"}, 0, "###### ###### ###### ###### ###### ######"},
		{0, Mistake{Kind: "mask.window-added", By: literal(2)}, 0, "#..... ##.... .##... ..##.. ...##. ....##"},
		{3, Mistake{Kind: "mask.window", X: some(4)}, 0, "#..... ##.... ###... ####.. .####. ..####"},
		{3, Mistake{Kind: "mask.window-left-out", X: some(0)}, 0, "#..... ##.... ###... ####.. #####. ######"},
		{0, Mistake{Kind: "mask.key-ahead"}, 0, "##.... ###... ####.. #####. ###### ######"},
		{0, Mistake{Kind: "mask.own-key-masked"}, 0, "...... #..... ##.... ###... ####.. #####."},
		{0, Mistake{Kind: "mask.none"}, 0, "###### ###### ###### ###### ###### ######"},
		{0, Mistake{Kind: "mask.anti-causal"}, 0, "#..... .#.... ..#... ...#.. ....#. .....#"},
		{0, Mistake{Kind: "mask.both-sides", N: 1}, 2, "##.... ###... .###.. ..###. ...### ....##"},
		{0, Mistake{Kind: "mask.blocks", N: 2}, 3, "#..... ##.... ..#... ..##.. ....#. ....##"},
		{3, Mistake{Kind: "mask.blocks-not-window", N: 4}, 3, "#..... ##.... ###... ####.. ....#. ....##"},
		{0, Mistake{Kind: "mask.prefix", N: 3}, 4, "###... ###... ###... ####.. #####. ######"},
		{3, Mistake{Kind: "mask.window-whole-block", N: 2}, 4, "#..... ##.... ###... ####.. ..###. ..####"},
		{3, Mistake{Kind: "mask.window-both-sides"}, 0, "###... ####.. #####. .##### ..#### ...###"},
		{0, Mistake{Kind: "mask.key-masked", N: 1}, 2, "#..... #..... #.#... #.##.. #.###. #.####"},
		{0, Mistake{Kind: "mask.keys-masked", N: 1, M: 2}, 2, "#..... #..... #..... #..#.. #..##. #..###"},
		{0, Mistake{Kind: "mask.key-masked-but-own", N: 1}, 2, "#..... ##.... #.#... #.##.. #.###. #.####"},
		{0, Mistake{Kind: "mask.first-keys-masked", N: 2}, 1, "...... ...... ..#... ..##.. ..###. ..####"},
		{3, Mistake{Kind: "mask.first-keys-seen", N: 1}, 2, "#..... ##.... ###... ####.. #.###. #..###"},
		{3, Mistake{Kind: "mask.reversed"}, 0, "###### .##### ..#### ...### ....## .....#"},
		{0, Mistake{Kind: "mask.own-key-alone"}, 0, "#..... .#.... ..#... ...#.. ....#. .....#"},
		{3, Mistake{Kind: "mask.window-no-end"}, 0, "###### ###### ###### .##### ..#### ...###"},
		{3, Mistake{Kind: "mask.window-of-first-query"}, 0, "#..... ##.... ###... ####.. #####. ######"},
		{3, Mistake{Kind: "mask.window-moved", N: 1}, 2, "##.... ###... .###.. ..###. ...### ....##"},
		{0, Mistake{Kind: "mask.chunks", N: 2}, 3, "##.... ##.... ####.. ####.. ###### ######"},
		{0, Mistake{Kind: "mask.last-block-left-out", N: 4}, 5, "#..... ##.... ###... ####.. ####.. ####.."},
		{3, Mistake{Kind: "mask.window-of-chunk", N: 2}, 3, "#..... ##.... ###... ####.. ..###. ..####"},
		{3, Mistake{Kind: "mask.window-of-chunk-no-end", N: 2}, 4, "##.... ##.... ####.. ####.. ..#### ..####"},
		{3, Mistake{Kind: "mask.window-next-block", N: 2}, 4, "#..... ##.... ###... ..##.. ..###. ....##"},
		{0, Mistake{Kind: "mask.ring", N: 4}, 5, "...... ...... ..#... ..##.. ..###. ..####"},
		{0, Mistake{Kind: "mask.last-key", Axis: onPosition, M: 1, N: 2, K: 1}, 3, "#..... ##.... ###... ###... ####.. ####.."},
		{3, Mistake{Kind: "mask.first-key", Axis: onKeys, M: 3, N: 3, K: -4}, 4, "...... ...... ..#... ..##.. ..###. ..####"},
		{0, Mistake{Kind: "mask.ring-of-chunk", N: 2, M: 3}, 3, "...... .#.... .##... ...... ....#. ....##"},
	} {
		m, e := masked(t, c.window)
		shown := func(of Mistake) string {
			d, err := m.Apply(of, e)
			if d == nil || err != nil {
				t.Fatalf("%s does not go with a mask: %v", of.Key(), err)
			}
			p, call := d.Whole(e.Call)
			v, err := p.Eval(call)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(drawn(v.Data, 6), "\n", " ")
		}
		right, err := e.Program.Eval(e.Call)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(c.m); got != c.want || got == strings.ReplaceAll(drawn(right.Data, 6), "\n", " ") {
			t.Errorf("%s with a window of %g:\n%s\nwant\n%s", c.m.Key(), c.window, strings.ReplaceAll(got, " ", "\n"), strings.ReplaceAll(c.want, " ", "\n"))
		}
		if other := c.m; c.neighbour > 0 {
			if other.N = c.neighbour; shown(other) == c.want {
				t.Errorf("%s is %s", other.Key(), c.m.Key())
			}
		}
	}
}
