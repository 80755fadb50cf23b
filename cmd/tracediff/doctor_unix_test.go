//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/health"
)

// A command in a hint is broken so that a shell reads it in one piece, and no line is wider than a page.
func TestCommandOfAHintCanBeCopied(t *testing.T) {
	for _, words := range [][]string{
		{"python3", "-m", "pip", "install", "torch==2.15.0"},
		{"python3", "-m", "pip", "install", "torch==2.15.0", "transformers==5.23.0", "tokenizers==0.23.3", "safetensors==0.8.0", "numpy==2.4.6"},
		{"'/opt/a b/bin/python3'", "-m", "pip", "install", "torch==2.15.0", "transformers==5.23.0", "tokenizers==0.23.3"},
	} {
		for _, before := range []string{"", "for --reference hf: ", "for a reference that was made by transformers, as all goldens are: "} {
			text := hintLines(health.Line{Hint: before + strings.Join(words, " "), Command: words}, 18)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			_, command, _ := strings.Cut(text, words[0])
			script := "printf '%s|' " + words[0] + command
			out, err := exec.Command("sh", "-c", script).Output()
			want := strings.ReplaceAll(strings.Join(words, "|"), "'", "") + "|"
			if err != nil || string(out) != want {
				t.Errorf("a shell reads %q of\n%s", out, text)
			}
		}
	}
}
