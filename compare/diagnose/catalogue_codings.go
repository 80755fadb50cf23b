package diagnose

import "fmt"

// Coding is a format of few bits: the numbers of the format, and the groups of numbers that share a scale. The zero value is no coding.
type Coding struct {
	Numbers Codes  `json:"numbers"`
	Scales  Scales `json:"scales"`
}

// Codes are the numbers of a coding.
type Codes string

// The numbers of codings. Int8 and Int4 are whole numbers times a scale; NormalFloat4 has quantiles of a normal distribution.
const (
	Int8         Codes = "int8"
	Int4         Codes = "int4"
	Float8E4M3   Codes = "float8-e4m3"
	Float8E5M2   Codes = "float8-e5m2"
	NormalFloat4 Codes = "nf4"
	Float4E2M1   Codes = "e2m1"
)

// Scales is how many numbers of a row share a scale, or one of the constants.
type Scales int

// The scales of codings, where they do not belong to groups within a row.
const (
	ByRow    Scales = 0
	OfAll    Scales = -1
	ByColumn Scales = -2
	NoScale  Scales = -3
)

// codesWords are the numbers of a coding in a sentence.
var codesWords = map[Codes]string{
	Int8: "8 bits", Int4: "4 bits", Float8E4M3: "float8 (e4m3)", Float8E5M2: "float8 (e5m2)",
	NormalFloat4: "nf4 (4-bit normal quantiles)", Float4E2M1: "4-bit floats (e2m1)",
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
	}
	return fmt.Sprintf("%s with a scale per group of %d", text, int(c.Scales))
}
