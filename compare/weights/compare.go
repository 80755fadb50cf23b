package weights

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Side is a checkpoint.
type Side struct {
	Path    string
	Format  string // "safetensors", "GGUF"
	Tensors []*Tensor
	Notes   []string
}

// Options say what is known of the model, and who is told how far a comparison is.
type Options struct {
	Hidden, HeadDim int                   // 0: not known
	Progress        func(done, all int64) // bytes, of both sides; may be nil. Calls come from one goroutine at a time
	Workers         int                   // tensors that are read at once; 0: as many as there are processors
}

// Result is the outcome of a comparison.
type Result struct {
	Local    Place     `json:"local"`
	Original Place     `json:"original"`
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"` // what is wrong, worst first
	Tensors  []Row     `json:"tensors"`  // in the original's order; what the port has more comes behind
	Notes    []string  `json:"notes"`
}

// Place is a checkpoint, for people.
type Place struct {
	Path    string   `json:"path"`
	Format  string   `json:"format"`
	Tensors int      `json:"tensors"`
	Bytes   int64    `json:"bytes"`
	Stored  []string `json:"stored"` // the dtypes and formats of its tensors
}

// Counts are tensors by class.
type Counts struct {
	Equal     int `json:"equal"`
	Cast      int `json:"cast"`
	Quantised int `json:"quantised"`
	Wrong     int `json:"wrong"` // of every other class
}

// Right reports whether nothing is wrong, and at least one tensor was compared.
func (r *Result) Right() bool {
	return r.Counts.Wrong == 0 && r.Counts.Equal+r.Counts.Cast+r.Counts.Quantised > 0
}

// job is a pair that is to be compared, or a row that needs no reading.
type job struct {
	local, original *Tensor
	name            string // of the row, where it is not the original's
	then            func(*Row)
	row             Row
}

// Compare compares the tensors of a port with those of the original. An error is one of reading, or of the context.
func Compare(ctx context.Context, local, original Side, o Options) (*Result, error) {
	c := &comparison{o: &o, originals: original.Tensors, byName: map[string]*Tensor{}}
	res := &Result{Local: placeOf(local), Original: placeOf(original), Findings: []Finding{}, Tensors: []Row{}, Notes: append(append([]string{}, local.Notes...), original.Notes...)}
	jobs, err := c.plan(local, res)
	if err != nil {
		return nil, err
	}
	if err := c.run(ctx, jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		res.Tensors = append(res.Tensors, j.row)
	}
	if err := c.resemble(ctx, jobs, res.Tensors); err != nil {
		return nil, err
	}
	for i := range res.Tensors {
		switch res.Tensors[i].Class {
		case Equal:
			res.Counts.Equal++
		case Cast:
			res.Counts.Cast++
		case Quantised:
			res.Counts.Quantised++
		default:
			res.Counts.Wrong++
		}
	}
	res.Findings = findings(res.Tensors)
	return res, nil
}

// placeOf describes a side.
func placeOf(s Side) Place {
	p := Place{Path: s.Path, Format: s.Format, Tensors: len(s.Tensors), Stored: []string{}}
	for _, t := range s.Tensors {
		if f := t.format(); !slices.Contains(p.Stored, f) {
			p.Stored = append(p.Stored, f)
		}
		if t.DType.Valid() {
			p.Bytes += int64(t.elements()) * int64(t.DType.Size())
		}
	}
	slices.Sort(p.Stored)
	return p
}

// run reads the pairs, several at once.
func (c *comparison) run(ctx context.Context, jobs []*job) error {
	workers := c.o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done, all atomic.Int64
	for _, j := range jobs {
		if j.local != nil && j.original != nil {
			all.Add(bytesOf(j.local) + bytesOf(j.original))
		}
	}
	next := make(chan *job)
	var wg sync.WaitGroup
	var once sync.Mutex
	var failed error
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := &reader{ctx: ctx, done: new(atomic.Int64)}
			for j := range next {
				row, err := c.pair(r, j.local, j.original)
				once.Lock()
				j.row = row
				if j.name != "" {
					j.row.Name = j.name
				}
				if j.then != nil && err == nil {
					j.then(&j.row)
				}
				if err != nil && failed == nil {
					failed = err
					cancel()
				}
				if done.Add(bytesOf(j.local) + bytesOf(j.original)); c.o.Progress != nil {
					c.o.Progress(done.Load(), all.Load())
				}
				once.Unlock()
			}
		}()
	}
	for _, j := range jobs {
		if j.local != nil && j.original != nil && ctx.Err() == nil {
			next <- j
		}
	}
	close(next)
	wg.Wait()
	return failed
}

