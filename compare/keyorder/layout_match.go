package keyorder

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// keyRows are the keys of one layer, each a row over all heads.
type keyRows struct {
	heads       [][]float64 // of each head, key after key
	keys, width int         // of one head
	slots       []int       // where key i is; nil: at i
}

// newKeyRows are the keys of a tensor [1, h, S, D].
func newKeyRows(v program.Value, slots []int) *keyRows {
	t := &keyRows{keys: v.Shape[2], width: v.Shape[3], slots: slots}
	for h := range v.Shape[1] {
		t.heads = append(t.heads, v.Data[h*t.keys*t.width:][:t.keys*t.width])
	}
	return t
}

// row is what head h has of key i.
func (t *keyRows) row(h, i int) []float64 {
	if t.slots != nil {
		i = t.slots[i]
	}
	return t.heads[h][i*t.width:][:t.width]
}

// then is the last kept keys of t, followed by all of next.
func (t *keyRows) then(kept int, next *keyRows) *keyRows {
	out := &keyRows{keys: kept + next.keys, width: t.width}
	for h := range t.heads {
		data := make([]float64, 0, out.keys*out.width)
		for i := t.keys - kept; i < t.keys; i++ {
			data = append(data, t.row(h, i)...)
		}
		out.heads = append(out.heads, append(data, next.heads[h]...))
	}
	return out
}

// same reports whether key i of t and key j of o are equal bit for bit.
func (t *keyRows) same(i int, o *keyRows, j int) bool {
	for h := range t.heads {
		a, b := t.row(h, i), o.row(h, j)
		for k := range a {
			if math.Float64bits(a[k]) != math.Float64bits(b[k]) {
				return false
			}
		}
	}
	return true
}

var seed = maphash.MakeSeed()

func (t *keyRows) hash(i int) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for head := range t.heads {
		for _, v := range t.row(head, i) {
			maphash.WriteComparable(&h, math.Float64bits(v))
		}
	}
	return h.Sum64()
}

// match returns the slot in got of each key of want, by content; nil if every key is in its own slot, or if fewer than half of the keys
// are found. Missing keys take the free slots in order, so that one wrong key in a ring buffer stays one wrong key. With missing keys
// only a ring buffer counts as an order: a cache that has dropped keys is in the usual order, and its values are right.
func match(got, want *keyRows) []int {
	n := got.keys
	if want.keys != n || want.width != got.width || len(want.heads) != len(got.heads) {
		return nil
	}
	at := map[uint64][]int{} // slots, by their content
	for s := range n {
		if !got.same(s, want, s) {
			at[got.hash(s)] = append(at[got.hash(s)], s)
		}
	}
	if len(at) == 0 {
		return nil
	}
	slots, taken, found := make([]int, n), make([]bool, n), 0
	for i := range n {
		slots[i] = -1
		if got.same(i, want, i) {
			slots[i], taken[i] = i, true
			found++
			continue
		}
		key := want.hash(i)
		for k, s := range at[key] {
			if got.same(s, want, i) {
				slots[i], taken[s] = s, true
				at[key] = slices.Delete(at[key], k, k+1)
				found++
				break
			}
		}
	}
	if 2*found < n {
		return nil
	}
	next, usual := 0, true
	for i := range slots {
		if slots[i] < 0 {
			for taken[next] {
				next++
			}
			slots[i], taken[next] = next, true
		}
		usual = usual && slots[i] == i
	}
	if usual || found < n && !ring(slots) {
		return nil
	}
	return slots
}

// turned returns the slots of the ring buffer that explains a tensor whose last axis counts keys: the rotation nearest to the expected values,
// if its squared distance is below a hundredth of the unrotated distance; else nil. It is for computed tensors, in which nothing is equal to
// the last bit.
func turned(got, want []float64, n int) []int {
	const much, most = 0.01, 1 << 30
	if n < 2 || len(got) > most/n {
		return nil
	}
	distance := func(by int, limit float64) float64 {
		var sum float64
		for row := 0; row < len(got) && sum <= limit; row += n {
			for i, w := range want[row:][:n] {
				d := got[row+(i+by)%n] - w
				sum += float64(d * d)
			}
		}
		return sum
	}
	limit, best := much*distance(0, math.Inf(1)), 0
	for by := 1; by < n; by++ {
		if d := distance(by, limit); d < limit {
			limit, best = d, by
		}
	}
	if best == 0 {
		return nil
	}
	slots := make([]int, n)
	for i := range slots {
		slots[i] = (i + best) % n
	}
	return slots
}

// assigned returns the slots of keys in any order, as [turned] does for a ring buffer: each key takes the nearest slot. It returns nil if two
// keys would take one slot.
func assigned(got, want []float64, n int) []int {
	const much, most = 0.01, 1 << 28
	if n < 2 || len(got) > most/n {
		return nil
	}
	distance := func(slot, key int, limit float64) float64 {
		var sum float64
		for row := 0; row < len(got) && sum <= limit; row += n {
			d := got[row+slot] - want[row+key]
			sum += float64(d * d)
		}
		return sum
	}
	slots, taken := make([]int, n), make([]bool, n)
	var asTheyLie, all float64
	for key := range slots {
		own := distance(key, key, math.Inf(1))
		asTheyLie += own
		at, best := -1, math.Inf(1)
		for k := range n { // its own slot first: of equal ones it is the usual
			if slot := (key + k) % n; !taken[slot] {
				if d := distance(slot, key, best); d < best {
					at, best = slot, d
				}
			}
		}
		if at < 0 {
			return nil
		}
		slots[key], taken[at] = at, true
		all += best
	}
	if !(all < much*asTheyLie) {
		return nil
	}
	return slots
}

// ring reports whether slots are those of a ring buffer: from some slot on to the end, then from the start.
func ring(slots []int) bool {
	for i, s := range slots {
		if s != (slots[0]+i)%len(slots) {
			return false
		}
	}
	return true
}
