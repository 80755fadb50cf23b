package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

const explainName = "explain"

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      explainName,
		Usage:     "explain a mistake that a report names: numbers, cause and fix",
		ArgsUsage: "[NAME]",
		Description: `Prints a section of docs/mistakes.md, which is embedded in the program: numbers, cause, fix, and the fix for a port in PyTorch, C or
MLX. NAME is what a report has after "see", whole or from the # on, or the kind of a mistake, "mistake.kind" of a JSON report. Without
NAME the names are listed.

Exit status: 0 it is explained, 2 there is no such name.

Examples:
  tracediff explain epsilon
  tracediff explain docs/mistakes.md#rotary-pairs
  tracediff explain`,
		Action: func(c *cli.Context) error {
			switch c.NArg() {
			case 0:
				listMistakes(c.App.Writer)
				return nil
			case 1:
				return explain(c.App.Writer, c.Args().First())
			}
			return hint.Add(fmt.Errorf("explain takes one name, not %d", c.NArg()), "tracediff explain lists the names")
		},
	}
}

// explain prints the section of a name.
func explain(w io.Writer, name string) error {
	s, ok := docs.Mistake(name)
	pages, kind := diagnose.Anchors(diagnose.Kind(name))
	if !ok && len(pages) == 1 {
		s, ok = docs.Mistake(pages[0])
	}
	if !ok {
		next := "tracediff explain lists all"
		switch {
		case len(pages) > 1:
			return hint.Add(fmt.Errorf("mistakes of the kind %s have %d pages", name, len(pages)), "tracediff explain takes one of "+strings.Join(pages, ", "))
		case kind:
			return hint.Add(fmt.Errorf("no page explains mistakes of the kind %s", name), next)
		}
		if near := nearestMistakes(name, 3); len(near) > 0 {
			next = fmt.Sprintf("the nearest are %s; %s", strings.Join(near, ", "), next)
		}
		return hint.Add(fmt.Errorf("there is no mistake with the name %q", name), next)
	}
	fmt.Fprintf(w, "%s\n%s#%s\n", s.Title, docs.MistakesPage, s.Anchor)
	table := false
	for line := range strings.Lines(s.Intro) {
		if inside := strings.HasPrefix(line, "|"); !inside || !table {
			table = inside
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, plain.Wrap(docs.Plain(strings.TrimSuffix(line, "\n")), plain.Columns, 0))
	}
	for _, item := range s.Items {
		fmt.Fprintf(w, "\n%s\n%s\n", item.Name, plain.Wrap("  "+docs.Plain(item.Text), plain.Columns, 2))
	}
	if s.Group == "" {
		fmt.Fprintln(w)
		mistakesOf(w, s.Title)
	}
	return nil
}

// listMistakes prints the names of all mistakes by their groups.
func listMistakes(w io.Writer) {
	for i, s := range docs.Mistakes() {
		if s.Group != "" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s)\n", s.Title, s.Anchor)
		mistakesOf(w, s.Title)
	}
}

// mistakesOf prints the names of the mistakes in a group.
func mistakesOf(w io.Writer, group string) {
	for _, s := range docs.Mistakes() {
		if s.Group == group {
			fmt.Fprintf(w, "  %s\n", s.Anchor)
		}
	}
}

// nearestMistakes returns the n names nearest to an unknown name, or nil if none is near. First come names that contain the unknown name or have a word of nearly the same
// spelling, and names whose field of config.json contains it; then names whose section contains the unknown name; then the rest. Within a class the
// edit distance decides.
func nearestMistakes(name string, n int) []string {
	name = docs.Anchor(strings.TrimPrefix(strings.TrimPrefix(name, docs.MistakesPage), "#"))
	type candidate struct {
		anchor     string
		class, far int
	}
	var all []candidate
	for _, s := range docs.Mistakes() {
		c := candidate{anchor: s.Anchor, class: 2, far: distance(name, s.Anchor)}
		for _, word := range append(strings.Split(s.Anchor, "-"), s.Anchor) {
			if nearest(name, []string{word}) != "" || len(name) > 2 && strings.HasPrefix(word, name) {
				c.class, c.far = 0, min(c.far, distance(name, word))
			}
		}
		if joined := letters.Replace(name); len(joined) > 2 && strings.Contains(letters.Replace(s.Anchor), joined) {
			c.class, c.far = 0, 0
		} else if len(name) > 2 && slices.ContainsFunc(s.Items, func(i docs.Item) bool { return i.Name == "Fields" && strings.Contains(i.Text, name) }) {
			c.class, c.far = 0, min(c.far, 1)
		}
		if c.class > 0 && mentions(s, strings.ReplaceAll(name, "-", " ")) {
			c.class = 1
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(a.class-b.class, a.far-b.far) })
	if all[0].class == 2 {
		return nil
	}
	var anchors []string
	for _, c := range all[:min(n, len(all))] {
		anchors = append(anchors, c.anchor)
	}
	return anchors
}

// letters removes separators that people write differently: softcap, soft-cap and soft_cap are one name.
var letters = strings.NewReplacer("-", "", "_", "")

// mentions reports whether the text of a section contains words.
func mentions(s docs.Section, words string) bool {
	return len(words) > 2 && slices.ContainsFunc(s.Items, func(i docs.Item) bool { return strings.Contains(strings.ToLower(docs.Plain(i.Text)), words) })
}
