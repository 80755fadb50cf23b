// Package health looks at what a run needs before anything runs: the machine, the Python that transformers runs in, the
// files and values of a model directory, the ids of an input, the room on a disk. What it finds are lines: ok, a warning, an
// error, or skipped, each with a next step.
//
// Its opinions: an error is what makes a run fail or its result worthless; a warning is what a person should know and may
// have wanted; whatever a file or a program says is printed as one line of harmless characters. Nothing is repaired and
// nothing is written. Values are sampled unless all are asked for, and the line says so: a single bad element of a large
// weight is found by reading all of them and in no other way.
package health

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/internal/amount"
)

// Status says how serious a line is.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Error   Status = "error"
	Skipped Status = "skipped" // it was not looked at
)

// Line is one thing that was looked at.
type Line struct {
	Section string `json:"section"`
	Status  Status `json:"status"`
	What    string `json:"what"`
	Hint    string `json:"hint,omitempty"` // the next step, or empty

	// Command is the command at the end of the hint, as words, printed for copying.
	Command []string `json:"-"`
}

// Check looks at one subject and adds its lines to a section. It stops early, with the lines so far, when ctx is done.
type Check struct {
	Section string
	Run     func(ctx context.Context, s *Section)
}

// Run runs the checks in order and returns their lines. before, which may be nil, is told the section of each check before
// it runs: some take seconds. The error is that of ctx.
func Run(ctx context.Context, checks []Check, before func(section string)) ([]Line, error) {
	var lines []Line
	for _, c := range checks {
		if before != nil {
			before(c.Section)
		}
		s := Section{Name: c.Section}
		c.Run(ctx, &s)
		if err := ctx.Err(); err != nil {
			return lines, err
		}
		lines = append(lines, s.Lines...)
	}
	return lines, nil
}

// Section collects the lines about one subject in order.
type Section struct {
	Name  string
	Lines []Line
}

// OK adds a line about something in order.
func (s *Section) OK(format string, args ...any) {
	s.add(OK, "", fmt.Sprintf(format, args...))
}

// Warn adds a warning with its next step.
func (s *Section) Warn(hint, format string, args ...any) {
	s.add(Warning, hint, fmt.Sprintf(format, args...))
}

// warnCommand adds a warning whose next step is a command, by its words.
func (s *Section) warnCommand(hint string, command []string, format string, args ...any) {
	s.Warn(hint+strings.Join(command, " "), format, args...)
	s.Lines[len(s.Lines)-1].Command = command
}

// Fail adds an error with its next step.
func (s *Section) Fail(hint, format string, args ...any) {
	s.add(Error, hint, fmt.Sprintf(format, args...))
}

// Skip adds a line about something that was not looked at, with a hint how to look at it.
func (s *Section) Skip(hint, format string, args ...any) {
	s.add(Skipped, hint, fmt.Sprintf(format, args...))
}

func (s *Section) add(status Status, hint, what string) {
	s.Lines = append(s.Lines, Line{Section: s.Name, Status: status, What: oneLine(what), Hint: oneLine(hint)})
}

// maxText bounds one text of a line, in bytes: names in a hostile file may have megabytes.
const maxText = 2000

// oneLine makes text that comes from files and programs safe to print: line breaks become "; ", what does not print
// becomes its escape, and a very long text ends in "...".
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		switch {
		case b.Len() > maxText:
			return b.String() + "..."
		case r == '\n':
			b.WriteString("; ")
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// few are the first names of a list, and how many there are more.
func few(names []string) string { return amount.Some(names, 3) }
