package foreign

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/cells"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// prefixes lists the prefixes that frameworks put before the names of a text model, and the empty prefix. The longest prefix that fits
// counts.
var prefixes = append(spelling.Prefixes(spelling.Activation), "")

// Fit reads a dump in the form of the order of its model, as far as only one reading is possible and no number changes:
//
//   - names without a prefix of frameworks, such as "model.", and names of modules for the outputs of the modules;
//   - token ids under another name, or of shape [T] and not [1, T];
//   - a missing batch axis of 1;
//   - heads before tokens, for modules of transformers with this layout;
//   - logits of only the last token, marked with LastRow;
//   - cells of keys that no query may see, such as the cells of a static cache, left off: see [cells.Fit].
//
// A tensor that the order has under two names and the dump under one is noted, and is not read under the second name.
//
// Each reading adds a note, except for names of later calls of a module, see [capture.Trace.Called]. A trace with a manifest gets only these
// names and the last two readings. A trace that needs no reading is returned unchanged. If list is nil, Fit reads only the token ids. t stays
// open while the new trace is used.
func Fit(t *capture.Trace, list *order.List) (*capture.Trace, error) {
	if list != nil {
		t = t.Called(func(name string) bool { return list.Index(name) >= 0 })
	}
	f := fitter{list: list, sources: t.Sources()}
	if t.Status() == "" {
		f.prefix()
		f.ids()
		f.shapes()
		f.twice()
	} else {
		f.logits(t)
	}
	if len(f.notes) > 0 {
		fitted, err := t.Reassemble(f.sources, f.notes...)
		if err != nil {
			return nil, err
		}
		t = fitted
	}
	return cells.Fit(t, list)
}

type fitter struct {
	list    *order.List
	sources []capture.Source
	notes   []string
	tokens  []int // of each pass, up to the first pass without ids
}

func (f *fitter) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// known reports whether the order has a name.
func (f *fitter) known(name string) bool { return f.list != nil && f.list.Index(name) >= 0 }

// outputs maps a module to the entry of its output, for entries with another name than their module: layers.0.out is the
// output of layers.0. A module with two such entries is mapped to "".
func outputs(list *order.List) map[string]string {
	by := map[string]string{}
	for i := range list.Entries {
		e := &list.Entries[i]
		if e.HF.Kind != order.Out || e.HF.Module == e.Name || e.HF.When != "" || e.HF.Call != 0 || e.HF.Item != nil || list.Index(e.HF.Module) >= 0 {
			continue
		}
		if _, twice := by[e.HF.Module]; twice {
			by[e.HF.Module] = ""
			continue
		}
		by[e.HF.Module] = e.Name
	}
	return by
}

// prefix removes the prefix of frameworks from names if the rest is a name of the order or a module of transformers. If two
// tensors would get the same name, no name with this prefix is changed, since the choice would be a guess.
func (f *fitter) prefix() {
	if f.list == nil {
		return
	}
	byModule, renamed := outputs(f.list), 0
	taken := map[string]bool{}
	for _, s := range f.sources {
		taken[capture.Key(s.Pass, s.Name, s.Firing)] = true
	}
	for _, p := range prefixes {
		to, wanted := map[int]string{}, map[string]bool{}
		clash, modules := false, 0
		for i, s := range f.sources {
			rest, ok := strings.CutPrefix(s.Name, p)
			if !ok || f.known(s.Name) {
				continue
			}
			if name := byModule[rest]; name != "" {
				rest = name
				modules++
			}
			if f.known(rest) {
				key := capture.Key(s.Pass, rest, s.Firing)
				to[i] = rest
				clash = clash || taken[key] || wanted[key]
				wanted[key] = true
			}
		}
		if len(to) == 0 || clash {
			continue
		}
		for i, name := range to {
			s := &f.sources[i]
			s.Name = name
			taken[capture.Key(s.Pass, s.Name, s.Firing)] = true
		}
		if renamed += modules; p != "" {
			f.note("%q is removed from the names of %s", p, tensors(len(to)))
		}
	}
	if renamed > 0 {
		f.note("%s named after the modules that return them: layers.0 is taken for layers.0.out", tensors(renamed))
	}
}

// shapes adds a missing batch axis, and marks logits of the last token.
func (f *fitter) shapes() {
	if f.list == nil {
		return
	}
	f.headsFirst()
	batch, pruned := 0, 0
	var last []*capture.Source
	for i := range f.sources {
		s := &f.sources[i]
		e, ok := f.list.Lookup(s.Name)
		if !ok || len(e.Shape) == 0 || len(e.Shape) != len(e.Axes) || e.Axes[0] != order.AxisBatch || s.Name == order.InputIDs {
			continue
		}
		if s.LastRow { // set by a map
			with := ones(s.Shape, len(e.Shape))
			if s.Pass < len(f.tokens) && f.tokens[s.Pass] > 1 {
				last = append(last, s)
			} else if len(with) > len(s.Shape) {
				batch++
			}
			s.Shape = with
			continue
		}
		if with := f.leading(e, s); f.fits(e, s.Pass, with) {
			s.Shape = with
			batch++
			continue
		}
		if s.Printed != nil && f.oneRow(e, s) {
			s.LastRow = true
			pruned++
		} else if shape, ok := f.lastRow(e, s); ok {
			s.Shape, s.LastRow = shape, true
			last = append(last, s)
		}
	}
	if batch > 0 {
		f.note("%s without leading axes of size 1: read with them", tensors(batch))
	}
	if pruned > 0 {
		f.note("%s with only the row of the last token: that row is compared", tensors(pruned))
	}
	f.lastRows(last)
}

