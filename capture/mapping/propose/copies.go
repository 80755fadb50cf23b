package propose

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Copy is a pattern whose tensors have, bit for bit, the numbers of tensors with an entry: hooks on all modules see what attn.wo returns and that attn returns the same, and a graph
// of operations has a tensor before and after its axes are taken apart. A copy is left out.
type Copy struct {
	From string
	Of   []string // the patterns of the tensors with an entry
}

// content is what the bytes of a tensor begin with, and the sum of all bytes where that was asked for.
type content struct {
	start
	varied bool // the first chunk has elements that differ
	whole  *[sha256.Size]byte
}

// start has the sum of the first chunk of a tensor.
type start struct {
	dtype  hooks.DType
	length int64 // of all bytes
	sum    [sha256.Size]byte
}

// chunk is how many bytes of a tensor are read at a time.
const chunk = 1 << 16

// contentOf reads the first chunk of a tensor, once.
func (p *proposer) contentOf(x *spelled) (content, error) {
	if c, ok := p.contents[x.at]; ok {
		return c, nil
	}
	c := content{start: start{dtype: x.r.DType, length: x.bytes()}}
	raw, err := x.chunkAt(0)
	if err != nil {
		return c, err
	}
	c.sum = sha256.Sum256(raw)
	size := x.r.DType.Size()
	c.varied = len(raw) > size && !bytes.Equal(raw[size:], raw[:len(raw)-size])
	p.contents[x.at] = c
	return c, nil
}

// bytes is the length of the data of a tensor.
func (x *spelled) bytes() int64 { return int64(elementsOf(x.r.Shape)) * int64(x.r.DType.Size()) }

func (x *spelled) chunkAt(at int64) ([]byte, error) {
	raw := make([]byte, min(x.bytes()-at, chunk))
	if n, err := x.source.Data.ReadAt(raw, at); n < len(raw) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("reading %q: %w", x.source.Key, err)
	}
	return raw, nil
}

// wholeOf is the sum of all bytes of a tensor, read once.
func (p *proposer) wholeOf(x *spelled) ([sha256.Size]byte, error) {
	c, err := p.contentOf(x)
	if err != nil || c.length <= chunk {
		return c.sum, err
	}
	if c.whole != nil {
		return *c.whole, nil
	}
	h := sha256.New()
	for at := int64(0); at < c.length; at += chunk {
		raw, err := x.chunkAt(at)
		if err != nil {
			return c.sum, err
		}
		h.Write(raw)
	}
	c.whole = (*[sha256.Size]byte)(h.Sum(nil))
	p.contents[x.at] = c
	return *c.whole, nil
}

// sameBytes reports whether two tensors have the same elements in the same order, whatever their shapes are. Most that differ do so in the first chunk.
func (p *proposer) sameBytes(x, y *spelled) (bool, error) {
	if x.r.DType != y.r.DType || x.bytes() != y.bytes() {
		return false, nil
	}
	a, err := p.contentOf(x)
	if err != nil {
		return false, err
	}
	b, err := p.contentOf(y)
	if err != nil || a.start != b.start {
		return false, err
	}
	one, err := p.wholeOf(x)
	if err != nil {
		return false, err
	}
	other, err := p.wholeOf(y)
	return one == other, err
}

// isCopy reports whether the tensors of two patterns are the same, layer by layer and pass by pass. Tensors whose elements are all alike prove nothing.
func (p *proposer) isCopy(a, b *template) (bool, error) {
	if a == b || len(a.all) != len(b.all) {
		return false, nil
	}
	varied := false
	for _, x := range a.all {
		i := slices.IndexFunc(b.all, func(y *spelled) bool {
			return x.best.layer == y.best.layer && x.mark.rank == y.mark.rank && a.passOf(x) == b.passOf(y)
		})
		if i < 0 {
			return false, nil
		}
		if same, err := p.sameBytes(x, b.all[i]); !same || err != nil {
			return false, err
		}
		c, err := p.contentOf(x)
		if err != nil {
			return false, err
		}
		varied = varied || c.varied
	}
	return varied, nil
}

// original is a pattern that is an entry, by a line or by its name.
type original struct {
	*template
	as string // the pattern of the entry, of several the first
}

func (p *proposer) originals() []original {
	var all []original
	for _, o := range p.pairs {
		all = append(all, original{o.t, o.r.text})
	}
	seen := map[*template]bool{}
	for _, t := range p.of {
		if t.isKnown && !seen[t] {
			seen[t], all = true, append(all, original{t, t.text})
		}
	}
	return all
}

