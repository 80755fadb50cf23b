package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/checkpoint"
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

// printError prints an error in two lines, what and why, and what to do. Only an error that is a list takes more.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "tracediff: %s\n", harmless(strings.TrimSpace(err.Error())))
	fmt.Fprintf(w, "hint: %s\n", harmless(hintFor(err)))
}

// harmless escapes what a terminal would act on: the name of a file may have anything in it.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
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
	switch {
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

// generalHint is for errors that say themselves what is wanted.
const generalHint = "tracediff COMMAND --help says what each flag wants, with examples; tracediff doctor looks at the machine and the model"
