// Package weights compares the checkpoint of a port with the original checkpoint, tensor by tensor.
//
// Each tensor gets a class. EQUAL and CAST mean that every element agrees: the same number, or the original rounded to nearest even in a
// narrower format. QUANTISED means that every code is the nearest to the original over the stored scale, or one step from the nearest.
// Every other class is wrong, and has a name if one relation explains every element: transposed, rows in another order, 1+w, another
// tensor's values. A sample of elements chooses the relations to try. The sample decides nothing: a relation is named after a check over
// the whole tensor.
//
// Tensors are read by blocks, so memory does not grow with their size. Zeros of either sign are equal, and two NaN are equal.
package weights

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/internal/spelling"
)

// Side is a checkpoint.
type Side struct {
	Path    string
	Format  string // "safetensors", "GGUF"
	Tensors []*Tensor
	Bytes   int64 // of the tensors in its files: codes as codes
	Notes   []string
}

// Options say what is known of the model, and who is told how far a comparison is.
type Options struct {
	Hidden, HeadDim int                   // 0: not known
	Rotary          []Rotary              // by kind of layer; nil: not known
	Progress        func(done, all int64) // bytes, of both sides; may be nil. Calls come from one goroutine at a time
	Workers         int                   // tensors that are read at once; 0: as many as there are processors
}

// Result is the outcome of a comparison.
type Result struct {
	Local    Place     `json:"local"`
	Original Place     `json:"original"`
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"` // wrong tensors, worst first, then tensors that nobody can judge
	Tensors  []Row     `json:"tensors"`  // in the original's order; the port's extra tensors come last
	Notes    []string  `json:"notes"`

	ownHead string
}

// OwnHead is the name of the port's own head tensor if the original has one tensor for embedding and head. It is empty if the port has no
// such head, or if head and embedding both equal the original: the choice then makes no difference.
func (r *Result) OwnHead() string {
	equal := func(row Row) bool {
		return row.Class == Equal || plainName(row.Name) != spelling.Embedding && row.Name != r.ownHead
	}
	if slices.IndexFunc(r.Tensors, func(row Row) bool { return !equal(row) }) < 0 {
		return ""
	}
	return r.ownHead
}

// Place is a checkpoint, for people.
type Place struct {
	Path    string   `json:"path"`
	Format  string   `json:"format"`
	Tensors int      `json:"tensors"`
	Bytes   int64    `json:"bytes"`  // of the tensors in its files: codes as codes
	Stored  []string `json:"stored"` // the dtypes and formats of its tensors
}

// Counts are tensors by class.
type Counts struct {
	Equal        int `json:"equal"`
	Cast         int `json:"cast"`
	Quantised    int `json:"quantised"`
	Rescaled     int `json:"rescaled"`
	Unidentified int `json:"unidentified"` // neither right nor wrong: they make a comparison incomplete
	Wrong        int `json:"wrong"`        // of every other class
}

// Right reports whether every tensor is right, and at least one was compared.
func (r *Result) Right() bool {
	return r.Counts.Wrong+r.Counts.Unidentified == 0 && r.Counts.Equal+r.Counts.Cast+r.Counts.Quantised > 0
}

// comparison is one run over two checkpoints.
type comparison struct {
	o         *Options
	originals []*Tensor
	byName    map[string]*Tensor
	samples   sync.Map // of originals, by tensor
	fused     []fused
	ownHead   string // of the port, where the original has one tensor for the head and the embedding
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
	res.ownHead = c.ownHead
	if err := c.run(ctx, jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		res.Tensors = append(res.Tensors, j.row)
	}
	for _, look := range []func(context.Context, []*job, []Row) error{c.resemble, c.rescale, c.refuse} {
		if err := look(ctx, jobs, res.Tensors); err != nil {
			return nil, err
		}
	}
	c.padded(res.Tensors)
	n := &res.Counts
	counts := map[Class]*int{Equal: &n.Equal, Cast: &n.Cast, Quantised: &n.Quantised, Rescaled: &n.Rescaled, Unidentified: &n.Unidentified}
	for i := range res.Tensors {
		row := &res.Tensors[i]
		row.What = row.said.String()
		*cmp.Or(counts[row.Class], &n.Wrong)++
	}
	res.Findings = findings(res.Tensors)
	return res, nil
}

// placeOf describes a side.
func placeOf(s Side) Place {
	p := Place{Path: s.Path, Format: s.Format, Tensors: len(s.Tensors), Bytes: s.Bytes, Stored: []string{}}
	for _, t := range s.Tensors {
		if f := t.format(); !slices.Contains(p.Stored, f) {
			p.Stored = append(p.Stored, f)
		}
	}
	slices.Sort(p.Stored)
	return p
}

// run reads the pairs, several at once.
func (c *comparison) run(ctx context.Context, jobs []*job) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.local == nil || j.original == nil })
	var done, all int64
	for _, j := range jobs {
		all += bytesOf(j.local) + bytesOf(j.original)
	}
	var once sync.Mutex
	var failed error
	cores.By(c.o.Workers, len(jobs), func() func(int) {
		r := &reader{}
		return func(at int) {
			if ctx.Err() != nil {
				return
			}
			j := jobs[at]
			row, err := c.pair(ctx, r, j.local, j.original)
			once.Lock()
			defer once.Unlock()
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
			if done += bytesOf(j.local) + bytesOf(j.original); c.o.Progress != nil {
				c.o.Progress(done, all)
			}
		}
	})
	if failed == nil {
		failed = ctx.Err() // not every pair was read
	}
	return failed
}

func bytesOf(t *Tensor) int64 {
	if !t.DType.Valid() {
		return 0
	}
	return int64(t.elements()) * int64(t.DType.Size())
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
	r := &reader{}
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
			a := newPair(c, besides(r, local, o), rule{}, nil)
			is, _, err := a.is(ctx, reading{view: a.view, rule: plainRule(local.Add, rounding{})})
			if err != nil {
				return err
			}
			if !is {
				continue
			}
			rows[e].Other = o.key()
			rows[e].wrong(Extra, rows[e].Kind, "the original has no such name; the values equal its %s", o.key())
			rows[m].Other = local.key()
			rows[m].wrong(Missing, rows[m].Kind, "the port has no such name; its %s has the values", local.key())
			break
		}
	}
	return nil
}
