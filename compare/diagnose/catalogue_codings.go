package diagnose

import (
	"fmt"
	"slices"
)

// Coding is a format of few bits: the numbers of the format, and the groups of numbers that share a scale. The zero value is no coding.
type Coding struct {
	Numbers Codes  `json:"numbers"`
	Scales  Scales `json:"scales"`
}

// Codes are the numbers of a coding.
type Codes string

// The numbers of codings. Int8 and Int4 are whole numbers times a scale; NormalFloat4 has quantiles of a normal distribution. The weights of a model may be
// codes times scales already: in a coding whose name ends in "kept", no right number is rounded.
const (
	Int8         Codes = "int8"
	Int4         Codes = "int4"
	Float8E4M3   Codes = "float8-e4m3"
	Float8E5M2   Codes = "float8-e5m2"
	NormalFloat4 Codes = "nf4"
	// NormalFloat4Short is NormalFloat4 with the digits that people type.
	NormalFloat4Short Codes = "nf4-short"
	Float4E2M1        Codes = "e2m1"

	Int8Kept       Codes = "int8-kept"
	Int4Kept       Codes = "int4-kept"
	Float4E2M1Kept Codes = "e2m1-kept"
)

// Scales is how many numbers of a row share a scale, or one of the constants.
type Scales int

// The scales of codings, where they do not belong to groups within a row.
const (
	ByRow    Scales = 0
	OfAll    Scales = -1
	ByColumn Scales = -2
	NoScale  Scales = -3
	// A row has two or four scales.
	ByHalfRow    Scales = -4
	ByQuarterRow Scales = -5
)

// group is how many numbers of a row share a scale; 0 for scales that belong to no row.
func (s Scales) group(cols int) int {
	switch s {
	case ByRow:
		return cols
	case NoScale:
		return 1
	case OfAll, ByColumn:
		return 0
	case ByHalfRow, ByQuarterRow:
		n := 2
		if s == ByQuarterRow {
			n = 4
		}
		if cols%n != 0 {
			return 0
		}
		return cols / n
	}
	return int(s)
}

// fits reports whether rows of a length may have the scales: a group is a part of a row. A half or a quarter row of a usual size is a group of that size.
func (s Scales) fits(cols int) bool {
	n := s.group(cols)
	if s <= ByHalfRow && slices.Contains(groups, Scales(n)) {
		return false
	}
	return s <= ByRow && s > ByHalfRow || n > 0 && n < cols && cols%n == 0
}

// codesWords are the numbers of a coding in a sentence.
var codesWords = map[Codes]string{
	Int8: "8 bits", Int4: "4 bits", Float8E4M3: "float8 (e4m3)", Float8E5M2: "float8 (e5m2)",
	NormalFloat4: "nf4 (4-bit normal quantiles)", NormalFloat4Short: "nf4 (4-bit normal quantiles of four digits)", Float4E2M1: "4-bit floats (e2m1)",
	Int8Kept: "8 bits (no value is rounded)", Int4Kept: "4 bits (no value is rounded)", Float4E2M1Kept: "4-bit floats (e2m1, no value is rounded)",
}

// String is the coding in a sentence: "8 bits with a scale per row".
func (c Coding) String() string {
	text := codesWords[c.Numbers]
	switch c.Scales {
	case NoScale:
		return text
	case ByRow:
		return text + " with a scale per row"
	case OfAll:
		return text + " with one scale"
	case ByColumn:
		return text + " with a scale per column"
	case ByHalfRow:
		return text + " with a scale per half row"
	case ByQuarterRow:
		return text + " with a scale per quarter row"
	}
	return fmt.Sprintf("%s with a scale per group of %d", text, int(c.Scales))
}
