package html

import (
	"io"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/compare/weights"
)

// Weights writes a comparison of weights as one page: the wrong tensors, and the right tensors by class. It returns the error of w.
func Weights(w io.Writer, version string, r *weights.Result) error {
	p := newPage(report.Tool{Name: "tracediff", Version: version})
	p.Title, p.Good = "tracediff weights", r.Right()
	p.Verdict = saidOf(words.WeightsVerdict(r))
	p.weights(r)
	s := &section{ID: "run0", Sides: []said{{"original", words.Clean(words.WeightsPlace(r.Original))}, {"port", words.Clean(words.WeightsPlace(r.Local))}}}
	s.Summary = collect(words.WeightsSummary(r))
	p.Sections = []*section{s}
	return p.write(w)
}

// weights adds what is wrong with weights to a page.
func (p *page) weights(r *weights.Result) {
	for i := range r.Findings {
		f := &r.Findings[i]
		p.Flags = append(p.Flags, flag{string(f.Class), words.Clean(f.Name()), collect(words.WeightFields(f))})
	}
}
