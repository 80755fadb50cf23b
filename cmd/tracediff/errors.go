package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
)

// printError prints an error in two lines: what and why, and what to do.
func printError(w io.Writer, err error) {
	text := fmt.Sprintf("tracediff: %s\nhint: %s\n", harmless(oneLine(err.Error())), harmless(oneLine(session.Hint(err))))
	if inActions() { // a name in it may look like a command of the runner
		text = report.Inert(text)
	}
	io.WriteString(w, text) //nolint:errcheck // there is no other place to say it
}

var (
	listBegins = regexp.MustCompile(`:\s*\n\s*`)
	nextLine   = regexp.MustCompile(`\s*\n\s*`)
)

// oneLine puts an error that is a list, or several errors, into one line.
func oneLine(text string) string {
	return nextLine.ReplaceAllString(listBegins.ReplaceAllString(strings.TrimSpace(text), ": "), "; ")
}

// harmless escapes what a terminal would act on: the name of a file may have anything in it.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// interrupted is the error of a run that a person stopped. What was being done says more than that a context was
// canceled, where it is known.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return hint.Add(errors.New("interrupted"), "nothing was decided; the same command starts again")
	}
	return err
}
