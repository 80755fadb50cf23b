package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// printError prints an error in two lines: the error with its cause, and the next step.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "tracediff: %s\nhint: %s\n", plain.Text(oneLine(advice.Words(err))), plain.Text(oneLine(advice.Hint(err)))) //nolint:errcheck // there is no other place to say it
}

var (
	listBegins = regexp.MustCompile(`:\s*\n\s*`)
	nextLine   = regexp.MustCompile(`\s*\n\s*`)
)

// oneLine joins the lines of an error, such as a list or several errors.
func oneLine(text string) string {
	return nextLine.ReplaceAllString(listBegins.ReplaceAllString(strings.TrimSpace(text), ": "), "; ")
}

// interrupted is the error of a run that a person stopped. It replaces "context canceled"; a more specific error
// stays.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return hint.Add(errors.New("interrupted"), "there is no verdict; run the same command again")
	}
	return err
}
