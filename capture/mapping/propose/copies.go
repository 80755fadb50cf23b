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
)

// A hook on every module sees a tensor several times: attn.wo returns a tensor, and attn returns the same tensor. A copy without an entry gets a line that leaves it out.

// content is what the bytes of a tensor begin with.
type content struct {
	dtype  hooks.DType
	length int64 // of all bytes
	start  [sha256.Size]byte
	varied bool // the first chunk has elements that differ
}

// chunk is how many bytes of two tensors are compared at a time.
const chunk = 1 << 16

// contentOf reads the beginning of a tensor, once.
func (p *proposer) contentOf(x *spelled) (content, error) {
	if c, ok := p.contents[x]; ok {
		return c, nil
	}
	elements, _ := hooks.Elements(x.r.Shape)
	c := content{dtype: x.r.DType, length: int64(elements) * int64(x.r.DType.Size())}
	raw := make([]byte, min(c.length, chunk))
	if err := readAll(x, raw, 0); err != nil {
		return c, err
	}
	c.start = sha256.Sum256(raw)
	size := max(1, x.r.DType.Size())
	c.varied = len(raw) > size && !bytes.Equal(raw[size:], raw[:len(raw)-size])
	if p.contents == nil {
		p.contents = map[*spelled]content{}
	}
	p.contents[x] = c
	return c, nil
}

func readAll(x *spelled, raw []byte, at int64) error {
	if n, err := x.source.Data.ReadAt(raw, at); n < len(raw) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("reading %q: %w", x.source.Key, err)
	}
	return nil
}

// copied reports whether two patterns have the same tensors, byte for byte, in all layers and passes. Tensors whose elements are all alike prove nothing.
func (p *proposer) copied(a, b *template) (bool, error) {
	if a == b || len(a.all) != len(b.all) || a.ranked() || b.ranked() {
		return false, nil
	}
	type place struct{ layer, pass, firing int }
	at := map[place]*spelled{}
	for _, x := range b.all {
		at[place{x.best.layer, b.passOf(x), x.r.Firing}] = x
	}
	varied := false
	for _, x := range a.all {
		y := at[place{x.best.layer, a.passOf(x), x.r.Firing}]
		if y == nil {
			return false, nil
		}
		c, err := p.contentOf(x)
		if err != nil {
			return false, err
		}
		other, err := p.contentOf(y)
		if err != nil || c != other {
			return false, err
		}
		varied = varied || c.varied
	}
	if !varied {
		return false, nil
	}
	for _, x := range a.all {
		same, err := p.sameBytes(x, at[place{x.best.layer, a.passOf(x), x.r.Firing}])
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// ranked reports whether a pattern has tensors of ranks or stages.
func (t *template) ranked() bool {
	return slices.ContainsFunc(t.all, func(x *spelled) bool { return x.mark.group != "" })
}

// sameBytes compares what follows the first chunk of two tensors of one length.
func (p *proposer) sameBytes(x, y *spelled) (bool, error) {
	left, right := make([]byte, chunk), make([]byte, chunk)
	for at := int64(chunk); at < p.contents[x].length; at += chunk {
		n := min(chunk, p.contents[x].length-at)
		if err := readAll(x, left[:n], at); err != nil {
			return false, err
		}
		if err := readAll(y, right[:n], at); err != nil {
			return false, err
		}
		if !bytes.Equal(left[:n], right[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// holds reports whether the name of t is the name of a module, and part the name of a tensor in it: attn and attn.wo.
func (t *template) holds(part *template) bool {
	rest, ok := strings.CutPrefix(part.text, t.text)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && rest != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// originals are the patterns that are entries, by a line or by their name.
func (p *proposer) originals() []*template {
	var all []*template
	for _, o := range p.pairs {
		all = append(all, o.t)
	}
	seen := map[*template]bool{}
	for _, t := range p.of {
		if t.isKnown && !seen[t] {
			seen[t], all = true, append(all, t)
		}
	}
	return all
}

// repeats reports whether a tensor is a copy of a part of its module; originals are the patterns with an entry.
func (p *proposer) repeats(t *template, originals []*template) (bool, error) {
	for _, o := range originals {
		if !t.holds(o) {
			continue
		}
		if same, err := p.copied(t, o); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// copies leaves out the tensors that are copies of one with an entry.
func (p *proposer) copies(ctx context.Context) error {
	originals := p.originals()
	at := map[*template]int{}
	for _, o := range p.pairs {
		at[o.t] = o.r.at
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		p.looking(t.text)
		for _, o := range originals {
			if err := ctx.Err(); err != nil {
				return err
			}
			same, err := p.copied(t, o)
			if err != nil {
				return err
			}
			if same {
				p.out.Lines = append(p.out.Lines, Line{From: t.text, Why: "the same numbers as " + o.text, at: at[o]})
				t.settled = true
				break
			}
		}
	}
	return nil
}