func bytesOf(t *Tensor) int64 {
	if !t.DType.Valid() {
		return 0
	}
	return int64(t.elements()) * int64(t.DType.Size())
}

// plan says which tensors are compared with which.
func (c *comparison) plan(local Side, res *Result) ([]*job, error) {
	if err := c.index(); err != nil {
		return nil, err
	}
	c.divideOriginals(local.Tensors)
	of := map[*Tensor]*job{} // by original
	var extra []*job
	for _, t := range c.divideLocals(local.Tensors) {
		o := c.find(t)
		switch before := of[o]; {
		case o == nil && buffers.MatchString(t.key()):
			res.Notes = append(res.Notes, fmt.Sprintf("%s is left out: it is computed from the configuration", t.key()))
		case o == nil:
			extra = append(extra, &job{local: t})
		case before != nil:
			return nil, fmt.Errorf("%s and %s are both the original's %s", before.local.key(), t.key(), o.key())
		default:
			of[o] = &job{local: t, original: o}
		}
	}
	extra = c.heads(of, extra)
	return append(c.inOrder(of, res), extras(extra)...), nil
}

// index makes the originals known by their names, and by those without what stands in front where that is one tensor's alone.
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
	has := map[string]bool{} // towers of which the port has something
	for o := range of {
		has[towerOf(o.key())] = true
	}
	left := map[string]int{}
	var jobs []*job
	for _, o := range c.originals {
		j := of[o]
		tower := towerOf(o.key())
		switch {
		case j != nil:
			jobs = append(jobs, j)
		case tower != "" && !has[tower]:
			left[tower]++
		case buffers.MatchString(o.key()):
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

// extras are rows for what the port has more.
func extras(list []*job) []*job {
	for _, j := range list {
		if j.original == nil {
			j.row = newRow(j.local, nil)
			j.row.wrong(Extra, Unknown, "the original has no such tensor")
		}
	}
	return list
}

// heads pairs heads with embeddings where one of the sides has one tensor for both.
func (c *comparison) heads(of map[*Tensor]*job, extra []*job) []*job {
	embedding, head := c.byName[embeddingName], c.byName[headName]
	if embedding == nil {
		return extra
	}
	if head == nil { // tied: a head of the port is the embedding
		for _, j := range extra {
			if !slices.ContainsFunc(candidates(j.local.Name), func(n string) bool { return n == headName }) {
				continue
			}
			j.original, j.name = embedding, j.local.key()
			j.then = func(row *Row) {
				if row.Class.Right() {
					row.note("the head is a copy of the embedding, which the original has for both")
					return
				}
				row.wrong(row.Class, Untied, "the original has one tensor for the head and the embedding, and this head is not it: %s", row.What)
			}
		}
		return extra
	}
	if j := of[embedding]; of[head] == nil && j != nil { // the port has the embedding for both
		of[head] = &job{local: j.local, original: head, then: func(row *Row) {
			if row.Class.Right() {
				row.note("the port has the embedding for the head, and the original two tensors that are the same")
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
	part := *t
	part.Name = name
	part.Key = fmt.Sprintf("%s[%d:%d]", t.key(), from, from+n)
	part.Shape = append([]int{n}, t.Shape[1:]...)
	width := int64(1)
	for _, d := range t.Shape[1:] {
		width *= int64(d)
	}
	part.Data = sectionOf(t.Data, int64(from)*width*int64(t.DType.Size()))
	if g := t.Grid; g != nil {
		part.Grid = g.from(int64(from) * width)
	}
	return &part
}

// divide takes a tensor apart that the other side has as several. sizes has the rows of those, by name; nil where it is not one, or
// the rows do not fit.
func divide(t *Tensor, name string, sizes func(string) (int, bool)) []*Tensor {
	if t.check() != nil || len(t.Shape) == 0 {
		return nil
	}
	var parts []*Tensor
	at := 0
	for _, p := range fusedParts(name) {
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

// divideLocals takes apart what the port has as one tensor and the original as several.
func (c *comparison) divideLocals(list []*Tensor) []*Tensor {
	var all []*Tensor
	for _, t := range list {
		var parts []*Tensor
		if c.find(t) == nil {
			for _, name := range candidates(t.Name) {
				if parts = divide(t, name, func(p string) (int, bool) { return rowsCalled(c.byName[p]) }); parts != nil {
					break
				}
			}
		}
		if parts == nil {
			parts = []*Tensor{t}
		}
		all = append(all, parts...)
	}
	return all
}

// divideOriginals takes apart what the original has as one tensor and the port as several.
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

// resemble looks for what tensors without a partner are: a line of a map would say it.
func (c *comparison) resemble(ctx context.Context, jobs []*job, rows []Row) error {
	const most = 512 // of each: beyond it every pair would take too long
	var lost, found []int
	for i, j := range jobs {
		switch {
		case rows[i].Class == Missing && j.original != nil && len(lost) < most:
			lost = append(lost, i)
		case rows[i].Class == Extra && len(found) < most:
			found = append(found, i)
		}
	}
	r := &reader{ctx: ctx, done: new(atomic.Int64)}
	for _, e := range found {
		local := jobs[e].local
		if local.check() != nil {
			continue
		}
		for _, m := range lost {
			o := jobs[m].original
			if !slices.Equal(local.Shape, o.Shape) || o.check() != nil || local.elements() < 4 {
				continue
			}
			a := &attempt{comparison: c, r: r, local: local, original: o}
			is, _, err := a.is(view{t: o}, func(x rounding) rule { return plainRule(local.Add, x) })
			if err != nil {
				return err
			}
			if !is {
				continue
			}
			rows[e].Other = o.key()
			rows[e].What = fmt.Sprintf("the original has no such name; the values are those of its %s", o.key())
			rows[m].Other = local.key()
			rows[m].What = fmt.Sprintf("the port has no such name; its %s has the values", local.key())
			break
		}
	}
	return nil
}

// misshapen says what a tensor of another shape is.
func (c *comparison) misshapen(r *reader, row Row, local, original *Tensor) (Row, error) {
	a := &attempt{comparison: c, r: r, row: &row, local: local, original: original, q: plainRule(local.Add, rounding{})}
	if is, err := a.transposed(); is || err != nil {
		row.Unequal = row.Elements
		return row, err
	}
	if local.elements() == original.elements() && local.elements() > 0 {
		turned := *local
		turned.Shape = original.Shape
		t, q, err := c.agrees(r, &turned, view{t: original})
		if err != nil {
			return row, err
		}
		if t.bad == 0 && c.right(row, &turned, q, t).Class.Right() {
			row.wrong(Mistake, Shape, "shape %v, and the original's is %v; the elements are the same, row by row", local.Shape, original.Shape)
			return row, nil
		}
	}
	if err := a.longer(); err != nil || row.Class != "" {
		return row, err
	}
	row.wrong(Different, Shape, "shape %v, and the original's is %v", local.Shape, original.Shape)
	row.Relative = finite(1)
	return row, nil
}

// longer looks for rows that are missing at the end, or that were added: padding of a vocabulary is right where it is zero.
func (a *attempt) longer() error {
	l, o := a.local, a.original
	if len(l.Shape) < 2 || len(l.Shape) != len(o.Shape) || !slices.Equal(l.Shape[1:], o.Shape[1:]) || l.elements() == 0 || o.elements() == 0 {
		return nil
	}
	n := min(l.Shape[0], o.Shape[0])
	mine, theirs := rowsOf(l, l.Name, 0, n), rowsOf(o, o.Name, 0, n)
	t, q, err := a.agrees(a.r, mine, view{t: theirs})
	if err != nil || t.bad > 0 {
		return err
	}
	whole := a.right(*a.row, mine, q, t)
	if !whole.Class.Right() {
		return nil
	}
	if n == l.Shape[0] {
		a.row.wrong(Mistake, Truncated, "it has the first %d of the original's %d rows, which are right; the others are missing", n, o.Shape[0])
		return nil
	}
	rest := rowsOf(l, l.Name, n, l.Shape[0]-n)
	zero, err := a.explains(a.r, rest, view{t: rest}, rule{})
	if err != nil {
		return err
	}
	if zero {
		*a.row = whole
		a.row.note("%s of zeros behind the original's %d", count(l.Shape[0]-n, "row", "rows"), n)
		return nil
	}
	a.row.wrong(Mistake, Padded, "the original's %d rows, which are right, and %s behind them that %s not zero", n, count(l.Shape[0]-n, "row", "rows"), either(l.Shape[0]-n == 1, "is", "are"))
	return nil
}
