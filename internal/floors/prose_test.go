package floors_test

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Comments are read by people whose first language may not be English. Pronouns that stand for a noun far away are what makes a comment
// hard to read, so their share is limited. The limits are those of a package: well-written Go has a median of 0.06 and a 90th percentile
// of 0.115. hooks/python/tests/test_prose.py reads the limits and the words from this file, for Python.
const (
	mostAtMedian   = 0.10
	mostAtNinetyth = 0.17
	fewestWords    = 14 // of a comment whose share counts
	fewestComments = 5  // of a package whose shares count
)

var pronouns = wordsOf("that those these this which what it its one ones none other others another such whose so there all as they them")

var bannedTurns = regexp.MustCompile(strings.Join([]string{
	`\b(?:is|are|was) none\b`, `\bof which\b`, `\balone\b`, `\bbeside\b`, `\bbehind\b`, `\bare others\b`, `\bis another\b`, `\banother one\b`, `\bas it should be\b`,
	`\bwhat is left\b`, `\bnothing can be said\b`, `\bby itself\b`, `\bsuch a one\b`, `\bof it all\b`, `\bwhere (?:it|there) is none\b`, `\bthose of\b.*\bthose of\b`,
	`\bthan those\b`, `\bsays of\b`,
}, "|"))

// allowedTurns are comments that may have a banned turn: a part of the comment, and the reason.
var allowedTurns = map[string]string{}

var (
	quoted = regexp.MustCompile(`"[^"]*"|` + "`[^`]*`")
	// named are links to other names, and the name that a doc comment begins with.
	named = regexp.MustCompile(`\[[\w.*]+\]|^\w+ `)
	word  = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
)

// A package keeps the share of pronouns in its comments below the limits, and no comment has a banned turn of phrase. Tests and generated
// files are left out, and so are words in quotes. Run with -v to list the comments with the largest shares.
func TestCommentsArePlain(t *testing.T) {
	shares, used := map[string][]share{}, map[string]bool{}
	for _, c := range comments(t, "../..") {
		text := quoted.ReplaceAllString(c.text, " ")
		dir := filepath.ToSlash(filepath.Dir(c.at))
		if turn := bannedTurns.FindString(named.ReplaceAllString(text, " ")); turn != "" && !allowed(c.text, used) {
			t.Errorf("%s: %q in: %s", c.at, turn, c.text)
		}
		if words := word.FindAllString(text, -1); len(words) >= fewestWords {
			shares[dir] = append(shares[dir], share{shareOf(words), c})
		}
	}
	for part := range allowedTurns {
		if !used[part] {
			t.Errorf("no comment with a banned turn has %q", part)
		}
	}
	for dir, all := range shares {
		slices.SortFunc(all, func(a, b share) int { return cmp.Compare(b.of, a.of) })
		n := len(all)
		median, ninetyth := (all[(n-1)/2].of+all[n/2].of)/2, all[n-1-int(0.9*float64(n-1))].of
		if n < fewestComments || median <= mostAtMedian && ninetyth <= mostAtNinetyth {
			continue
		}
		t.Errorf("%s: of %d comments the median share of pronouns is %.3f and the 90th percentile %.3f, and may be %g and %g", dir, n, median, ninetyth, mostAtMedian, mostAtNinetyth)
		for _, s := range all[:min(n, 3+n/4)] {
			t.Logf("%.2f %s: %s", s.of, s.comment.at, s.comment.text)
		}
	}
}

// share is a comment with its share of pronouns.
type share struct {
	of      float64
	comment comment
}

func shareOf(words []string) float64 {
	n := 0
	for _, w := range words {
		if pronouns[strings.ToLower(w)] {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

func wordsOf(text string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		all[w] = true
	}
	return all
}

// allowed reports whether a comment stands in allowedTurns, and marks its line as used.
func allowed(text string, used map[string]bool) bool {
	for part := range allowedTurns {
		if strings.Contains(text, part) {
			used[part] = true
			return true
		}
	}
	return false
}

// comment is a comment with its place, FILE:LINE below the root.
type comment struct {
	at, text string
}

// comments are all comments of the Go files below a folder, in the order of the files.
func comments(t *testing.T, root string) []comment {
	var all []comment
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root, d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			if strings.Contains(text, "DO NOT EDIT") {
				return nil
			}
			if text != "" {
				all = append(all, comment{fmt.Sprintf("%s:%d", filepath.ToSlash(name), files.Position(group.Pos()).Line), text})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("%d comments", len(all))
	}
	return all
}
