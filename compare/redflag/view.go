package redflag

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// view is a trace as the checks see it: its tensors with what their names say, and what was found so far.
type view struct {
	ctx      context.Context
	t        *capture.Trace
	o        Options
	list     *order.List // nil without a configuration
	subjects []subject
	index    map[place]int
	passes   int
	ids      [][]int       // by pass; nil where the trace has none
	shown    map[int][]int // by pass, which of its tokens a capture of some positions shows

	looked map[Kind]int
	flags  []*Flag
	first  map[Kind]*Flag
	raised map[Kind]map[place]*Flag
	notes  []string
}

// place is where a name was fired, for the first time in its pass.
type place struct {
	pass int
	name string
}

// subject is one tensor.
type subject struct {
	capture.Record
	pass  int
	name  string
	role  role
	entry *order.Entry // nil outside the order
	seen  seen         // its numbers
}

func (s *subject) place() place { return place{s.pass, s.name} }

// elements is how many there are. The reader has checked that the product fits.
func (s *subject) elements() int64 { return s.Size / int64(s.DType.Size()) }

// dim is the size of an axis, counted from the last, which is 1; 1 where there is none.
func (s *subject) dim(fromLast int) int {
	if i := len(s.Shape) - fromLast; i >= 0 {
		return s.Shape[i]
	}
	return 1
}

func newView(ctx context.Context, t *capture.Trace, o Options) (*view, error) {
	v := &view{ctx: ctx, t: t, o: o, index: map[place]int{}, shown: map[int][]int{}, looked: map[Kind]int{}, first: map[Kind]*Flag{}, raised: map[Kind]map[place]*Flag{}}
	v.notes = append(v.notes, t.Notes()...)
	v.readOrder()
	foreign := t.Status() == ""
	for _, r := range v.records() {
		s := subject{Record: r, pass: r.Pass, name: r.Name}
		if foreign { // its keys are names to the reader, but may have been made by the same rule
			s.pass, s.name = splitPass(r.Key)
		}
		s.role = roleOf(s.name, r.DType)
		if v.list != nil {
			s.entry, _ = v.list.Lookup(s.name)
		}
		if _, there := v.index[s.place()]; !there {
			v.index[s.place()] = len(v.subjects)
		}
		v.passes = max(v.passes, s.pass+1)
		v.subjects = append(v.subjects, s)
	}
	if status := t.Status(); status != "" && status != capture.StatusComplete {
		v.notes = append(v.notes, fmt.Sprintf("the trace is not complete (%s): what is missing was not looked at", status))
	}
	return v, v.readIDs()
}

// readOrder makes the order of the trace's configuration.
func (v *view) readOrder() {
	config := v.t.Manifest().Config
	if config == nil {
		v.notes = append(v.notes, "no configuration in the trace: what a tensor is follows from its name, and what it is computed from is not known")
	} else if c, err := order.ParseCanonical(config); err != nil {
		v.notes = append(v.notes, fmt.Sprintf("the trace's configuration cannot be used (%v): what a tensor is follows from its name", err))
	} else if v.list, err = order.New(c); err != nil {
		v.notes = append(v.notes, fmt.Sprintf("no order of the trace's configuration (%v): what a tensor is follows from its name", err))
	}
	if !v.t.Sequence() {
		v.notes = append(v.notes, "the file does not promise the order of execution: of several tensors, which came first is not known")
	}
}

// records are those of the file, in the order in which they were computed as far as that can be known.
func (v *view) records() []capture.Record {
	if v.t.Sequence() || v.list == nil {
		return v.t.Records()
	}
	records := slices.Clone(v.t.Records())
	slices.SortStableFunc(records, func(a, b capture.Record) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(v.list.Index(a.Name), v.list.Index(b.Name)))
	})
	return records
}

// passKey is a key with the number of a pass that is not 0.
var passKey = regexp.MustCompile(`^pass([1-9][0-9]{0,8})/(.+)$`)

// splitPass reads a key of a file that is no trace.
func splitPass(key string) (pass int, name string) {
	m := passKey.FindStringSubmatch(key)
	if m == nil {
		return 0, key
	}
	pass, _ = strconv.Atoi(m[1]) // nine digits
	return pass, m[2]
}

// readIDs reads the token ids of every pass that has them. Ids of another form are none.
func (v *view) readIDs() error {
	v.ids = make([][]int, 0)
	for pass := range v.passes {
		s := v.find(pass, order.InputIDs)
		if s == nil || s.DType.Float() || s.elements() > maxRow {
			v.ids = nil
			return nil
		}
		row, err := v.row(s, 0, int(s.elements()))
		if err != nil {
			return err
		}
		ids := make([]int, len(row))
		for i, x := range row {
			ids[i] = int(x)
		}
		v.ids = append(v.ids, ids)
	}
	return nil
}

// find returns the first firing of a name in a pass, nil if there is none.
func (v *view) find(pass int, name string) *subject {
	if i, ok := v.index[place{pass, name}]; ok {
		return &v.subjects[i]
	}
	return nil
}

// token says which token of its pass a row of a tensor is, of how many; a capture of some positions has some rows. It
// reports false where that is not known.
func (v *view) token(pass, row, rows int) (index, tokens int, known bool) {
	scope := v.t.Manifest().Scope
	if len(scope.Positions) == 0 {
		return row, rows, true
	}
	if pass >= len(v.ids) {
		return 0, 0, false
	}
	if _, there := v.shown[pass]; !there {
		past := 0
		for _, ids := range v.ids[:pass] {
			past += len(ids)
		}
		v.shown[pass] = scope.Rows(past, len(v.ids[pass]))
	}
	shown := v.shown[pass]
	if len(shown) != rows || row >= rows {
		return 0, 0, false
	}
	return shown[row], len(v.ids[pass]), true
}

