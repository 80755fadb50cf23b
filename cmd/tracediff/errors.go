package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/order"
)

// hintError is an error with a next step for the person who meets it.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

// hinted attaches a next step to an error; nil stays nil.
func hinted(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hintError{err, hint}
}

// alsoError is an error beside which another thing failed. The first one decides on the hint.
type alsoError struct {
	error
	also error
}

func (e alsoError) Error() string { return e.error.Error() + "; and " + e.also.Error() }
func (e alsoError) Unwrap() error { return e.error }

// also attaches what failed beside err; where one of the two is nil, it is the other.
func also(err, second error) error {
	if err == nil || second == nil {
		return cmp.Or(err, second)
	}
	return alsoError{err, second}
}

// printError prints an error in two lines: what and why, and what to do.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "tracediff: %s\n", harmless(oneLine(err.Error())))
	fmt.Fprintf(w, "hint: %s\n", harmless(oneLine(hintFor(err))))
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
		return hinted(errors.New("interrupted"), "nothing was decided; the same command starts again")
	}
	return err
}

// hintFor returns the next step of an error: the one attached to it, or what usually is behind its kind.
func hintFor(err error) string {
	var h hintError
	var own interface{ Hint() string }
	var file *checkpoint.FileError
	var unsuitable *compare.UnsuitableError
	var unusable *files.Error
	switch {
	case errors.As(err, &unusable) && unusable.Next != "":
		return unusable.Next
	case systemHint(err) != "":
		return systemHint(err)
	case errors.As(err, &h):
		return h.hint
	case errors.As(err, &own):
		return own.Hint()
	case errors.As(err, &unsuitable):
		return unsuitable.Hint
	case errors.As(err, &file):
		return "the file may have been cut short on its way (compare its size with the original's), or hold types that are not read; float32, bfloat16 and float16 are"
	case errors.Is(err, order.ErrModelType):
		return "the model's family has to be described in TENSOR_ORDER; Gemma 1, 2, 3 and 3n, Llama, Qwen2 and Qwen3 are"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path; --model wants a directory with config.json and model.safetensors"
	}
	return generalHint
}

// systemHint is the next step after what the system refused, where that says more than what was being done.
func systemHint(err error) string {
	for _, s := range []struct {
		is   error
		hint string
	}{
		{syscall.ENOSPC, "the disk is full: make room on it, or name a place on another one (tracediff doctor says how much traces take)"},
		{syscall.EDQUOT, "your share of the disk is used up: make room, or name a place on another disk"},
		{syscall.EROFS, "the file system can only be read: name a place on another one"},
		{syscall.ENOTDIR, "a part of the path is a file and not a folder: check the path"},
		{syscall.EISDIR, "it is a folder: name a file in it"},
		{syscall.EMFILE, "too many files are open: raise the limit of the shell, ulimit -n"},
		{syscall.EIO, "the disk, or the network behind it, fails: name a place on another one"},
		{syscall.EPIPE, "what reads from it has ended: let it read to the end"},
		{syscall.ELOOP, "the links lead in a circle: name the file itself"},
		{syscall.ENAMETOOLONG, "the name is longer than the file system allows: choose a shorter one"},
		{fs.ErrPermission, "the user who runs tracediff may not do that there: look at the permissions (ls -l), or name another place"},
	} {
		if errors.Is(err, s.is) {
			return s.hint
		}
	}
	return ""
}

// generalHint is for errors that say themselves what is wanted.
const generalHint = "tracediff COMMAND --help says what each flag wants, with examples; tracediff doctor looks at the machine and the model"
