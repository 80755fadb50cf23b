// Package docs embeds mistakes.md, the page of the usual mistakes, so that an installed program and a report can show the section that a
// finding points to. The embedded file is the file that people read on the web.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// MistakesPage is the path of the page in the repository, as reports name it before an anchor.
const MistakesPage = "docs/mistakes.md"

//go:embed mistakes.md
var mistakes string

// Section is the part of the page below one heading: a mistake, which has items, or a group of mistakes, which has an introduction.
type Section struct {
	Anchor string // of the heading, as links have it: "place-of-epsilon"
	Title  string
	Group  string // title of the group that a mistake stands in; empty for a group
	Intro  string // what stands before the items, a line for each paragraph
	Items  []Item // such as Numbers, Cause and Fix
}

// Item is a named paragraph of a mistake.
type Item struct{ Name, Text string }

// Span is a run of text in one style.
type Span struct {
	Text string
	Code bool
}

// Mistakes returns the sections of the page in their order, without the title of the page. The slice is shared: it is not to be changed.
var Mistakes = sync.OnceValue(func() []Section { return parse(mistakes) })

// Mistake returns the section of an anchor, which may have the page in front of it, as reports have: docs/mistakes.md#epsilon.
func Mistake(anchor string) (Section, bool) {
	anchor = strings.TrimPrefix(strings.TrimPrefix(anchor, MistakesPage), "#")
	for _, s := range Mistakes() {
		if s.Anchor == anchor {
			return s, true
		}
	}
	return Section{}, false
}

var (
	notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
	link        = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
)

// Anchor is what a heading becomes in a link.
func Anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// parse reads sections of a page: headings of the second and third level, and below them paragraphs, tables and lists of "- **Name**: text".
func parse(page string) []Section {
	var all []Section
	group, fresh := "", true // fresh: the next line begins a paragraph
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if title, ok := strings.CutPrefix(line, "## "); ok {
			group = title
			all = append(all, Section{Anchor: Anchor(title), Title: title})
			continue
		}
		if title, ok := strings.CutPrefix(line, "### "); ok {
			all = append(all, Section{Anchor: Anchor(title), Title: title, Group: group})
			continue
		}
		if len(all) == 0 {
			continue
		}
		s := &all[len(all)-1]
		name, text, isItem := strings.Cut(strings.TrimPrefix(line, "- **"), "**: ")
		isItem = isItem && strings.HasPrefix(line, "- **")
		switch {
		case line == "":
			fresh = true
			continue
		case isItem:
			s.Items = append(s.Items, Item{name, text})
		case strings.HasPrefix(line, "  ") && len(s.Items) > 0:
			s.Items[len(s.Items)-1].Text += " " + strings.TrimSpace(line)
		case fresh || strings.HasPrefix(line, "|") || s.Intro == "":
			s.Intro += newline(s.Intro) + line
		default:
			s.Intro += " " + line
		}
		fresh = false
	}
	return all
}

func newline(before string) string {
	if before == "" {
		return ""
	}
	return "\n"
}

// Spans returns a text of the page as runs of plain text and code. A link becomes its text, followed by the target in brackets where the text
// does not name the target.
func Spans(text string) []Span {
	var all []Span
	for i, part := range strings.Split(text, "`") {
		code := i%2 == 1
		if !code {
			part = link.ReplaceAllStringFunc(part, unlinked)
		}
		if part != "" {
			all = append(all, Span{Text: part, Code: code})
		}
	}
	return all
}

func unlinked(text string) string {
	m := link.FindStringSubmatch(text)
	to, here := strings.CutPrefix(m[2], "#")
	switch {
	case m[1] == to, here && Anchor(m[1]) == to:
		return m[1]
	case here:
		return m[1] + " (" + to + ")"
	}
	return m[1] + " (docs/" + to + ")"
}

// Plain returns a text of the page without its marks.
func Plain(text string) string {
	var b strings.Builder
	for _, s := range Spans(text) {
		b.WriteString(s.Text)
	}
	return b.String()
}
