package compare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	dumps "github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// keeper is an engine that keeps keys which transformers drops, and masks them: a golden of gemma3-tiny, of whose tensors plain loops make
// tensors with more cells. Layers 0 and 2 have a window of 4, layer 1 sees all. Pass 4 has nine tokens behind it and one of its own.
type keeper struct {
	golden *capture.Trace
	list   *order.List
	// cells says which key is in which cell of a sliding or full layer; −1: it holds no token.
	cells func(sliding bool, total int) []int
	// plant changes a tensor of so many cells, of which some have keys: see cells.
	plant func(name string, pass int, data []float64, cells []int)
	// without leaves tensors out.
	without func(name string) bool
	half    bool // it computes in float16
}

// all keeps every key in the cell of its number, and has some cells more.
func all(free int) func(bool, int) []int {
	return func(_ bool, total int) []int {
		var cells []int
		for k := range total + free {
			if k >= total {
				k = -1
			}
			cells = append(cells, k)
		}
		return cells
	}
}

// used again are the cells of sliding layers, of which there are 6: key k is in cell k modulo 6.
func usedAgain(sliding bool, total int) []int {
	if !sliding {
		return all(0)(false, total)
	}
	cells := slices.Repeat([]int{-1}, 6)
	for k := range total {
		cells[k%6] = k
	}
	return cells
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	return &keeper{golden: testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors"), list: list, cells: all(0)}
}

// local is what the engine dumps, as compare reads it.
func (k *keeper) local(t *testing.T) *capture.Trace {
	t.Helper()
	half := func(m *capture.Manifest) {
		if k.half {
			m.DType = hooks.F16
		}
	}
	made := testengine.Rewritten(t, k.golden, half, func(_ string, e hooks.Event) []hooks.Event {
		if k.without != nil && k.without(e.Name) {
			return nil
		}
		return []hooks.Event{k.event(t, e)}
	})
	fitted, err := dumps.Fit(made, k.list)
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// event makes a tensor with keys one with cells.
func (k *keeper) event(t *testing.T, e hooks.Event) hooks.Event {
	t.Helper()
	entry, ok := k.list.Lookup(e.Name)
	if !ok {
		return e
	}
	axis, d := strings.IndexRune(entry.Axes, order.AxisKey), e.Tensor.DType
	if k.half && d.Float() && entry.DType == "" {
		d = hooks.F16
	}
	if axis < 0 {
		e.Tensor = fire(e.Name, d, e.Tensor.Shape, elementsOf(e.Tensor)...).Tensor
		return e
	}
	total := 0
	for p := range e.Pass + 1 {
		r, _ := k.golden.Lookup(p, order.InputIDs)
		total += r.Shape[1]
	}
	sliding := entry.Name == "mask.sliding" || entry.Layer == 0 || entry.Layer == 2
	cells := k.cells(sliding, total)
	shape := slices.Clone(e.Tensor.Shape)
	keys := shape[axis]
	shape[axis] = len(cells)
	inner := 1
	for _, n := range shape[axis+1:] {
		inner *= n
	}
	from := elementsOf(e.Tensor)
	n, _ := hooks.Elements(shape)
	data := make([]float64, n)
	for i := range data {
		key := cells[i/inner%len(cells)]
		if at := key - (total - keys); at >= 0 {
			data[i] = from[(i/inner/len(cells)*keys+at)*inner+i%inner]
			continue
		}
		data[i] = k.dropped(t, e.Name, e.Pass, key, i/inner/len(cells), i%inner)
	}
	if k.plant != nil {
		k.plant(e.Name, e.Pass, data, cells)
	}
	e.Tensor = fire(e.Name, d, shape, data...).Tensor
	return e
}

// dropped is an element of a cell that transformers does not have: of a key, or of none.
func (k *keeper) dropped(t *testing.T, name string, pass, key, head, channel int) float64 {
	t.Helper()
	switch what := name[strings.LastIndexByte(name, '.')+1:]; {
	case strings.HasPrefix(name, "mask.") || what == "scores_masked":
		return low32
	case what == "keys" || what == "values":
		if key < 0 {
			return 7 // what was there before
		}
		past := 0
		for p := 0; ; p++ {
			fresh, err := k.golden.Value(p, strings.TrimSuffix(name, what)+map[string]string{"keys": "k_rope", "values": "v_proj"}[what])
			if err != nil {
				t.Fatal(err)
			}
			tokens, at := fresh.Shape[len(fresh.Shape)-2], key-past
			if what == "values" {
				tokens = fresh.Shape[1]
			}
			if past += tokens; key >= past {
				continue
			}
			if what == "values" { // [1, T, h·D]
				return fresh.Data[at*fresh.Shape[2]+head*6+channel]
			}
			return fresh.Data[(head*tokens+at)*6+channel]
		}
	case what == "scores":
		return 0.5 // it is masked
	}
	return 0
}

// compare holds the engine to transformers, and each operation to its own inputs.
func (k *keeper) compare(t *testing.T) *compare.Result {
	t.Helper()
	return isolated(t, "gemma3-tiny", k.local(t), k.golden)
}

// Keys in front of the window and free cells are no data, on either side, in whatever cells the keys lie, and with the keys captured or not.
func TestCellsThatNoQuerySeesAreLeftOff(t *testing.T) {
	for what, cells := range map[string]func(bool, int) []int{
		"all keys are kept": all(0), "a static cache with five free cells": all(5), "cells of a sliding layer are used again": usedAgain,
		"in any order": func(_ bool, total int) []int {
			cells := all(3)(false, total)
			for i := range cells { // 5 has no divisor in common with these numbers of cells but for multiples of 5
				j := (i*7 + 3) % len(cells)
				cells[i], cells[j] = cells[j], cells[i]
			}
			return cells
		},
	} {
		for _, keys := range []bool{true, false} {
			if !keys && what != "all keys are kept" && what != "a static cache with five free cells" {
				continue // nothing says where the keys are
			}
			k := newKeeper(t)
			k.cells = cells
			if !keys {
				k.without = func(name string) bool { return strings.HasSuffix(name, ".keys") || strings.HasSuffix(name, ".values") }
			}
			local := k.local(t)
			if !slices.ContainsFunc(local.Notes(), func(n string) bool { return strings.Contains(n, "left out if their probability is zero") }) {
				t.Errorf("%s: notes %q", what, local.Notes())
			}
			for side, ref := range map[string]*capture.Trace{"with a reference": k.golden, "alone": nil, "with itself": local} {
				res := isolated(t, "gemma3-tiny", local, ref)
				if res.Mismatches > 0 || res.Isolation.Bugs > 0 || keys && res.ExitCode() != 0 {
					t.Errorf("%s, keys captured %t, %s: exit %d, %d bugs, %+v", what, keys, side, res.ExitCode(), res.Isolation.Bugs, res.Divergence)
				}
			}
			if res := isolated(t, "gemma3-tiny", k.golden, local); res.Mismatches > 0 {
				t.Errorf("%s, as the reference: %+v", what, res.Divergence)
			}
		}
	}
}

// softmaxWithout are probabilities without one key of each row, which are renormed: what an engine has that masks it, too.
func softmaxWithout(data []float64, cells, cell int) {
	for row := 0; row < len(data); row += cells {
		rest := 1 - data[row+cell]
		for i := range cells {
			data[row+i] = float64(float32(data[row+i] / rest))
		}
		data[row+cell] = 0
	}
}

// masksToo masks one more key in a pass, in every tensor of the layers that a mask is of.
func masksToo(pass, key int, layers ...string) func(name string, at int, data []float64, cells []int) {
	return func(name string, at int, data []float64, cells []int) {
		if at != pass || !slices.ContainsFunc(layers, func(l string) bool { return strings.HasPrefix(name, l) }) {
			return
		}
		cell := slices.Index(cells, key)
		switch what := name[strings.LastIndexByte(name, '.')+1:]; {
		case strings.HasPrefix(name, "mask.") || what == "scores_masked":
			for row := 0; row < len(data); row += len(cells) {
				data[row+cell] = low32
			}
		case strings.HasPrefix(what, "probs"):
			softmaxWithout(data, len(cells), cell)
		}
	}
}

// maskless leaves out what shows a mask but for the probabilities.
func maskless(name string) bool {
	return strings.HasPrefix(name, "mask.") || strings.Contains(name, ".scores") || strings.HasSuffix(name, ".probs_f32")
}

// A key that the order allows is data, whatever an engine gives it: a window that is one short and a key masked in one step are found, at
// the mask or, where that was not captured, at the probabilities.
func TestAllowedKeyIsNeverLeftOff(t *testing.T) {
	const pass = 4 // its token stands at 8: with a window of 4 it sees 5 to 8
	for _, c := range []struct {
		what   string
		key    int
		layers []string
		mask   string
	}{
		{"window one short", 5, []string{"mask.sliding", "layers.0.", "layers.2."}, "mask.sliding"},
		{"one key masked in a decode step", 2, []string{"mask.full", "layers.1."}, "mask.full"},
	} {
		for _, cells := range []func(bool, int) []int{all(0), all(4)} {
			for _, without := range []func(string) bool{nil, maskless} {
				k := newKeeper(t)
				k.cells, k.plant, k.without = cells, masksToo(pass, c.key, c.layers...), without
				first := fmt.Sprintf("pass%d/%s", pass, c.mask)
				if without != nil {
					first = fmt.Sprintf("pass%d/%sself_attn.probs", pass, c.layers[1])
				}
				res := k.compare(t)
				if d := res.Divergence; res.ExitCode() != 1 || d == nil || d.Row.Key() != first || d.Row.Class != gate.Value {
					t.Errorf("%s, masks captured %t: exit %d, %+v", c.what, without == nil, res.ExitCode(), d)
				}
			}
		}
	}
}

// A probability of float16 that underflows is 0 as one of a masked key is. Its key stays data: it is compared, and another number there is
// a mismatch.
func TestProbabilityThatUnderflowsIsData(t *testing.T) {
	const pass, key = 4, 6 // key 6 is in the window
	const name = "layers.0.self_attn.probs"
	small := func(p float64) func(string, int, []float64, []int) {
		return func(n string, at int, data []float64, cells []int) {
			if n != name || at != pass {
				return
			}
			softmaxWithout(data, len(cells), slices.Index(cells, key))
			for row := 0; row < len(data); row += len(cells) {
				data[row+slices.Index(cells, key)] = p
			}
		}
	}
	engine := func(p float64, cells func(bool, int) []int) *capture.Trace {
		k := newKeeper(t)
		k.cells, k.plant, k.half = cells, small(p), true
		return k.local(t)
	}
	window := func(sliding bool, total int) []int { // as transformers has it
		if cells := all(0)(sliding, total); sliding && total > 5 {
			return cells[total-4:]
		} else {
			return cells
		}
	}
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	for _, c := range []struct {
		p    float64
		want compare.Verdict
	}{{1e-9, compare.Match}, {0.5, compare.Mismatch}} { // 1e-9 is 0 in float16
		res := run(t, engine(1e-9, all(2)), engine(c.p, window), compare.Options{Order: list, All: true})
		row := rowOfKey(t, res, "pass4/"+name)
		if row.Verdict != c.want || row.Metrics == nil || row.Metrics.Elements != 4*4 {
			t.Errorf("%g: %s (%s), %+v", c.p, row.Verdict, row.Detail, row.Metrics)
		}
	}
}

// What no query may see and yet has a probability is the bug, at the probabilities and in plain words, and nothing that is computed from
// them is accused beside it.
func TestProbabilityOfAMaskedCellIsTheBug(t *testing.T) {
	const pass = 4
	for _, c := range []struct {
		what, name string
		key        int // −1: the first cell that holds no token
		value      float64
		cells      func(bool, int) []int
		says       string
	}{
		{"a key in front of the window", "layers.0.self_attn.probs", 3, 0.02, all(0), "key 3, before the window, has probability 0.02 (head 2)"},
		{"where cells are used again", "layers.0.self_attn.probs", 3, 0.02, usedAgain, "key 3, before the window, has probability 0.02 (head 2)"},
		{"a free cell", "layers.1.self_attn.probs", -1, 1e-30, all(4), "cell 9, which holds no token, has probability 1e-30 (head 2)"},
		{"a masked score", "layers.2.self_attn.scores_masked", 4, 0.5, all(0), "key 4, before the window, is not masked, its score is 0.5 (head 2)"},
		{"a mask", "mask.sliding", 4, 0, all(0), "key 4, before the window, is not masked: 0"},
	} {
		k := newKeeper(t)
		k.cells = c.cells
		k.plant = func(name string, at int, data []float64, cells []int) {
			if name == c.name && at == pass {
				row := 0
				if name != "mask.sliding" {
					row = 2
				}
				data[row*len(cells)+slices.Index(cells, c.key)] = c.value
			}
		}
		local := k.local(t)
		key := fmt.Sprintf("pass%d/%s", pass, c.name)
		for _, ref := range []*capture.Trace{k.golden, nil} {
			res := isolated(t, "gemma3-tiny", local, ref)
			d := res.Divergence
			if res.ExitCode() != 1 || d == nil || d.Row.Key() != key || d.Row.Class != gate.Value || !strings.Contains(d.Row.Detail, c.says) {
				t.Errorf("%s, alone %t: exit %d, %+v", c.what, ref == nil, res.ExitCode(), d)
			}
			for _, row := range res.Rows {
				if row.Isolated != nil && row.Isolated.Outcome == isolate.Bug {
					t.Errorf("%s, alone %t: %s is a BUG", c.what, ref == nil, row.Key())
				}
			}
		}
		res := isolated(t, "gemma3-tiny", k.golden, local)
		if d := res.Divergence; d == nil || d.Row.Key() != key || !strings.Contains(d.Row.Detail, "reference") {
			t.Errorf("%s, as the reference: %+v", c.what, d)
		}
	}
}

// What has fewer keys than the order allows is a shape, and so is a tensor with more cells of which nothing says where the keys are.
func TestCellsThatAreNotKnownAreAShape(t *testing.T) {
	short := func(sliding bool, total int) []int { // drops one key that is allowed
		if cells := all(0)(sliding, total); sliding && total > 5 {
			return cells[total-3:]
		} else {
			return cells
		}
	}
	for what, k := range map[string]*keeper{"a key dropped": {cells: short}, "cells used again without keys": {cells: usedAgain, without: func(n string) bool {
		return strings.HasSuffix(n, ".keys") || strings.HasSuffix(n, ".values")
	}}} {
		k.golden, k.list = newKeeper(t).golden, newKeeper(t).list
		res := k.compare(t)
		if d := res.Divergence; res.ExitCode() != 1 || d == nil || d.Row.Class != gate.Shape {
			t.Errorf("%s: exit %d, %+v", what, res.ExitCode(), d)
		}
	}
}

// One wrong key in a cache that keeps all is one wrong key, and no key that is absent.
func TestWrongKeyInAKeptCache(t *testing.T) {
	for _, cells := range []func(bool, int) []int{all(0), usedAgain} {
		k := newKeeper(t)
		k.cells = cells
		k.plant = func(name string, at int, data []float64, cells []int) {
			if name == "layers.0.self_attn.keys" && at == 4 {
				for h := range 2 {
					data[(h*len(cells)+slices.Index(cells, 7))*6] += 0.25
				}
			}
		}
		res := k.compare(t)
		d := res.Divergence
		if d == nil || d.Row.Key() != "pass4/layers.0.self_attn.keys" || d.Row.Class != gate.Value || math.Abs(float64(d.Row.Metrics.MaxAbs)-0.25) > 1e-6 || d.Row.Metrics.Unequal != 2 {
			t.Errorf("%+v", d)
		}
	}
}