// copiedBy are the originals that a pattern is a copy of.
func (p *proposer) copiedBy(t *template, originals []original) (all []original, err error) {
	for _, o := range originals {
		same, err := p.isCopy(t, o.template)
		if err != nil {
			return nil, err
		}
		if same {
			all = append(all, o)
		}
	}
	return all, nil
}

// meansAnother reports whether a copy of some originals is no guess for an entry: its name is not more like the entry than like that of an original, or it is a module that returns
// what a part of it returns. A port that leaves an operation out has a copy, too, but its name is more like the entry of that operation, and it was written where the entry belongs.
func (t *template) meansAnother(r *role, between bool, of []original) bool {
	return slices.ContainsFunc(of, func(o original) bool {
		return alikeness(t.text, o.as) >= alikeness(t.text, r.text) || t.holds(o.template) && !between
	})
}

// holds reports whether the name of t is the name of a module, and part the name of a tensor in it: attn and attn.wo.
func (t *template) holds(part *template) bool {
	rest, ok := strings.CutPrefix(part.text, t.text)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && rest != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// copies leaves out the open tensors that are copies. The tensors of one pattern may be copies of several: a count goes through the model.
func (p *proposer) copies(ctx context.Context) error {
	if !slices.ContainsFunc(p.open, func(t *template) bool { return !t.settled }) {
		return nil
	}
	there, err := p.starts(ctx)
	if err != nil {
		return err
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		p.looking(t.text)
		of, err := p.originalsOf(ctx, t, there)
		if err == nil && len(of) == 0 {
			of, err = p.parts(ctx, t)
		}
		if err != nil {
			return err
		}
		if len(of) > 0 {
			p.out.Copies, t.settled = append(p.out.Copies, Copy{t.text, of}), true
		}
	}
	return nil
}

// inPass is what a tensor of a pass begins with.
type inPass struct {
	pass int
	start
}

// begun is a tensor of an original.
type begun struct {
	of string
	x  *spelled
}

// starts lists the tensors of all originals by their first bytes. Of tensors with the same bytes it lists one.
func (p *proposer) starts(ctx context.Context) (map[inPass][]begun, error) {
	all := map[inPass][]begun{}
	for _, o := range p.originals() {
		for _, x := range o.all {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c, err := p.contentOf(x)
			if err != nil {
				return nil, err
			}
			key := inPass{o.passOf(x), c.start}
			if of, err := p.among(x, all[key]); err != nil {
				return nil, err
			} else if of == "" {
				all[key] = append(all[key], begun{o.text, x})
			}
		}
	}
	return all, nil
}

// among is the pattern of the tensor that has the bytes of x; "" for none.
func (p *proposer) among(x *spelled, all []begun) (string, error) {
	for _, b := range all {
		if same, err := p.sameBytes(x, b.x); err != nil {
			return "", err
		} else if same {
			return b.of, nil
		}
	}
	return "", nil
}

// originalsOf are the originals that have all tensors of a pattern; nil where one tensor is no copy, or the elements of each are alike.
func (p *proposer) originalsOf(ctx context.Context, t *template, there map[inPass][]begun) (all []string, err error) {
	for _, x := range t.all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := p.contentOf(x)
		if err != nil {
			return nil, err
		}
		of, err := p.among(x, there[inPass{t.passOf(x), c.start}])
		if of == "" || err != nil {
			return nil, err
		}
		if c.varied && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all, nil
}

// parts are the originals whose elements one tensor has, one original after the other: a graph has query, key and value in one tensor, and then splits that tensor. parts is empty
// for any other tensor.
func (p *proposer) parts(ctx context.Context, t *template) ([]string, error) {
	if p.computed == nil {
		return nil, nil
	}
	cuts, err := p.allCuttings(ctx, t, true)
	if err != nil {
		return nil, err
	}
	dumped := func(e *order.Entry) (tensor, bool, error) {
		x, ok := p.computed.have[e.Name]
		return x, ok, nil
	}
	for i := range cuts {
		if good, err := p.proven(t, &cuts[i], dumped); err != nil {
			return nil, err
		} else if good < len(cuts[i].f.layers) {
			continue
		}
		var of []string
		for _, r := range cuts[i].roles {
			if k := slices.IndexFunc(p.pairs, func(o pairing) bool { return o.r == r }); k >= 0 {
				of = append(of, p.pairs[k].t.text)
			}
		}
		return of, nil
	}
	return nil, nil
}
