package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/hint"
)

// On a small screen the end of what a failed command printed is shown, above the hint that speaks of it.
func TestScreenOfAFailedCommand(t *testing.T) {
	p := &pass{number: 1, err: hint.Add(errors.New("exit status 1"), "the command's output is above")}
	for i := range 12 {
		p.said = append(p.said, fmt.Sprintf("line %d", i))
	}
	p.said = append(p.said, "port.c:3: error")
	s := &screen{title: "tracediff watch: src", last: p}
	for rows := 6; rows <= 30; rows++ {
		lines := s.lines(60, rows)
		said, above := slices.Index(lines, "port.c:3: error"), slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "hint: ") })
		if said < 0 || height(lines, 60) > rows {
			t.Errorf("%d rows:\n%s", rows, strings.Join(lines, "\n"))
		}
		if above >= 0 && above < said || above < 0 && rows > 8 {
			t.Errorf("%d rows, the hint is line %d:\n%s", rows, above, strings.Join(lines, "\n"))
		}
	}
}
