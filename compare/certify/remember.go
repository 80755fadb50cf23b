package certify

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
	"github.com/tracediff/tracediff/order"
)

// What was found of an entry depends on its own tensor, on the tensors that it is computed from, on the weights, the order, the arithmetic and
// this program, and on nothing else where transformers' arithmetic gives all of it. So an entry that was found to be right is right
// wherever all of these are the same to the bit: in the reference, in another port, in the next run of this one. Where the arithmetic is
// another one, or a kernel, which the other entries show, an entry is the same in the same trace alone.

// Key identifies all that something was found by.
type Key [sha256.Size]byte

// Memory keeps what was found, by all that it was found by. It may be used from several goroutines.
type Memory interface {
	Load(k Key, into any) bool // reports whether something was found before, which into then has
	Keep(k Key, found any)     // as JSON
}

// remembered is an entry that was found to be right.
type remembered struct {
	Certificate *Certificate `json:"certificate"`
	Work        int          `json:"work"` // elements and products, see [Isolator.Sight]
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

// errUnknown says that not all is known that an entry depends on.
var errUnknown = errors.New("it is not known what the entry depends on")

// remembers has an isolator remember where all that its certificates depend on is known: o.Of says so. An isolator that asks every entry whether
// its operation may accuse, or that reads weights in several ways, remembers nothing.
func remembers(i *Isolator) *memory {
	o := i.o
	if o.Memory == nil || o.Of == "" || o.Thorough || o.Single != nil || o.Opaque != nil || o.Own || o.Stored != 0 || i.narrow {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "certificates, 1\n%s\n%s %v %v\n%v\n%v %q\n", o.Of, o.Arithmetic, o.Rigorous, i.env.DType, i.env.Passes, i.positioned,
		slices.Sorted(maps.Keys(i.derived)))
	return &memory{Memory: o.Memory, base: h.Sum(nil), tensors: map[string]Key{}}
}

// known is the certificate of an entry that was found to be right before; nil for another one.
func (m *memory) known(t *trial) *Certificate {
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
	t.i.worked.Add(int64(got.Work))
	return got.Certificate
}

// keep keeps the certificate of an entry that is right, and that took some work.
func (m *memory) keep(t *trial, c *Certificate, work int) {
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

// key identifies what the certificate of an entry in transformers' arithmetic depends on.
func (m *memory) key(t *trial) (Key, error) {
	h := m.hash("entry %q %d %v\n", t.entry.Name, t.node.Pass, t.last)
	for _, n := range append([]order.Node{t.node}, t.cut.Leaves...) {
		if err := m.add(h, t.i, n); err != nil {
			return Key{}, err
		}
	}
	for _, n := range t.cut.Steps {
		fmt.Fprintf(h, "step %q %d\n", t.i.list.At(n).Name, n.Pass)
	}
	return Key(h.Sum(nil)), nil
}

// inTrace identifies what the certificate of an entry depends on whose own key is k, where its arithmetic is one that other entries show.
func (m *memory) inTrace(t *trial, k Key) (Key, error) {
	whole, err := m.all(t.i)
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
		onAllCores(len(nodes), func(k int) {
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

// sightOf is [Isolator.Sight] of a trace for which it was found before, with the same work and the same entries; else find's.
func (m *memory) sightOf(ctx context.Context, i *Isolator, work int, of func(name string, pass int) bool, find func() (*Sight, error)) (*Sight, error) {
	if m == nil {
		return find()
	}
	whole, err := m.all(i)
	if err != nil {
		return find()
	}
	h := m.hash("sight %x %d\n", whole, work)
	for _, r := range i.trace.Records() {
		if of != nil && r.Firing == 0 && i.list.Index(r.Name) >= 0 {
			fmt.Fprintf(h, "%q %d %v\n", r.Name, r.Pass, of(r.Name, r.Pass))
		}
	}
	k := Key(h.Sum(nil))
	var got *Sight
	if m.Load(k, &got) && got != nil {
		return got, ctx.Err()
	}
	found, err := find()
	if err == nil && found != nil {
		m.Keep(k, found)
	}
	return found, err
}
