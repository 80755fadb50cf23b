package propose

import (
	"strconv"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// turns compares the order of the dump with the order of computing, for the tensors that have become entries.
type turns struct {
	before []bits      // by entry: the entries that it is computed from
	at     map[int]int // by entry: where its tensor stands in the dump
	kept   bool        // each tensor follows its operands
	pairs  int         // how many pairings were looked at
}

// bits is a set of entries.
type bits []uint64

func (b bits) has(entry int) bool { return b[entry/64]>>(entry%64)&1 == 1 }

// leastTurns is how many tensors have to stand in the order of computing before the order of the dump counts as evidence.
const leastTurns = 8

// turns looks at the tensors that have become entries so far.
func (p *board) turns() *turns {
	if p.turned == nil {
		p.turned = &turns{before: p.operands(), pairs: -1}
	}
	t := p.turned
	if t.pairs == len(p.pairs) {
		return t
	}
	t.at, t.kept, t.pairs = map[int]int{}, true, len(p.pairs)
	for _, o := range p.pairs {
		for _, x := range o.t.All {
			if e := o.r.layers[x.Best.Layer]; e != nil && x.Record.Pass == 0 {
				t.at[p.list.Index(e.Name)] = x.At
			}
		}
	}
	for entry, at := range t.at {
		for other, y := range t.at {
			if t.before[entry].has(other) && y > at {
				t.kept = false
			}
		}
	}
	return t
}

// operands are the ancestors of each entry in one pass.
func (p *board) operands() []bits {
	all, words := make([]bits, len(p.list.Entries)), (len(p.list.Entries)+63)/64
	for i := range p.list.Entries { // operands stand first
		all[i] = make(bits, words)
		for _, in := range p.list.Entries[i].Inputs {
			from := p.list.Index(in.Name)
			if in.Prev || from < 0 {
				continue
			}
			all[i][from/64] |= 1 << (from % 64)
			for k, w := range all[from] {
				all[i][k] |= w
			}
		}
	}
	return all
}

// shown reports whether the order of the dump is evidence.
func (t *turns) shown() bool { return t.kept && len(t.at) >= leastTurns }

// allow reports whether a tensor may be an entry: it comes after the operands of the entry and before the entry's consumers.
func (t *turns) allow(x *template, entry int) bool {
	if !t.kept {
		return false
	}
	for other, at := range t.at {
		if t.before[entry].has(other) && at > x.All[0].At || t.before[other].has(entry) && at < x.All[0].At {
			return false
		}
	}
	return true
}

// written reports whether the tensors that are told by values stand in the dump in the order in which they are computed.
func (p *board) written() bool {
	up, all := 0, 0
	for i, a := range p.pairs {
		for _, b := range p.pairs[:i] {
			if a.t.All[0].Best.Layer == b.t.All[0].Best.Layer {
				all++
				up += btoi((a.t.All[0].At < b.t.All[0].At) == (a.r.at < b.r.at))
			}
		}
	}
	return all >= 10 && 10*up >= 9*all
}

// isBetween reports whether an entry stands between those of the tensors written before and after one.
func (p *board) isBetween(t *template, r *role) bool {
	x := t.All[0]
	before, after := -1, -1
	for i, o := range p.pairs {
		y := o.t.All[0]
		if y.Best.Layer != x.Best.Layer {
			continue
		}
		if y.At < x.At && (before < 0 || y.At > p.pairs[before].t.All[0].At) {
			before = i
		}
		if y.At > x.At && (after < 0 || y.At < p.pairs[after].t.All[0].At) {
			after = i
		}
	}
	return (before < 0 || p.pairs[before].r.at < r.at) && (after < 0 || r.at < p.pairs[after].r.at) && (before >= 0 || after >= 0)
}

// inSeries reports whether an entry of one layer goes on with a count: the dump has h1 and h2, h1 is the output of layer 0, and the entry is that of layer 1.
func (p *board) inSeries(t *template, r *role) bool {
	e := p.list.Entries[r.at]
	for _, m := range names.NumberText.FindAllStringIndex(t.Text, names.MaxReadings) {
		n, err := strconv.Atoi(t.Text[m[0]:m[1]])
		if err != nil {
			continue
		}
		for _, o := range p.pairs {
			of := &p.list.Entries[o.r.at]
			name := t.Text[:m[0]] + strconv.Itoa(n-e.Layer+of.Layer) + t.Text[m[1]:]
			if o.r.alone && o.t.Text == name && of.Layer != e.Layer && layered(of) == layered(&e) {
				return true
			}
		}
	}
	return false
}
