package weights

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/spelling"
)

// plan says which tensors are compared with which.
func (c *comparison) plan(local Side, res *Result) ([]*job, error) {
	if err := c.index(); err != nil {
		return nil, err
	}
	c.divideOriginals(local.Tensors)
	of := map[*Tensor]*job{} // by original
	var extra []*job
	trained := 0
	for _, t := range c.divideLocals(local.Tensors) {
		o := c.find(t)
		switch before := of[o]; {
		case o == nil && spelling.Buffers.MatchString(t.key()):
			switch known, err := computed(t, c.o.Rotary); {
			case errors.Is(err, errOther):
				j := &job{local: t, row: newRow(t, nil)}
				j.row.wrong(Extra, Unknown, "the original has no such tensor, and a port that reads it computes another result: %v", err)
				extra = append(extra, j)
			case err != nil:
				return nil, err
			default:
				res.Notes = append(res.Notes, fmt.Sprintf("%s is not compared: %s", t.key(), either(known, "it has what the configuration gives", "it is computed from the configuration, and its values may be right")))
			}
		case o == nil && spelling.States.MatchString(t.key()):
			trained++
		case o == nil:
			extra = append(extra, &job{local: t})
		case before != nil:
			return nil, hint.Add(fmt.Errorf("%s and %s are both the original's %s", before.local.key(), t.key(), o.key()), "leave one of them out in a line of the map: { to = [] }")
		default:
			of[o] = &job{local: t, original: o}
		}
	}
	if trained > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%s of an optimizer in the port's file %s no weights and not compared", count(trained, "tensor", "tensors"), either(trained == 1, "is", "are")))
	}
	extra = c.heads(of, extra)
	return append(c.inOrder(of, res), extras(extra)...), nil
}

// index makes the originals known by their names, and by their plain names where these are unique.
func (c *comparison) index() error {
	plain := map[string]int{}
	for _, t := range c.originals {
		if c.byName[t.key()] != nil {
			return fmt.Errorf("the original has two tensors called %s", t.key())
		}
		c.byName[t.key()] = t
		plain[plainName(t.key())]++
	}
	for _, t := range c.originals {
		if p := plainName(t.key()); plain[p] == 1 && c.byName[p] == nil {
			c.byName[p] = t
		}
	}
	return nil
}

// find is the original that a tensor is called like; nil for none.
func (c *comparison) find(t *Tensor) *Tensor {
	for _, name := range candidates(t.Name) {
		if o := c.byName[name]; o != nil {
			return o
		}
	}
	return nil
}

// inOrder are the jobs in the original's order, with rows for what the port has not.
func (c *comparison) inOrder(of map[*Tensor]*job, res *Result) []*job {
	has := map[string]bool{} // towers with a tensor in the port
	for o := range of {
		has[spelling.TowerOf(o.key())] = true
	}
	withParts(has)
	left := map[string]int{}
	var jobs []*job
	for _, o := range c.originals {
		j := of[o]
		tower := spelling.TowerOf(o.key())
		switch {
		case j != nil:
			jobs = append(jobs, j)
		case tower != "" && !has[tower]:
			left[tower]++
		case spelling.Buffers.MatchString(o.key()):
		default:
			row := newRow(nil, o)
			row.wrong(Missing, Absent, "the port has no such tensor")
			jobs = append(jobs, &job{original: o, row: row})
		}
	}
	for _, tower := range []string{"vision_tower", "vision_model", "visual", "audio_tower", "multi_modal_projector", "embed_vision", "embed_audio", "mtp"} {
		if n := left[tower]; n > 0 {
			res.Notes = append(res.Notes, fmt.Sprintf("the port has nothing of %s: its %s not compared", tower, count(n, "tensor was", "tensors were")))
		}
	}
	return jobs
}

// withParts marks the towers that a port must have: a tower needs its projector, and a projector its tower.
func withParts(has map[string]bool) {
	const projector = "multi_modal_projector" // of either
	any := func(list ...string) bool { return slices.ContainsFunc(list, func(n string) bool { return has[n] }) }
	vision, audio := any("vision_tower", "vision_model", "visual", "embed_vision"), any("audio_tower", "embed_audio")
	if has[projector] && !vision && !audio {
		vision, audio = true, true
	}
	for _, n := range []string{"vision_tower", "vision_model", "visual", "embed_vision"} {
		has[n] = vision
	}
	has["audio_tower"], has["embed_audio"] = audio, audio
	has[projector] = vision || audio
}

