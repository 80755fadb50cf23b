// Package amount puts amounts into words: bytes, counts, times.
package amount

import (
	"fmt"
	"strings"
	"time"
)

// Of is "1 error", "2 errors".
func Of(n int, noun string) string { return Count(n, noun, noun+"s") }

// Count is a number with its noun, in one form or the other.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Some are the first of many names, and how many there are more: "a, b and 3 more".
func Some(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Since is how long a step has run, to the millisecond.
func Since(start time.Time) time.Duration { return time.Since(start).Round(time.Millisecond) }

// Bytes is a count of bytes for people.
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; v >= unit && i < len(names)-1; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}
