package redflag

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// view is a trace as the checks see it: its tensors with what their names say, and what was found so far.
type view struct {
	ctx      context.Context
	t        *capture.Trace
	o        Options
	limits   limits
	list     *order.List // nil without a configuration
	subjects []subject
	index    map[place]int
	passes   int
	ids      [][]int       // by pass; nil where the trace has none
	shown    map[int][]int // by pass, which of its tokens a capture of some positions shows

	raw    []byte // scratch of reading
	looked map[Kind]int
	flags  []*Flag
	bad    *subject // the first that has NaN or infinities, nil for none
	first  map[Kind]*Flag
	raised map[Kind]map[place]*Flag
	alike  map[Kind]map[string]*Flag // by name, without the number of the layer
	notes  []string

	byHead    map[string]*headed // by the name of the probabilities
	headNames []string           // those, in the order of the trace
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
	v := &view{
		ctx: ctx, t: t, o: o, limits: defaults, index: map[place]int{}, shown: map[int][]int{}, looked: map[Kind]int{}, first: map[Kind]*Flag{},
		raised: map[Kind]map[place]*Flag{}, alike: map[Kind]map[string]*Flag{}, byHead: map[string]*headed{},
	}
	if o.limits != nil {
		v.limits = *o.limits
	}
	if o.Magnitude > 0 {
		v.limits.magnitude = o.Magnitude
	}
	v.notes = append(v.notes, t.Notes()...)
	v.readOrder()
	for _, r := range v.records() {
		s := subject{Record: r, pass: r.Pass, name: r.Name}
		if r.Name == r.Key { // of a file of another writer, whose keys may have been made by the same rule
			s.pass, s.name = splitPass(r.Key)
			if _, beside := t.Lookup(0, s.name); beside && s.pass == 0 {
				s.name = r.Key // pass0/x beside x: which of them is meant cannot be known, so x alone is read
			}
		}
		s.role = roleOf(s.name, r.DType)
		if v.list != nil {
			s.entry, _ = v.list.Lookup(s.name)
		}
		v.passes = max(v.passes, s.pass+1)
		v.subjects = append(v.subjects, s)
	}
	if !t.Sequence() { // a file whose keys are sorted has pass 10 before pass 2
		slices.SortStableFunc(v.subjects, func(a, b subject) int { return cmp.Compare(a.pass, b.pass) })
	}
	for i := range v.subjects {
		if at := v.subjects[i].place(); !v.has(at) {
			v.index[at] = i
		}
	}
	if status := t.Status(); status != "" && status != capture.StatusComplete {
		v.notes = append(v.notes, fmt.Sprintf("the trace is not complete (%s): what is missing was not looked at", status))
	}
	return v, v.readIDs()
}

// readOrder makes the order of the trace's configuration.
func (v *view) readOrder() {
	config := v.t.Manifest().Config
	if config == nil && v.o.Order != nil {
		v.list = v.o.Order
	} else if config == nil {
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

// passKey is a key with the number of a pass. A trace has no pass0/, and other writers may.
var passKey = regexp.MustCompile(`^pass(0|[1-9][0-9]{0,8})/(.+)$`)

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

// has reports whether a name was fired in a pass.
func (v *view) has(at place) bool {
	_, there := v.index[at]
	return there
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
