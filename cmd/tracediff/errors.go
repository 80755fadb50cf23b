package main

import (
	"errors"
	"io/fs"

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
	return ""
}
