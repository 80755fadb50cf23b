package floors_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fewestPages is fewer than there are pages: a pattern that finds no file fails.
const fewestPages = 28

var (
	fence       = regexp.MustCompile("(?ms)^ *```.*?^ *```\n?")
	indented    = regexp.MustCompile(`(?m)(?:^\n)(?:^(?: {4}|\t).*\n)+`)
	tableRow    = regexp.MustCompile(`(?m)^ *\|.*$`)
	linkTarget  = regexp.MustCompile(`\]\([^)\s]+\)`)
	pageQuoted  = regexp.MustCompile(`"[^"]*"|\*\w+\*|` + "``[^`]*``|`[^`]*`") // *alone* is a word that the page defines
	blankLines  = regexp.MustCompile(`\n[ \t]*\n`)
	listItem    = regexp.MustCompile(`(?m)^ *(?:[-*]|\d+\.) `)
	american    = regexp.MustCompile(`(?i)\b(?:normal|quant|optim|recogn|real|general|initial|special|summar|vector)iz(?:es?|ed|ing|ations?)\b|\b(?:colors?|behaviors?|neighbors?|labeled|canceled|centered)\b`)
	pagePattern = []string{"*.md", "docs/*.md", "docs/results/*.md", "docs/skill/*.md", "fixtures/README.md"}
)

// The prose of a page has no banned turn of phrase and one spelling, the British: normalise, colour. Tables, code, output and quoted words are left out.
func TestPagesArePlain(t *testing.T) {
	pages := 0
	for _, pattern := range pagePattern {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			pages++
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range paragraphs(string(data)) {
				text := pageQuoted.ReplaceAllString(text, " ")
				for _, banned := range []*regexp.Regexp{bannedTurns, american} {
					if turn := banned.FindString(text); turn != "" {
						t.Errorf("%s: %q in: %s", filepath.ToSlash(strings.TrimPrefix(path, "../../")), turn, text)
					}
				}
			}
		}
	}
	if pages < fewestPages {
		t.Errorf("%d pages", pages)
	}
}

// paragraphs are the paragraphs and list items of a page, each on one line.
func paragraphs(page string) []string {
	for _, skipped := range []*regexp.Regexp{fence, indented, tableRow} {
		page = skipped.ReplaceAllString(page, "\n")
	}
	page = listItem.ReplaceAllString(linkTarget.ReplaceAllString(page, "]"), "\n\n")
	var all []string
	for _, text := range blankLines.Split(page, -1) {
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			all = append(all, text)
		}
	}
	return all
}
