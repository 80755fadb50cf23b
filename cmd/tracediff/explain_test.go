package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/internal/plain"
)

// Each mistake of the page is explained by its name, whole and on a page of normal width.
func TestExplainHasEveryMistake(t *testing.T) {
	for _, s := range docs.Mistakes() {
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "explain", s.Anchor}, nil, &out, &errOut); code != exitMatch || errOut.Len() > 0 {
			t.Fatalf("%s: exit status %d: %s", s.Anchor, code, errOut.String())
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, item := range s.Items {
			if want := item.Name + " " + strings.Join(strings.Fields(docs.Plain(item.Text)), " "); !strings.Contains(text, want) {
				t.Errorf("%s does not have %q", s.Anchor, want)
			}
		}
		for line := range strings.Lines(out.String()) {
			words := strings.Fields(line)
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > plain.Columns && len(words) > 1 {
				t.Errorf("%s: %d columns: %s", s.Anchor, n, line)
			}
		}
	}
}

// The kind of a mistake, which JSON reports have, has its page; a kind with several pages has them in the hint.
func TestExplainTakesKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"mask.window": "docs/mistakes.md#window-size", "epsilon.after-root": "docs/mistakes.md#", "step.left-out": "hint: tracediff explain takes one of attention-soft-cap, attention-scale",
		"mask.causal": "no page explains mistakes of the kind mask.causal", "mask.wimdow": "hint: ",
	} {
		var out, errOut bytes.Buffer
		code := run([]string{"tracediff", "explain", kind}, nil, &out, &errOut)
		if explained := strings.HasPrefix(want, "docs"); explained != (code == exitMatch) || !strings.Contains(out.String()+errOut.String(), want) {
			t.Errorf("%s: exit status %d, want %q\n%s%s", kind, code, want, out.String(), errOut.String())
		}
	}
}

// A name that is no mistake is unusable input, and the hint has three names that are, if a name is near.
func TestExplainKnowsTheNearest(t *testing.T) {
	three := regexp.MustCompile(`^hint: the nearest are ([a-z0-9-]+), ([a-z0-9-]+), ([a-z0-9-]+); `)
	for name, first := range map[string]string{
		"epsilom": "epsilon", "rotary-pair": "rotary-pairs", "bias": "missing-bias", "gelu": "exact-gelu", "windw": "window-size",
		"docs/mistakes.md#mask-valve": "mask-value", "tokenizer": "token-ids",
		"softcap": "attention-soft-cap", "Soft Cap": "attention-soft-cap", "window_size": "window-size",
		"theta": "rotary-base", "rope_theta": "rotary-base", "rms_norm_eps": "epsilon", "sliding_window": "window-size", "": "", "\x1b[31m": "", "foo": "", strings.Repeat("x", 1000): "",
	} {
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "explain", name}, nil, &out, &errOut); code != exitUnusable || out.Len() > 0 {
			t.Errorf("%q: exit status %d, %q", name, code, out.String())
		}
		_, advice, _ := strings.Cut(errOut.String(), "\n")
		if first == "" {
			if advice != "hint: tracediff explain lists all\n" {
				t.Errorf("%q: %s", name, errOut.String())
			}
			continue
		}
		m := three.FindStringSubmatch(advice)
		if m == nil {
			t.Fatalf("%q: %s", name, errOut.String())
		}
		if m[1] != first {
			t.Errorf("%q: the nearest are %q, want %s first", name, m[1:], first)
		}
		for _, anchor := range m[1:] {
			if _, ok := docs.Mistake(anchor); !ok {
				t.Errorf("%q: there is no %s", name, anchor)
			}
		}
	}
}
