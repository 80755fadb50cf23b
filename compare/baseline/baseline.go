// Package baseline has divergences that are known and accepted: each by its name, with what it showed when it was accepted, a
// reason and a last day.
//
// It fails closed. A line covers what it has recorded and no more: another class, another cause, or an error that is more than
// 1.5 times as large is not covered, and nor is anything after the last day. Token ids are never covered.
package baseline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
)

// growth is how many times as large as recorded an error may be and still be covered. Another order of summation changes an
// error by less; a second mistake on top of the first seldom does.
const growth = 1.5

// Shown is the mismatch of one entry in one pass, with its size by each measure: a single wrong token does not hide in an error of all tokens.
type Shown struct {
	Key   string // of the row
	Class gate.Class
	// Seen is the word for what the two tensors show side by side; see compare.Seen.
	Seen string
	// Error is the tensor's relative L2 against the reference beyond its limit, else NaN.
	Error measure.Number
	// Slices have the relative L2 of the worst index of each axis where that is past its limit, by the axis's name; and the largest
	// absolute error where the reference is zero.
	Slices map[string]measure.Number
	// Own is the relative L2 against the result that is right on the local side's own inputs; NaN where nothing was certified.
	Own measure.Number
	// Elements counts wrong elements without a size: NaN or infinite on one side, masked on one side, integers that differ. 0 elsewhere.
	Elements int64
	Shape    []int  // of the local tensor, where that is what is wrong
	DType    string // likewise
	Cause    string // the name of the mistake, as a sentence; empty where it has none
	// Mistake is the mistake's key, see diagnose.Mistake; empty without a name, and in files older than keys.
	Mistake string
}

// Line is a known divergence.
type Line struct {
	Shown
	Run    string // the prompt of a gate that it is of; empty: of every run
	Reason string
	Until  string // the last day on which it holds, in UTC: "2027-01-31"
}

// Date is how a day is written.
const Date = time.DateOnly

// Expired reports whether the last day is over. Days in this notation compare as text.
func (l *Line) Expired(today string) bool { return today > l.Until }

// sized are the kinds of numeric differences, which the limit tells apart.
var sized = []string{"past", "wider", "within"}

// Uncovered says why the line does not cover what is shown now; empty where it does.
func (l *Line) Uncovered(now *Shown) string {
	kind := func(s *Shown) string {
		if slices.Contains(sized, s.Seen) {
			return "size"
		}
		return s.Seen
	}
	switch {
	case l.Class != now.Class:
		return fmt.Sprintf("it was accepted as %s and is now %s", l.Class, now.Class)
	case kind(&l.Shown) != kind(now):
		return fmt.Sprintf("it differs in another way: %q was accepted, now it is %q", l.Seen, now.Seen)
	case !slices.Equal(l.Shape, now.Shape):
		return fmt.Sprintf("it was accepted with shape %v and has %v now", l.Shape, now.Shape)
	case l.DType != now.DType:
		return fmt.Sprintf("it was accepted as %s and is now %s", l.DType, now.DType)
	case now.Cause != "" && l.Cause == "" && l.Mistake == "":
		return fmt.Sprintf("it has a cause now that it did not have when it was accepted: %s", now.Cause)
	case now.Cause != "" && !l.sameCause(now):
		return fmt.Sprintf("the cause changed: %q was accepted, now it is %q", cmp.Or(l.Cause, l.Mistake), now.Cause)
	case kind(now) == "size" && math.IsNaN(float64(now.Error)) && math.IsNaN(float64(now.Own)) && len(now.Slices) == 0:
		return "its size was not measured"
	case float64(now.Elements) > growth*float64(l.Elements):
		return fmt.Sprintf("%d elements are wrong, and %d were accepted", now.Elements, l.Elements)
	}
	return l.grown(now)
}

// sameCause reports whether the line accepted the mistake of a row. Keys decide where the line and the row have keys, and sentences where
// the row has no key. A line with a sentence and no key comes from a version that wrote no keys. A different sentence in the row may then be
// a different mistake or new words for the same mistake: the cause is set aside, see [Line.SetAside].
func (l *Line) sameCause(now *Shown) bool {
	switch {
	case l.Mistake != "" && now.Mistake != "":
		return l.Mistake == now.Mistake
	case l.Mistake == "" && now.Mistake != "":
		return true
	}
	return l.Cause == now.Cause
}

// SetAside reports that a line covers a row without comparing the causes; empty if the causes were compared. Everything else in the line was
// compared.
func (l *Line) SetAside(now *Shown) string {
	if l.Mistake != "" || now.Mistake == "" || l.Cause == "" || l.Cause == now.Cause {
		return ""
	}
	return fmt.Sprintf("the cause was not compared: it was accepted as the sentence %q, which reports no longer print, and is now %q; accept it again to keep it by its key", l.Cause, now.Cause)
}

// grown names the error that exceeds the line, or is empty.
func (l *Line) grown(now *Shown) string {
	if larger(now.Error, l.Error) {
		return worse("the error", now.Error, l.Error)
	}
	for _, axis := range slices.Sorted(maps.Keys(now.Slices)) {
		then, recorded := l.Slices[axis]
		if !recorded {
			then = measure.Nan
		}
		if larger(now.Slices[axis], then) {
			return worse("the error of the worst "+axis, now.Slices[axis], then)
		}
	}
	if larger(now.Own, l.Own) {
		return worse("the error on its own inputs", now.Own, l.Own)
	}
	return ""
}

// larger reports whether an error exceeds the recorded error, or none was recorded. An error within its limit, or not measured this time, is
// not larger; [Line.Uncovered] demands at least one error.
func larger(now, then measure.Number) bool {
	n, t := float64(now), float64(then)
	switch {
	case math.IsNaN(n):
		return false
	case math.IsNaN(t):
		return true
	}
	return n > growth*t
}

func worse(what string, now, then measure.Number) string {
	if math.IsNaN(float64(then)) {
		return fmt.Sprintf("%s is %.3g, and none was accepted", what, float64(now))
	}
	return fmt.Sprintf("%s is %.3g, more than %g times the %.3g that was accepted", what, float64(now), growth, float64(then))
}
