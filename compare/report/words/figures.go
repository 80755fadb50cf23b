package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
)

// statsText returns the statistics of a tensor in one line: the smallest and the largest element, the mean and the standard deviation with
// three digits, in the unit of the elements, and the counts of NaN, +Inf and -Inf elements above 0.
func statsText(s measure.Stats) string {
	text := fmt.Sprintf("min %s, max %s, mean %s, std %s", rough(s.Min), rough(s.Max), rough(s.Mean), rough(s.Std))
	return text + counts(", ", number{s.NaN, "NaN"}, number{s.Inf, "+Inf"}, number{s.NInf, "-Inf"})
}

// NotNumbers counts what is not finite in a tensor.
func NotNumbers(s measure.Stats) string {
	return fmt.Sprintf("%d NaN, %d +Inf, %d -Inf", s.NaN, s.Inf, s.NInf)
}

// digits is a value in full float32 precision, to be found again in a dump.
func digits(n measure.Number) string { return fmt.Sprintf("%.9g", float64(n)) }

// sizes is a shape: "2x3".
func sizes(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var b strings.Builder
	for i, n := range shape {
		if i > 0 {
			b.WriteByte('x')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// rough has three digits, enough to compare by eye; "-" where it is not defined.
func rough(n measure.Number) string { return figure(n, 3) }

// parallel writes a cosine with seven digits, truncated and not rounded: a difference in the seventh digit never prints as 1. The cosine is
// accurate to twelve digits.
func parallel(n measure.Number) string {
	const digits, sum = 1e7, 1e-12
	x := float64(n)
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.7f", math.Trunc((x+math.Copysign(sum, x))*digits)/digits)
}

// brief is a number with two digits.
func brief(x float64) string { return fmt.Sprintf("%.2g", x) }

// ErrorOf are the accumulated error of a row and its limit.
func ErrorOf(r *compare.Row) (failed, limit string) {
	failed, limit = "-", "-"
	if r == nil {
		return failed, limit
	}
	if m := r.Metrics; m != nil && (m.NonFinite > 0 || !math.IsNaN(float64(m.RelL2))) {
		failed = brief(float64(RelL2(m)))
	}
	if r.Gate != nil && len(r.Gate.Checks) > 0 {
		limit = brief(float64(r.Gate.Checks[0].Limit))
	}
	return failed, limit
}

// RelL2 is the relative error of a whole tensor; NaN if an element is NaN or infinite on one side only. The metric leaves these elements
// out, so the metric of the remaining elements would mislead.
func RelL2(m *measure.Metrics) measure.Number {
	if m.NonFinite > 0 {
		return measure.Number(math.NaN())
	}
	return m.RelL2
}

// notFinite reports whether a row has elements that are NaN or infinite on one side only.
func notFinite(r *compare.Row) bool { return r.Metrics != nil && r.Metrics.NonFinite > 0 }
