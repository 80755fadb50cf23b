package diagnose

import "math"

const (
	leastFewer = 4  // bits that values have fewer than their dtype
	leastBits  = 32 // wrong elements that tell how many bits they have
)

// inFewBits describes wrong elements that all have few significant bits, as numbers of a narrower type. It is nil where right elements have as few.
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

// digits is how many significant bits the dtype of a tensor has, by half the distance from one of its numbers to the next.
func digits(y, half float64) int {
	if y == 0 || !(half > 0) {
		return 0
	}
	return int(math.Floor(-math.Log2(half/math.Abs(y)))) - 1
}

// significant is how many bits a number has from its first to its last that is not 0.
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