// tokenID returns the id at a row of a tensor of a pass, and whether it is known.
func (v *view) tokenID(pass, row, rows int) (int, bool) {
	index, tokens, known := v.token(pass, row, rows)
	if !known || pass >= len(v.ids) || len(v.ids[pass]) != tokens {
		return 0, false
	}
	return v.ids[pass][index], true
}

// parents returns what a subject is computed from, as far as it was captured: of an input that was not, its own inputs.
func (v *view) parents(s *subject) []place {
	var found []place
	seen := map[place]bool{}
	var walk func(e *order.Entry, pass int)
	walk = func(e *order.Entry, pass int) {
		for _, in := range e.Inputs {
			at := place{pass, in.Name}
			if in.Prev {
				at.pass--
			}
			if at.pass < 0 || seen[at] {
				continue
			}
			seen[at] = true
			if v.find(at.pass, at.name) != nil {
				found = append(found, at)
			} else if made, ok := v.list.Lookup(in.Name); ok {
				walk(made, at.pass)
			}
		}
	}
	if s.entry != nil {
		walk(s.entry, s.pass)
	}
	return found
}

// row reads n elements from one on. Callers bound n by maxRow.
func (v *view) row(s *subject, from int64, n int) ([]float64, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	raw := make([]byte, n*s.DType.Size())
	if _, err := v.t.ReadAt(s.Record, raw, from*int64(s.DType.Size())); err != nil {
		return nil, err
	}
	x := make([]float64, n)
	return x, floats.Decode(x, s.DType, raw)
}

// rows hands out the rows along the last axis, one after the other, until do says that it has seen enough. A tensor with
// longer rows than are held in memory has none.
func (v *view) rows(s *subject, do func(i int64, x []float64) (more bool, err error)) error {
	width := s.dim(1)
	if width == 0 || width > maxRow || s.elements() == 0 {
		return nil
	}
	const most = 1 << 16 // elements that are read at a time: a few rows, or one
	count := s.elements() / int64(width)
	some := max(1, most/width)
	for at := int64(0); at < count; {
		n := int(min(int64(some), count-at))
		x, err := v.row(s, at*int64(width), n*width)
		if err != nil {
			return err
		}
		for i := range n {
			more, err := do(at+int64(i), x[i*width:(i+1)*width])
			if err != nil || !more {
				return err
			}
		}
		at += int64(n)
	}
	return nil
}

// pairs hands out the elements of two tensors of the same size beside each other, until do has seen enough.
func (v *view) pairs(a, b *subject, do func(x, y []float64) (more bool)) error {
	const some = 1 << 14
	for at, n := int64(0), a.elements(); at < n; at += some {
		count := int(min(some, n-at))
		x, err := v.row(a, at, count)
		if err != nil {
			return err
		}
		y, err := v.row(b, at, count)
		if err != nil || !do(x, y) {
			return err
		}
	}
	return nil
}

// coordinates are the indices of an element, as "[0,3,17]".
func coordinates(shape []int, at int64) string {
	if len(shape) == 0 {
		return "its only element"
	}
	index := make([]string, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		size := int64(max(shape[i], 1))
		index[i] = strconv.FormatInt(at%size, 10)
		at /= size
	}
	return "[" + strings.Join(index, ",") + "]"
}

// role is what a name says that a tensor is.
type role struct {
	mask      bool // of attention: no numbers of the model's
	masked    bool // scores, in which what is masked is very small or minus infinity
	table     bool // of cosines or sines
	parameter bool
	bias      bool
	gradient  bool
	loss      bool
	probs     bool
	embedding bool // copied from weights, which have the dtype of the checkpoint
	cached    bool // keys or values
	logits    bool
	layer     int // whose output it is, or −1
	wide      bool
	number    bool // a float
}

// words that the last part of a name may be.
var (
	probsName  = regexp.MustCompile(`(^|[._])(probs(_f32)?|attn_probs|attn_weights|attention_probs|attention_weights)$`)
	cachedName = regexp.MustCompile(`(^|\.)(keys|values|k_cache|v_cache|key_cache|value_cache)$`)
	tableName  = regexp.MustCompile(`(^|\.)(rotary|rope)[a-z_]*(\.[a-z_]+)*\.(cos|sin)$`)
	maskName   = regexp.MustCompile(`(^|[._])mask(\.[a-z_]+)?$`)
	outName    = regexp.MustCompile(`(?:^|\.)(?:layers|h|blocks|blk)\.([0-9]{1,6})(?:\.out|\.output)?$|^hidden_states\.([0-9]{1,6})$`)
	copiedName = regexp.MustCompile(`(^|\.)(embed_tokens|inputs_embeds|wte|embed_tokens_per_layer)(\.lookup)?$|(^|\.)layers\.0\.in$`)
)

func roleOf(name string, d hooks.DType) role {
	r := role{layer: -1, number: d.Float()}
	if strings.HasPrefix(name, capture.Gradient) {
		r.gradient = true
		return r
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	r.loss = name == "loss"
	r.mask = maskName.MatchString(name)
	r.masked = strings.HasSuffix(last, "scores_masked")
	r.table = tableName.MatchString(name)
	r.bias = last == "bias"
	r.parameter = last == "weight" || r.bias
	r.probs = probsName.MatchString(name)
	r.embedding = copiedName.MatchString(name)
	r.cached = cachedName.MatchString(name)
	r.logits = last == "logits" || last == "lm_head"
	r.wide = strings.HasSuffix(last, "_f32")
	if m := outName.FindStringSubmatch(name); m != nil {
		r.layer, _ = strconv.Atoi(m[1] + m[2])
	}
	return r
}
