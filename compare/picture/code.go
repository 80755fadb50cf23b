package picture

import "math"

// A cell of a map is one letter of this alphabet; the letter's index is the code.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// The codes. From first to last they are a logarithmic scale, whose meaning depends on the map.
const (
	none      = 0 // no element that counts
	zero      = 1 // exactly 0
	first     = 2
	last      = 62
	nonFinite = 63 // NaN, or an infinity or a mask on one side only
)

// relativeTo is the code of x on the scale of a map whose largest finite number is top: last is top itself, and each code below it is
// smaller by a factor of √2. What is below 2^−30 of top has the code first.
func relativeTo(top, x float64) byte {
	switch {
	case x != x || math.IsInf(x, 0):
		return nonFinite
	case x == 0:
		return zero
	}
	code := last + math.Round(2*math.Log2(x/top))
	return byte(min(max(code, first), last))
}

// decades is the code of a relative error: first is 1e−12 and below, and each code above it a quarter of a decade larger.
func decades(x float64) byte {
	switch {
	case x != x:
		return nonFinite
	case x == 0:
		return zero
	case math.IsInf(x, 0):
		return last
	}
	return byte(min(max(first+math.Round(4*(math.Log10(x)+12)), first), last))
}

// counted is the code of a number of elements: each code is larger by a factor of √2.
func counted(n int64) byte {
	if n == 0 {
		return none
	}
	return byte(min(zero+math.Round(2*math.Log2(float64(n))), last))
}

func letters(codes []byte) string {
	text := make([]byte, len(codes))
	for i, c := range codes {
		text[i] = alphabet[c]
	}
	return string(text)
}
