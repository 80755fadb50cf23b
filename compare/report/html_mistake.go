package report

import (
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/docs"
)

// htmlMistake is the section of docs/mistakes.md that the first divergence points to. A page that is sent to somebody has to contain it.
type htmlMistake struct {
	Title, Page string
	Items       []htmlItem
}

type htmlItem struct {
	Name  string
	Spans []docs.Span
}

// newMistake is the section that a comparison points to; nil where it names no mistake of the page.
func newMistake(res *compare.Result) *htmlMistake {
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
	m := &htmlMistake{Title: s.Title, Page: f.Page}
	for _, item := range s.Items {
		m.Items = append(m.Items, htmlItem{item.Name, docs.Spans(item.Text)})
	}
	return m
}
