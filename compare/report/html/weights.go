package html

import (
	"io"
	"strings"

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
	for _, line := range words.WeightsRight(r) {
		s.Summary = append(s.Summary, said{"", words.Clean(line)})
	}
	for _, n := range words.WeightNotes(r) {
		s.Summary = append(s.Summary, said{"note:", words.Clean(n)})
	}
	p.Sections = []*section{s}
	return p.write(w)
}

// weights adds what is wrong with weights to a page.
func (p *page) weights(r *weights.Result) {
	for i := range r.Findings {
		f := &r.Findings[i]
		flag := flag{Kind: string(f.Class), Entry: words.Clean(f.Name()), Fields: []said{{"found", words.Clean(f.What)}}}
		if a := f.At; a != nil {
			flag.Fields = append(flag.Fields, said{"first", words.Clean(words.WeightAt(a))})
		}
		if len(f.Also) > 0 {
			flag.Fields = append(flag.Fields, said{"also", words.Clean(words.Some(f.Also))})
		}
		flag.Fields = append(flag.Fields, said{"try", words.Clean(strings.Join(f.Steps(), "; "))})
		p.Flags = append(p.Flags, flag)
	}
}
