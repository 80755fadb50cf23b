package inspect

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
)

// Percentile is the number below which P percent of the elements lie, as numpy.percentile has it by default: with n elements
// in ascending order, counted from 0, the one at P/100·(n − 1), and between two of them by linear interpolation. It is exact
// for tensors of any size.
type Percentile struct {
	P     float64        `json:"p"`
	Value measure.Number `json:"value"`
}

// percents are the percentiles shown: the middle, and tails with outliers that a deviation hides.
var percents = [...]float64{0.1, 1, 5, 25, 50, 75, 95, 99, 99.9}

// selector finds elements by their rank without holding them: it counts the elements by the first 16 bits of their keys,
// whose order is that of the numbers; then, of those that share the first bits with a wanted one, by the next 16; and so on
// until a key is known. Each round reads the tensor once. Memory is a table of 65536 counts for each different beginning of
// a wanted key: 18 of half a MiB at most, for nine percentiles that lie between two elements each.
type selector struct {
	bits   int // of a key
	digit  int // bits of a digit
	known  int // of the key, how many the rounds before have found
	ranks  []int64
	tables []*table // by prefix, ascending
	begins []bool   // whether the prefix of a table begins with this digit: of most elements it does not
	found  []wanted
}

// Bits of a digit: those above, and for a tensor of few elements, which is quickly read, fewer: there the tables are what
// takes time. Keys have a multiple of either.
const (
	digitBits = 16
	fewBits   = 8
	fewCounts = 1 << 12
)

// table counts the elements whose keys begin with prefix, by the digit that comes next.
type table struct {
	prefix uint64
	counts []int64
}

// wanted is an element of a rank, as far as it is known.
type wanted struct {
	prefix uint64
	rank   int64 // among the elements with this prefix
}

// newSelector is for a number of elements with keys of so many bits.
func newSelector(elements, bits int) *selector {
	s := &selector{bits: bits, digit: digitBits}
	if elements <= fewCounts {
		s.digit = fewBits
	}
	s.begins, s.tables = make([]bool, 1<<s.digit), []*table{s.newTable(0)}
	return s
}

func (s *selector) newTable(prefix uint64) *table { return &table{prefix, make([]int64, 1<<s.digit)} }

// count takes in elements; NaN, infinities and what is masked have no rank.
func (s *selector) count(x []float64, mask float64) {
	above, shift, first := s.bits-s.known, s.bits-s.known-s.digit, s.bits-s.digit
	t, last := s.tables[0], uint64(1)<<s.digit-1
	for _, v := range x {
		if !finite(v) || v <= mask {
			continue
		}
		k := keyOf(v, s.bits)
		if s.known > 0 {
			if !s.begins[k>>first] {
				continue
			}
			if t = s.table(k >> above); t == nil {
				continue
			}
		}
		t.counts[k>>shift&last]++
	}
}

func (s *selector) table(prefix uint64) *table {
	i, ok := slices.BinarySearchFunc(s.tables, prefix, func(t *table, p uint64) int {
		switch {
		case t.prefix < p:
			return -1
		case t.prefix > p:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return s.tables[i]
}

// next ends a round and reports whether there has to be another. n is how many elements have a rank.
func (s *selector) next(n int64) bool {
	if s.known == 0 {
		s.want(n)
	}
	for i := range s.found {
		w := &s.found[i]
		counts, digit := s.table(w.prefix).counts, 0
		for ; w.rank >= counts[digit]; digit++ {
			w.rank -= counts[digit]
		}
		w.prefix = w.prefix<<s.digit | uint64(digit)
	}
	s.known += s.digit
	s.tables = s.tables[:0]
	if s.known == s.bits {
		return false
	}
	clear(s.begins)
	for _, w := range s.found { // ascending, as the ranks are
		s.begins[w.prefix>>(s.known-s.digit)] = true
		if last := len(s.tables) - 1; last < 0 || s.tables[last].prefix != w.prefix {
			s.tables = append(s.tables, s.newTable(w.prefix))
		}
	}
	return len(s.found) > 0
}

// want sets the ranks: of each percentile the two elements that it lies between.
func (s *selector) want(n int64) {
	if n == 0 {
		return
	}
	for _, p := range percents {
		low, _ := place(p, n)
		s.ranks = append(s.ranks, low, min(low+1, n-1))
	}
	slices.Sort(s.ranks)
	s.ranks = slices.Compact(s.ranks)
	for _, r := range s.ranks {
		s.found = append(s.found, wanted{rank: r})
	}
}

// place is the place of a percentile among n elements: the index low, and the part of the way to the next element.
func place(p float64, n int64) (low int64, part float64) {
	at := p / 100 * float64(n-1)
	low = min(int64(at), n-1)
	return low, at - float64(low)
}

// percentiles are final once next has reported false.
func (s *selector) percentiles(n int64) []Percentile {
	if n == 0 {
		return nil
	}
	value := func(rank int64) float64 {
		i, _ := slices.BinarySearch(s.ranks, rank)
		return valueOf(s.found[i].prefix, s.bits)
	}
	list := make([]Percentile, len(percents))
	for i, p := range percents {
		low, part := place(p, n)
		list[i] = Percentile{p, measure.Number(between(value(low), value(min(low+1, n-1)), part))}
	}
	return list
}

// between interpolates from the nearer end, as numpy does: the result stays in the interval.
func between(a, b, part float64) float64 {
	d := b - a
	switch {
	case math.IsInf(d, 0): // the ends of float64
		return float64(a*(1-part)) + float64(b*part)
	case part < 0.5:
		return a + float64(d*part)
	}
	return b - float64(d*(1-part))
}

// keyBits is how many bits a key takes: those of a float type in which all numbers of the dtype are exact, and of a
// bfloat16, whose lower half is zero, the upper half.
func keyBits(d hooks.DType) int {
	switch d {
	case hooks.BF16, hooks.F8E4M3, hooks.F8E5M2, hooks.I8, hooks.U8, hooks.Bool:
		return 16
	case hooks.F32, hooks.F16, hooks.I16, hooks.U16:
		return 32
	}
	return 64
}

// keyOf maps finite numbers to integers in the same order: the bits of a positive float ascend with it, those of a negative
// one descend. A zero has one key.
func keyOf(x float64, bits int) uint64 {
	x += 0 // −0 becomes +0
	if bits == 64 {
		b := math.Float64bits(x)
		if b>>63 == 1 {
			return ^b
		}
		return b | 1<<63
	}
	b := math.Float32bits(float32(x))
	if b>>31 == 1 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return uint64(b >> (32 - bits))
}

// valueOf is the inverse of keyOf.
func valueOf(key uint64, bits int) float64 {
	if bits == 64 {
		if key>>63 == 1 {
			return math.Float64frombits(key &^ (1 << 63))
		}
		return math.Float64frombits(^key)
	}
	positive := key>>(bits-1) == 1
	b := uint32(key) << (32 - bits)
	if positive {
		return float64(math.Float32frombits(b &^ (1 << 31)))
	}
	return float64(math.Float32frombits(^b &^ (1<<(32-bits) - 1)))
}
