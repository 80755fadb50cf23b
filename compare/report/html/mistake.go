package html

import (
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/docs"
)

// mistake is the section of docs/mistakes.md that the first divergence points to. A page that is sent to somebody has to contain it.
type mistake struct {
	Title, Page string
	Items       []item
}

type item struct {
	Name  string
	Spans []docs.Span
}

// newMistake is the section that a comparison points to; nil where it names no mistake of the page.
func newMistake(res *compare.Result) *mistake {
	if res.Divergence == nil {
		return nil
	}
	f, _ := res.Divergence.Bug()
	if f == nil || f.Page == "" {
		return nil
	}
	s, ok := docs.Mistake(f.Page)
	if !ok {
		return nil
	}
	m := &mistake{Title: s.Title, Page: f.Page}
	for _, i := range s.Items {
		m.Items = append(m.Items, item{i.Name, docs.Spans(i.Text)})
	}
	return m
}
