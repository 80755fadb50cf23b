package diagnose

import "math"

const (
	leastFewer = 4  // how many bits fewer than their dtype the values have, at least
	leastBits  = 32 // wrong elements that are needed to tell the number of bits
)

// inFewBits describes wrong elements with few significant bits, such as numbers of a narrower type. It is nil if the right values have few bits too.
func inFewBits(x *difference) *Description {
	d := &Description{Kind: "described.bits", Of: theResult}
	most, right, stored := 0, 0, 0
	for n := range x.results {
		o := &x.results[n]
		for i, y := range o.want {
			if !wrongElement(o, i) {
				continue
			}
			d.Explained++
			if k := significant(y); k > most {
				most = k
			}
			stored = max(stored, digits(y, o.half[i]))
			right = max(right, significant(float64(float32(o.value[i]))))
		}
		d.Elements += len(o.want)
	}
	if d.Explained < leastBits || most == 0 || most+leastFewer > stored || most+leastFewer > right {
		return nil
	}
	d.Values = []float64{float64(most)}
	return d
}

// digits is the number of significant bits of a tensor's dtype, from an element and half the distance to the next number of the dtype.
func digits(y, half float64) int {
	if y == 0 || !(half > 0) {
		return 0
	}
	return int(math.Floor(-math.Log2(half/math.Abs(y)))) - 1
}

// significant counts the bits of a number from the first 1 to the last 1.
func significant(x float64) int {
	bits := math.Float64bits(x) & (1<<52 - 1)
	if x == 0 || x-x != 0 {
		return 0
	}
	n := 53
	for bits |= 1 << 52; bits&1 == 0; bits >>= 1 {
		n--
	}
	return n
}
