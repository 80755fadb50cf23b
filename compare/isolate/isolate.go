package isolate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Engines is which engines an isolated entry may come from.
type Engines string

// The arithmetics.
const (
	// Auto is transformers', and where that fails the one that the entries of the same form have in common.
	Auto   Engines = "auto"
	Strict Engines = "strict" // every rounding point of transformers and no other
)

// Options say how entries are isolated. The zero value is auto arithmetic with probabilistic bounds, in which every
// operation may accuse.
type Options struct {
	Arithmetic Engines
	// Rigorous takes bounds that hold for any order of summation, in place of those that hold for nearly every.
	Rigorous bool
	// Certified says which operations may accuse; nil for all. It is asked when something is to be accused or excused, and
	// may take its time.
	Certified func(context.Context) (Certified, error)
	// DType is the dtype that the model computed in, for a trace that does not say; see [ModelDType].
	DType hooks.DType
	// Stored is the dtype of a trace computed in float32 and rounded at writing time; 0: the captured values are
	// the computed values.
	Stored hooks.DType
	// Given: the trace is a file that a person made; see [Needs].
	Given bool
	// Thorough also asks the Engine about right entries, for a run with no other test.
	Thorough bool
	PortWeights
	// Room is the memory, in bytes, for values computed at one time, apart from files; 0 for DefaultMemory. No
	// result depends on it.
	Room int64
	// SearchWork multiplies the work that a search for a mistake or an arithmetic may use; 0 is 1.
	SearchWork int
	// Memory keeps the certificates of right entries between runs; it may be nil. Of identifies the other
	// dependencies of a certificate, besides the trace and these options: the program, the processor, the order and
	// the weights. If Of is empty, no certificate is kept.
	Memory Memory
	Of     string
}

// PortWeights say what is to be known of weights that may be a port's own.
type PortWeights struct {
	// Single reads weights for passes of one token, because engines have separate kernels for such passes. If it is
	// nil, the reader of the other passes is used.
	Single func(order.Weight) (program.Rows, error)
	// Own: the weights are the port's own, and not those of the original.
	Own bool
	// Opaque says why a product with a weight shows nothing, which no verdict may then rest on; empty: it does. nil: every product does.
	Opaque func(w order.Weight, pass int) string
	// Spare are vectors of the checkpoint that no entry of the order reads. An engine may read them all the same.
	Spare []order.Weight
}

// Isolator computes entries of one trace from that trace's own captured ancestors and a checkpoint's weights. It may be
// used from several goroutines.
type Isolator struct {
	Tensors
	o      Options
	narrow bool         // the trace has some rows only: see [NewConfirmer]
	doing  func(string) // see Tell
	// engine decides what transformers' arithmetic does not; nil: nothing does.
	engine Engine

	seen
	captured captured
	worked   atomic.Int64 // the [program.Program.Time] of the entries that were certified
	Block    int          // elements of an entry that are certified at one time; see BlockElements
	memory   *memory      // nil: nothing is remembered
	large    sync.Mutex   // held for an entry that is looked at whole and is certified in blocks where it is right
}

// seen is what was seen of captured entries.
type seen struct {
	mu        sync.Mutex
	few       map[order.Node][]int // tokens of large entries that searches look at; see partOf
	follows   map[order.Node]bool  // captured entries that something follows from: see sound
	unsettled map[order.Node]bool  // large entries that blocks do not certify: see InBlocks
}

// New prepares a trace of the model that list describes. weights are in the trace's dtype. The error says what a
// trace lacks: token ids, whole rows, a dtype.
func New(t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error), o Options) (*Isolator, error) {
	if t.SomeRows() {
		return nil, errors.New("the trace has some positions only: operations need all rows")
	}
	return prepareTrace(t, list, weights, o, false)
}