// twice notes the tensors that the order has under two names and the dump only under the first: the input of a layer is the output of
// the layer before. The second name is not compared, since a port may change the tensor on the way.
func (f *fitter) twice() {
	if f.list == nil {
		return
	}
	has := map[string]bool{}
	for _, s := range f.sources {
		has[s.Name] = true
	}
	n, first := 0, ""
	for i := range f.list.Entries {
		e := &f.list.Entries[i]
		if _, same := e.Op.(op.Identity); !same || has[e.Name] || len(e.Inputs) != 1 || !has[e.Inputs[0].Name] || e.Inputs[0].Index != nil || e.Inputs[0].Prev {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s is %s", e.Name, e.Inputs[0].Name)
		}
	}
	if n > 0 {
		f.note("%s with two names in the order: %s; compared under the name that the dump has", tensors(n), first)
	}
}

// headsFirst exchanges the axes of heads and tokens in outputs of transformers' modules that have heads first. For a tensor with
// as many heads as tokens, the other tensors of the dump decide.
func (f *fitter) headsFirst() {
	var swapped, unclear []int
	asListed := false
	for i := range f.sources {
		s := &f.sources[i]
		e, ok := f.list.Lookup(s.Name)
		if !ok || !e.HF.HeadsFirst || len(s.Shape) != 4 {
			continue
		}
		exchanged := []int{s.Shape[0], s.Shape[2], s.Shape[1], s.Shape[3]}
		switch {
		case s.Shape[1] == s.Shape[2]:
			unclear = append(unclear, i)
		case f.fits(e, s.Pass, s.Shape):
			asListed = true
		case f.fits(e, s.Pass, exchanged):
			swapped = append(swapped, i)
		}
	}
	if len(swapped) == 0 {
		return
	}
	if !asListed {
		swapped = append(swapped, unclear...)
	}
	for _, i := range swapped {
		s := &f.sources[i]
		b, h, t, d := s.Shape[0], s.Shape[1], s.Shape[2], s.Shape[3]
		s.Shape = []int{b, t, h, d}
		turned := func(data io.ReaderAt) io.ReaderAt {
			return &container.Tensor{DType: s.DType, Shape: s.Shape, Strides: []int{h * t * d, d, t * d, 1}, Data: data}
		}
		s.Data, s.Terms = turned(s.Data), slices.Clone(s.Terms)
		for k, term := range s.Terms {
			s.Terms[k] = turned(term)
		}
	}
	f.note("%s with the axis of heads before the axis of tokens, as in transformers: read with the two axes exchanged", tensors(len(swapped)))
}

// leading is the shape of a tensor with the missing axes of 1 in front: the batch axis and, if the tokens of the pass are known, the axes
// after the batch axis that have size 1 in the entry, such as one token or one KV head.
func (f *fitter) leading(e *order.Entry, s *capture.Source) []int {
	if missing := len(e.Shape) - len(s.Shape); missing < 1 || missing > 1 && s.Pass >= len(f.tokens) {
		return nil
	}
	return ones(s.Shape, len(e.Shape))
}

// ones is a shape with axes of 1 in front, up to a number of axes.
func ones(shape []int, axes int) []int {
	return append(slices.Repeat([]int{1}, max(axes-len(shape), 0)), shape...)
}

// fits reports whether an entry has this shape in a pass. Sizes that depend on the token ids are checked if the ids of the pass
// are known.
func (f *fitter) fits(e *order.Entry, pass int, shape []int) bool {
	if len(shape) != len(e.Shape) || f.list.Config == nil {
		return false
	}
	if pass < len(f.tokens) {
		past := 0
		for _, n := range f.tokens[:pass] {
			past += n
		}
		return slices.Equal(e.Size(order.Pass{Past: past, Tokens: f.tokens[pass]}, f.list.Config.SlidingWindow), shape)
	}
	for i, d := range e.Shape {
		if d >= 0 && shape[i] != int(d) {
			return false
		}
	}
	return true
}

// oneRow reports whether a tensor of a text has one row in a pass of several tokens: llama.cpp computes the last layer, and
// everything after the last layer, only for the tokens whose logits are requested, which is the last token.
func (f *fitter) oneRow(e *order.Entry, s *capture.Source) bool {
	axes := strings.ReplaceAll(e.Axes, " ", "")
	if !strings.HasPrefix(axes, "bt") || s.Pass >= len(f.tokens) || f.tokens[s.Pass] < 2 || len(s.Shape) != len(e.Shape) {
		return false
	}
	all := slices.Clone(s.Shape)
	all[1] = f.tokens[s.Pass]
	return s.Shape[1] == 1 && f.fits(e, s.Pass, all)
}

func tensors(n int) string {
	if n == 1 {
		return "1 tensor"
	}
	return fmt.Sprintf("%d tensors", n)
}

func passesOf(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}
