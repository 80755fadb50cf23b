package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/docs"
)

// The sections are those of the file, all of it, in its order.
func TestSectionsAreThePage(t *testing.T) {
	data, err := os.ReadFile("mistakes.md")
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "### ") {
			headings = append(headings, strings.TrimSpace(strings.TrimLeft(line, "#")))
		}
	}
	sections := docs.Mistakes()
	if len(sections) != len(headings) {
		t.Fatalf("%d sections of %d headings", len(sections), len(headings))
	}
	unwrapped := strings.Join(strings.Fields(string(data)), " ")
	for i, s := range sections {
		if s.Title != headings[i] {
			t.Errorf("section %d is %q, the page has %q", i, s.Title, headings[i])
		}
		found, ok := docs.Mistake("docs/mistakes.md#" + s.Anchor)
		if !ok || found.Title != s.Title {
			t.Errorf("#%s is %q", s.Anchor, found.Title)
		}
		for _, item := range s.Items {
			if !strings.Contains(unwrapped, "- **"+item.Name+"**: "+strings.Join(strings.Fields(item.Text), " ")) {
				t.Errorf("%s: the page does not have %s: %q", s.Anchor, item.Name, item.Text)
			}
		}
		if text := docs.Plain(s.Intro); strings.ContainsAny(text, "`[") {
			t.Errorf("%s: marks are left in %q", s.Anchor, text)
		}
	}
	for _, name := range []string{"", "#", "Epsilon", "norms "} {
		if s, ok := docs.Mistake(name); ok {
			t.Errorf("%q is %q", name, s.Title)
		}
	}
}

// Anchors that were published stay: reports that people have kept, and pages of others, point to them. A new one is added to the file.
func TestAnchorsStay(t *testing.T) {
	data, err := os.ReadFile("testdata/anchors.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, anchor := range strings.Fields(string(data)) {
		listed[anchor] = true
		if _, ok := docs.Mistake(anchor); !ok {
			t.Errorf("mistakes.md has no heading #%s any more", anchor)
		}
	}
	for _, s := range docs.Mistakes() {
		if !listed[s.Anchor] {
			t.Errorf("testdata/anchors.txt lacks %s", s.Anchor)
		}
	}
}

// A mistake that has a fix shows it in a port by PyTorch, in C and by MLX.
func TestEveryFixIsShownInThreePorts(t *testing.T) {
	shown := 0
	for _, s := range docs.Mistakes() {
		items := map[string]string{}
		for _, item := range s.Items {
			items[item.Name] = item.Text
		}
		if s.Group == "" || s.Group == "No mistake" { // where nothing is to be mended
			continue
		}
		shown++
		for _, port := range []string{"Fix", "PyTorch", "C", "MLX"} {
			if items[port] == "" {
				t.Errorf("%s has no %s", s.Anchor, port)
			}
		}
	}
	if shown < 60 {
		t.Errorf("%d mistakes", shown)
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]string{
		"use `a[b](c)` here":                "use a[b](c) here",
		"see [cache](#cache)":               "see cache",
		"see [layers](#window-size)":        "see layers (window-size)",
		"[arithmetic.md](arithmetic.md) is": "arithmetic.md is",
		"[wide](weights.md#a) and `b`":      "wide (docs/weights.md#a) and b",
		"":                                  "",
	} {
		if got := docs.Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if s := docs.Spans("a `b` c"); len(s) != 3 || s[0].Code || !s[1].Code || s[1].Text != "b" || s[2].Code {
		t.Errorf("%v", s)
	}
}
