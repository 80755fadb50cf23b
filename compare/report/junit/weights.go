package junit

import (
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/plain"
)

// Weights writes a comparison of weights as JUnit XML: one suite, a case a tensor. The error is that of w.
func Weights(w io.Writer, r *weights.Result) error {
	return encode(w, suites{Name: "tracediff", Suites: []suite{weightsOf(r)}})
}

// weightsOf has a case for each tensor, or one failing case if no tensor was compared.
func weightsOf(r *weights.Result) suite {
	s := suite{Name: "tracediff.weights"}
	for i := range r.Tensors {
		t := &r.Tensors[i]
		c := testCase{Name: plain.Text(t.Name)}
		if !t.Class.Right() {
			c.Failure = &outcome{Message: plain.Text(t.What), Type: string(t.Class), Text: words.FirstWrong(t)}
		} else {
			c.Said = strings.TrimSpace(string(t.Class) + " " + t.Rounding)
		}
		s.add(c)
	}
	if len(r.Tensors) == 0 {
		s.add(testCase{Name: "coverage", Failure: &outcome{Message: weights.NothingCompared, Type: "INCOMPLETE"}})
	}
	return s
}
