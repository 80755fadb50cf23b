package gemma_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// replacedPasses leave the window of every checkpoint behind, and read the cache.
var replacedPasses = [][]int{{2, 5, 6, 7, 8, 9}, {10}}

// descendants are, by pass and place in the list, the tensors that are computed from an entry of pass 0; the entry
// itself is one.
func descendants(l *order.List, entry int) []bool {
	n := len(l.Entries)
	all := make([]bool, n*len(replacedPasses))
	all[entry] = true
	for at := range all {
		for _, in := range l.Entries[at%n].Inputs {
			from := at/n*n + l.Index(in.Name)
			if in.Prev {
				from -= n
			}
			all[at] = all[at] || from >= 0 && all[from]
		}
	}
	return all
}

// runReplacing shows every tensor of a run, in the order of the list, to see; replaced is made another in pass 0.
func (m model) runReplacing(t *testing.T, replaced string, see func(at int, data []byte)) {
	t.Helper()
	var reg hooks.Registry
	must(t, reg.Replace(replaced, func(e hooks.Event) (hooks.Tensor, error) {
		if e.Pass > 0 {
			return hooks.Tensor{}, nil
		}
		return turned(e.Tensor), nil
	}))
	at := 0
	must(t, reg.Observe("*", func(e hooks.Event) error {
		see(at, e.Tensor.Data)
		at++
		return nil
	}))
	m.run(t, hooks.F32, &reg, replacedPasses)
	if want := len(replacedPasses) * len(m.list.Entries); at != want {
		t.Fatalf("%d tensors, want %d", at, want)
	}
}

// turned is −0.75x of a float32 tensor: a change of size as well, since norms forget the one and magnitudes the other.
func turned(x hooks.Tensor) hooks.Tensor {
	y := hooks.Tensor{DType: x.DType, Shape: x.Shape, Data: make([]byte, len(x.Data))}
	for i, v := range values(x) {
		binary.LittleEndian.PutUint32(y.Data[4*i:], math.Float32bits(float32(-0.75*v)))
	}
	return y
}

// A fault planted by a replacer reaches what the order says is computed from that entry, and nothing else: no module
// writes into a tensor that another one reads, and every module reads what its hook has left.
func TestReplacedEntryReachesItsDescendantsAlone(t *testing.T) {
	for _, name := range checkpoints {
		t.Run(name, func(t *testing.T) {
			m := openModel(t, name)
			var clean [][]byte
			m.runReplacing(t, "nothing", func(_ int, data []byte) { clean = append(clean, bytes.Clone(data)) })
			for i, e := range m.list.Entries {
				if e.DType == "int64" { // ids and positions: see the tests of decode
					continue
				}
				may := descendants(m.list, i)
				changed := make([]bool, len(may))
				m.runReplacing(t, e.Name, func(at int, data []byte) { changed[at] = !bytes.Equal(data, clean[at]) })
				for at, is := range changed {
					reader := m.list.Entries[at%len(m.list.Entries)]
					switch {
					case is && !may[at]:
						t.Errorf("%s of pass 0 was replaced and %s of pass %d changed", e.Name, reader.Name, at/len(m.list.Entries))
					case !is && (at == i || at < len(m.list.Entries) && reads(reader, e.Name)):
						t.Errorf("%s of pass 0 was replaced and %s did not change", e.Name, reader.Name)
					}
				}
			}
		})
	}
}

// reads reports whether an operation depends on all of an entry of the same pass. A cutoff at the mean is not moved by
// the deviation.
func reads(e order.Entry, name string) bool {
	if o, cutoff := e.Op.(op.Cutoff); cutoff && o.Multiplier.Value == 0 {
		return false
	}
	return slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return in.Name == name && !in.Prev && in.Index == nil })
}