// extras are rows for what the port has more.
func extras(list []*job) []*job {
	for _, j := range list {
		if j.original == nil && j.row.Class == "" {
			j.row = newRow(j.local, nil)
			j.row.wrong(Extra, Unknown, "the original has no such tensor")
		}
	}
	return list
}

// heads pairs heads with embeddings where one of the sides has one tensor for both.
func (c *comparison) heads(of map[*Tensor]*job, extra []*job) []*job {
	embedding, head := c.byName[spelling.Embedding], c.byName[spelling.Head]
	if embedding == nil {
		return extra
	}
	if head == nil { // tied: a head of the port is the embedding
		for _, j := range extra {
			if !slices.ContainsFunc(candidates(j.local.Name), func(n string) bool { return n == spelling.Head }) {
				continue
			}
			j.original, j.name = embedding, j.local.key()
			c.ownHead = j.local.key()
			j.then = func(row *Row) {
				if row.Class.Right() {
					row.note("the head is a copy of the embedding, which the original has for both")
					return
				}
				row.wrong(row.Class, Untied, "the original has one tensor for the head and the embedding, and this head is not it: %s", row.said)
			}
		}
		return extra
	}
	if j := of[embedding]; of[head] == nil && j != nil { // the port has the embedding for both
		of[head] = &job{local: j.local, original: head, then: func(row *Row) {
			if row.Class.Right() {
				row.note("the port uses the embedding as the head, and the original has two equal tensors")
				return
			}
			row.Local, row.At, row.Unequal = nil, nil, 0
			row.wrong(Missing, Tied, "the port has no head, and the original's is not its embedding")
		}}
	}
	return extra
}

// rowsOf is a part of a tensor: n of its rows from one on.
func rowsOf(t *Tensor, name string, from, n int) *Tensor {
	width, _ := hooks.Elements(t.Shape[1:])
	part := t.section(from*width, append([]int{n}, t.Shape[1:]...))
	part.Name, part.Key = name, fmt.Sprintf("%s[%d:%d]", t.key(), from, from+n)
	return part
}

// divide splits a fused tensor along its first axis into the tensors of the other side. sizes returns the number of rows by name. The
// result is nil if the name is not a fused name, or if the row counts do not add up.
func divide(t *Tensor, name string, sizes func(string) (int, bool)) []*Tensor {
	if t.check() != nil || len(t.Shape) == 0 {
		return nil
	}
	var parts []*Tensor
	at := 0
	for _, p := range spelling.FusedParts(name) {
		n, ok := sizes(p)
		if !ok || at+n > t.Shape[0] {
			return nil
		}
		parts = append(parts, rowsOf(t, p, at, n))
		at += n
	}
	if at != t.Shape[0] {
		return nil
	}
	return parts
}

// divideLocals splits the port's fused tensors that the original has as several.
func (c *comparison) divideLocals(list []*Tensor) []*Tensor {
	var all []*Tensor
	for _, t := range list {
		var parts []*Tensor
		o := c.find(t)
		if o == nil || len(o.Shape) > 0 && len(t.Shape) > 0 && o.Shape[0] < t.Shape[0] { // ffn_up of GGUF may have the gate before it
			for _, name := range candidates(t.Name) {
				if parts = divide(t, name, func(p string) (int, bool) { return rowsCalled(c.byName[p]) }); parts != nil {
					break
				}
			}
		}
		originals := c.fusedLike(t)
		if f := (fused{t, originals}); originals != nil && (parts != nil || o == nil && f.turned()) {
			c.fused = append(c.fused, f)
		} else if parts == nil {
			parts = []*Tensor{t}
		}
		all = append(all, parts...)
	}
	return all
}

// divideOriginals splits the original's fused tensors that the port has as several.
func (c *comparison) divideOriginals(locals []*Tensor) {
	byName := map[string]*Tensor{}
	for _, t := range locals {
		for _, n := range candidates(t.Name) {
			byName[n] = t
		}
	}
	var all []*Tensor
	for _, o := range c.originals {
		name := plainName(o.key())
		if byName[name] != nil {
			all = append(all, o)
			continue
		}
		parts := divide(o, name, func(p string) (int, bool) { return rowsCalled(byName[p]) })
		if parts == nil {
			all = append(all, o)
			continue
		}
		delete(c.byName, name)
		for _, p := range parts {
			c.byName[p.Name] = p
		}
		all = append(all, parts...)
	}
	c.originals = all
}

func rowsCalled(t *Tensor) (int, bool) {
	if t == nil || len(t.Shape) == 0 {
		return 0, false
	}
	return t.Shape[0], true
}
