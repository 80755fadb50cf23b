package capture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scope is what a run was asked to capture. A zero field limits nothing, except Level, which is always 1, 2 or 3.
type Scope struct {
	Level     int      `json:"level"`               // 1 block boundaries, 2 module outputs, 3 internals
	Layers    Ranges   `json:"layers,omitempty"`    // only entries of these layers, and no entry after the last layer
	Tensors   []string `json:"tensors,omitempty"`   // only names that one of these patterns matches
	Passes    Ranges   `json:"passes,omitempty"`    // only these forward calls
	Positions Ranges   `json:"positions,omitempty"` // only these rows of every token axis, as positions in the sequence
}

// Ranges is a set of non-negative integers as a person types it: "0-3,7" or "5-" (5 and up).
type Ranges []Range

// Range is the integers From to To, both included. To is NoEnd for a range without an end.
type Range struct{ From, To int }

// NoEnd is the end of a range without an end, such as "5-".
const NoEnd = 1<<31 - 1

// ParseRanges reads comma-separated numbers and ranges: "0-3,7,12-". An empty text is the empty set, which limits
// nothing in a Scope.
func ParseRanges(s string) (Ranges, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var rs Ranges
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := parseIndex(first)
		if err != nil {
			return nil, fmt.Errorf("%q in %q: %w", part, s, err)
		}
		r := Range{from, from}
		switch {
		case isRange && last == "":
			r.To = NoEnd
		case isRange:
			if r.To, err = parseIndex(last); err != nil {
				return nil, fmt.Errorf("%q in %q: %w", part, s, err)
			}
		}
		if r.To < r.From {
			return nil, fmt.Errorf("%q in %q: the range ends before it starts", part, s)
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// RangesOf is the set of numbers in a list without negative numbers.
func RangesOf(list []int) (rs Ranges) {
	for _, n := range slices.Compact(slices.Sorted(slices.Values(list))) {
		if last := len(rs) - 1; last >= 0 && rs[last].To == n-1 {
			rs[last].To = n
		} else {
			rs = append(rs, Range{n, n})
		}
	}
	return rs
}

func parseIndex(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n >= NoEnd {
		return 0, fmt.Errorf("want a number such as 3 or a range such as 0-3")
	}
	return int(n), nil
}

// Has reports whether n is in the set. The empty set limits nothing, so it has every number.
func (rs Ranges) Has(n int) bool {
	for _, r := range rs {
		if r.From <= n && n <= r.To {
			return true
		}
	}
	return len(rs) == 0
}

// Max returns the largest number of the set, or NoEnd for the empty set.
func (rs Ranges) Max() int {
	if len(rs) == 0 {
		return NoEnd
	}
	m := 0
	for _, r := range rs {
		m = max(m, r.To)
	}
	return m
}

// String is the text that ParseRanges reads.
func (rs Ranges) String() string {
	var b strings.Builder
	for i, r := range rs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r.From))
		if r.To == NoEnd {
			b.WriteByte('-')
		} else if r.To != r.From {
			fmt.Fprintf(&b, "-%d", r.To)
		}
	}
	return b.String()
}

// MarshalText writes the form of String.
func (rs Ranges) MarshalText() ([]byte, error) { return []byte(rs.String()), nil }

// UnmarshalText reads the form of String.
func (rs *Ranges) UnmarshalText(text []byte) error {
	v, err := ParseRanges(string(text))
	if err != nil {
		return err
	}
	*rs = v
	return nil
}
