package isolate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/order"
)

// If transformers' arithmetic gives every element of an entry, the certificate of the entry depends on the entry's tensor, the tensors that the
// entry is computed from, the weights, the order, the options and this program, and on nothing else. So the entry is right wherever all of
// these have the same bits: in the reference, in another port, in the next run of this port. Other entries of the trace show an arithmetic
// of the engine, or a kernel. A certificate in such an arithmetic holds only in a trace with the same bits in all tensors.

// Key is the SHA-256 of everything that a result depends on.
type Key [sha256.Size]byte

// Memory keeps results from one run to the next. Several goroutines may use a Memory.
type Memory interface {
	Load(k Key, into any) bool // reads the result of a key into a pointer, and reports whether there is one
	Keep(k Key, found any)     // keeps a result, which JSON can hold
}

// remembered is an entry that was found to be right.
type remembered struct {
	Certificate *Certificate `json:"certificate"`
	Work        int          `json:"work"` // elements and products, for what is bounded by them
}

// memory is what an isolator remembers, with the digests of the tensors of its trace.
type memory struct {
	Memory
	base []byte // what holds of all entries

	mu      sync.Mutex
	tensors map[string]Key // by key
	once    sync.Once
	whole   Key // of all tensors that the order knows
	err     error
}

// errUnknown is the error of an entry with a tensor that no digest identifies.
var errUnknown = errors.New("a tensor of the entry has no digest")

// remembers returns the memory of an isolator. It is nil if the options do not identify everything that certificates depend on: if o.Of is empty, if
// weights are read in several ways, or if every operation is asked whether it may accuse.
func remembers(i *Isolator) *memory {
	o := i.o
	if o.Memory == nil || o.Of == "" || o.Thorough || o.Single != nil || o.Opaque != nil || o.Own || o.Stored != 0 || i.narrow {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "certificates, 2\n%s\n%s %v %d %v\n%v\n%v %q\n", o.Of, o.Arithmetic, o.Rigorous, i.Times(), i.env.DType, i.env.Passes, i.positioned,
		slices.Sorted(maps.Keys(i.derived)))
	return &memory{Memory: o.Memory, base: h.Sum(nil), tensors: map[string]Key{}}
}

// known returns the kept certificate of an entry, or nil.
func (m *memory) known(t *Trial) *Certificate {
	if m == nil {
		return nil
	}
	k, err := m.key(t)
	if err != nil {
		return nil
	}
	var got remembered
	found := m.Load(k, &got)
	if !found {
		if k, err = m.inTrace(t, k); err == nil {
			found = m.Load(k, &got)
		}
	}
	if c := got.Certificate; !found || c == nil || !c.Good() || got.Work < 0 {
		return nil
	}
	t.Isolator.worked.Add(int64(got.Work))
	return got.Certificate
}

// keep keeps the certificate of an entry if the entry is right. Work is how many elements and products the certificate took.
func (m *memory) keep(t *Trial, c *Certificate, work int) {
	if m == nil || !c.Good() {
		return
	}
	k, err := m.key(t)
	if err == nil && c.Arithmetic != string(Strict) {
		k, err = m.inTrace(t, k)
	}
	if err == nil {
		m.Keep(k, remembered{c, work})
	}
}

// key is the key of an entry in transformers' arithmetic.
func (m *memory) key(t *Trial) (Key, error) {
	h := m.hash("entry %q %d %v\n", t.Entry.Name, t.Node.Pass, t.lastOnly)
	for _, n := range append([]order.Node{t.Node}, t.Cut.Leaves...) {
		if err := m.add(h, t.Isolator, n); err != nil {
			return Key{}, err
		}
	}
	for _, n := range t.Cut.Steps {
		fmt.Fprintf(h, "step %q %d\n", t.Isolator.list.At(n).Name, n.Pass)
	}
	return Key(h.Sum(nil)), nil
}

// inTrace is the key of an entry in an arithmetic that other entries of the trace show. k is the key of the entry in transformers' arithmetic.
func (m *memory) inTrace(t *Trial, k Key) (Key, error) {
	whole, err := m.all(t.Isolator)
	h := m.hash("in trace %x %x\n", k, whole)
	return Key(h.Sum(nil)), err
}

func (m *memory) hash(format string, args ...any) hash.Hash {
	h := sha256.New()
	h.Write(m.base)
	fmt.Fprintf(h, format, args...)
	return h
}

// add adds a tensor, and how the isolator reads it.
func (m *memory) add(h hash.Hash, i *Isolator, n order.Node) error {
	name := i.list.At(n).Name
	if i.assumed(n) {
		fmt.Fprintf(h, "assumed %q %d\n", name, n.Pass)
		return nil
	}
	r, ok := i.trace.Lookup(n.Pass, name)
	if !ok || r.Sums() || r.Printed != nil {
		return errUnknown
	}
	slots, err := i.layout.Slots(n)
	if err != nil {
		return err
	}
	sum, err := m.digest(i.trace, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "tensor %q %d %v %v %v %v %v %x\n", name, n.Pass, r.DType, r.Shape, r.LastRow, r.LeftOff != nil, slots, sum)
	return nil
}

// all identifies all tensors of the trace that the order knows.
func (m *memory) all(i *Isolator) (Key, error) {
	m.once.Do(func() {
		var nodes []order.Node
		for _, r := range i.trace.Records() {
			if n := (order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}); n.Entry >= 0 && r.Firing == 0 && n.Pass < len(i.env.Passes) {
				nodes = append(nodes, n)
			}
		}
		errs := make([]error, len(nodes))
		cores.Each(len(nodes), func(k int) {
			r, _ := i.trace.Lookup(nodes[k].Pass, i.list.At(nodes[k]).Name)
			_, errs[k] = m.digest(i.trace, r)
		})
		h := m.hash("trace\n")
		for k, n := range nodes {
			if m.err = errors.Join(errs[k], m.add(h, i, n)); m.err != nil {
				return
			}
		}
		m.whole = Key(h.Sum(nil))
	})
	return m.whole, m.err
}

// digest is the SHA-256 of a tensor's data.
func (m *memory) digest(t *capture.Trace, r capture.Record) (Key, error) {
	m.mu.Lock()
	sum, ok := m.tensors[r.Key]
	m.mu.Unlock()
	if ok {
		return sum, nil
	}
	h := sha256.New()
	room := make([]byte, min(r.Size, 1<<20))
	for at := int64(0); at < r.Size; at += int64(len(room)) {
		room = room[:min(int64(len(room)), r.Size-at)]
		if n, err := t.ReadAt(r, room, at); n < len(room) {
			return Key{}, errors.Join(io.ErrUnexpectedEOF, err)
		}
		h.Write(room)
	}
	sum = Key(h.Sum(nil))
	m.mu.Lock()
	m.tensors[r.Key] = sum
	m.mu.Unlock()
	return sum, nil
}

// Recalled returns the result of find for a whole trace, or an earlier result for the same trace and words. words
// writes every other dependency of the result. The result is kept as JSON.
func Recalled[T any](ctx context.Context, i *Isolator, words func(w io.Writer), find func() (*T, error)) (*T, error) {
	m := i.memory
	if m == nil {
		return find()
	}
	whole, err := m.all(i)
	if err != nil {
		return find()
	}
	h := m.hash("of all %x\n", whole)
	words(h)
	k := Key(h.Sum(nil))
	var got *T
	if m.Load(k, &got) && got != nil {
		return got, ctx.Err()
	}
	found, err := find()
	if err == nil && found != nil {
		m.Keep(k, found)
	}
	return found, err
}