func prepareTrace(t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error), o Options, narrow bool) (*Isolator, error) {
	t = t.Called(func(name string) bool { return list.Index(name) >= 0 })
	m := t.Manifest()
	dtype := m.DType
	if dtype == 0 {
		dtype = o.DType
	}
	switch {
	case list.Config == nil:
		return nil, errors.New("an order of names has no operations")
	case dtype == 0:
		return nil, errors.New("nothing says in which dtype the trace was computed")
	case !measure.Computes(dtype):
		return nil, fmt.Errorf("the trace was computed in %s, and only operations in float64, float32, bfloat16 and float16 are described", dtype)
	}
	passes, err := t.IDs()
	if err != nil && len(m.Scope.Passes) > 0 {
		return nil, fmt.Errorf("the trace has some passes only, and what was computed before them is not known (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	var tokens []int
	for pass, ids := range passes {
		if len(ids) == 0 {
			return nil, fmt.Errorf("pass %d of the trace has no tokens", pass)
		}
		tokens = append(tokens, len(ids))
	}
	if o.Arithmetic == "" {
		o.Arithmetic = Auto
	}
	i := &Isolator{Tensors: Tensors{trace: t, list: list, derived: map[string]bool{}, layout: keyorder.New(t, list)}, o: o, narrow: narrow, Block: BlockElements, seen: seen{follows: map[order.Node]bool{}, unsettled: map[order.Node]bool{}, few: map[order.Node][]int{}}}
	for _, name := range m.Derived { // what a trace claims beyond the order excuses it from nothing
		if e, ok := list.Lookup(name); ok && e.Derived() {
			i.derived[name] = true
		}
	}
	i.positioned = slices.ContainsFunc(t.Records(), func(r capture.Record) bool { return r.Name == order.PositionIDs })
	i.layout.Expect = func(n order.Node) (program.Value, error) { return expectedValue(i, n) }
	i.env = order.Env{
		Arith: program.Arith{DType: dtype, Emulated: true, Bounds: true, Rigorous: o.Rigorous}, Passes: order.Passes(tokens), Weights: weights,
		Read: func(n order.Node) (program.Value, error) {
			v, _, err := i.Value(n)
			return withLost(i, n, v), err
		},
	}
	i.memory = remembers(i)
	return i, nil
}

// Options are those that the isolator was made with, with every default resolved.
func (i *Isolator) Options() Options { return i.o }

// SetEngine names what decides on entries that transformers' arithmetic does not give, before anything is certified. Without an engine nothing does.
func (i *Isolator) SetEngine(e Engine) { i.engine = e }

// Own is the arithmetic that was asked for, in words.
func (i *Isolator) Own() string { return string(Strict) }

// Worked is the [program.Program.Time] of the entries that were certified.
func (i *Isolator) Worked() int64 { return i.worked.Load() }

// maxExpected bounds the entries of a computation by expectedValue, in addition to one entry a pass. Attention has fewer.
const maxExpected = 16

// expectedValue computes a node without tensors that may have their keys in another order. The value has no shape if the computation needs more than
// maxExpected entries.
func expectedValue(i *Isolator, n order.Node) (program.Value, error) {
	cut, err := i.list.Cut(func(n order.Node) bool {
		return keyorder.KeyAxis(i.list.At(n)) < 0 && i.Has(n) && i.Misfit(n) == nil
	}, n)
	if err != nil || len(cut.Steps) > n.Pass+maxExpected {
		return program.Value{}, nil
	}
	env := i.env
	env.Bounds = false
	return cut.Value(context.Background(), env)
}

// Certify isolates one entry of one pass. The error is an [*order.BareError] if the inputs were not captured, a
// [*Misfit] if a captured tensor differs in kind from the order, or an error of reading the trace or the weights.
func (i *Isolator) Certify(ctx context.Context, name string, pass int) (*Certificate, error) {
	c, _, err := certifyEntry(ctx, i, name, pass, false)
	return c, err
}

// certifyEntry is Certify, with the cut that the certificate is of. Right: the certificate is nil where an arithmetic has to be searched for.
func certifyEntry(ctx context.Context, i *Isolator, name string, pass int, right bool) (*Certificate, *order.Plan, error) {
	n, err := nodeOf(i, name, pass)
	if err != nil {
		return nil, nil, err
	}
	t, err := i.Unread(n, i.Has)
	if bad := (*Misfit)(nil); errors.As(err, &bad) {
		if c, cut, err := pastCaches(ctx, i, n); c != nil || err != nil {
			return c, cut, err
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if c := i.memory.known(t); c != nil {
		return c, t.Cut, nil
	}
	t.right = right
	i.Says(n, "")
	if t.Pieces() > 0 {
		c, err := InBlocks(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		if c == nil && right {
			return nil, nil, nil
		}
		if c == nil && t.Block() > 0 {
			if c, err = ofParts(ctx, t); err != nil {
				return nil, nil, err
			}
		}
		if c != nil {
			return finish(t, c), t.Cut, nil
		}
		i.large.Lock() // one at a time is in memory
		defer i.large.Unlock()
	}
	if err := t.ReadAll(); err != nil {
		return nil, nil, err
	}
	return certifiedTrial(ctx, t)
}

// certifiedTrial returns the certificate of a trial and the trial's cut; nil if the entry is left for later.
func certifiedTrial(ctx context.Context, t *Trial) (*Certificate, *order.Plan, error) {
	c, err := certifyTrial(ctx, t)
	if c == nil || err != nil {
		return nil, nil, err
	}
	return finish(t, c), t.Cut, nil
}

// finish counts what a certificate took, and says what it was computed from.
func finish(t *Trial, c *Certificate) *Certificate {
	work := 0
	if t.Formula != nil {
		work = t.Formula.Time()
	}
	t.Isolator.worked.Add(int64(work))
	for _, n := range t.Cut.Leaves {
		c.From = append(c.From, capture.Key(n.Pass, t.Isolator.list.At(n).Name, 0))
	}
	t.Isolator.memory.keep(t, c, work)
	return c
}

// Tell names a function that is told what the isolator computes: an entry that it verifies, or a search. Several goroutines call the function. Tell is called
// before anything is certified.
func (i *Isolator) Tell(doing func(what string)) { i.doing = doing }

// Says passes the key of an entry on, and what is done with the entry.
func (i *Isolator) Says(n order.Node, format string, of ...any) {
	if i.doing != nil {
		i.doing(capture.Key(n.Pass, i.list.At(n).Name, 0) + fmt.Sprintf(format, of...))
	}
}

// SaysSearch passes on what a search looks for.
func SaysSearch(i *Isolator, what, of string) {
	if i.doing != nil {
		i.doing("looking for " + what + " " + of)
	}
}

// trialOf is the trial of an entry by its name.
func trialOf(i *Isolator, name string, pass int) (*Trial, error) {
	n, err := nodeOf(i, name, pass)
	if err != nil {
		return nil, err
	}
	return i.Trial(n)
}

// nodeOf is an entry by its name.
func nodeOf(i *Isolator, name string, pass int) (order.Node, error) {
	at := i.list.Index(name)
	if at < 0 {
		return order.Node{}, fmt.Errorf("the order has no %s", name)
	}
	if pass >= len(i.env.Passes) { // nor is known how many tokens the passes before had
		return order.Node{}, &order.BareError{Name: order.InputIDs, Pass: len(i.env.Passes)}
	}
	return order.Node{Entry: at, Pass: pass}, nil
}

// Times is how often searches have the work that they have by themselves.
func (i *Isolator) Times() int { return max(i.o.SearchWork, 1) }

// Engine knows the engine of a trace, beyond transformers' arithmetic. [Isolator.Certify] asks it about entries not
// given by transformers' arithmetic.
type Engine interface {
	// Kernel is the fused kernel of a form, nil if no kernel is known. It is asked before transformers' arithmetic is.
	Kernel(ctx context.Context, of FormKey) (*Arithmetic, error)
	// Searched reports whether the arithmetic of a form has been found already.
	Searched(of FormKey) bool
	// Otherwise judges an entry not given by transformers' arithmetic; off are the elements outside. identified is
	// false if no known arithmetic explains the entry, but some choice of roundings may; then left is empty.
	Otherwise(ctx context.Context, t *Trial, c *Certificate, strict *Judgement, off []int) (j *Judgement, left []int, identified bool, err error)
	// Follow starts following a mistake through the parts of a large entry. first is a part with a BUG, and c its
	// certificate.
	Follow(ctx context.Context, first *Trial, c *Certificate) (Follower, error)
}

// Follower follows a mistake through the parts of a large entry.
type Follower interface {
	Look(ctx context.Context, part *Trial) error // a part, before it is certified
	End(t *Trial)                                // after all parts
}

// NoFollower follows nothing.
type NoFollower struct{}

func (NoFollower) Look(context.Context, *Trial) error { return nil }

func (NoFollower) End(*Trial) {}
