// Package advice has the next step of a person who meets an error, whatever the error is of.
package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Hint returns the next step for an error: the hint attached to the error, or a hint for the usual cause of this
// kind of error.
func Hint(err error) string {
	next, attached := hint.Of(err)
	var own interface{ Hint() string }
	var file *checkpoint.FileError
	var unsuitable *compare.UnsuitableError
	var unusable *files.Error
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &unusable) && unusable.Next != "":
		return unusable.Next
	case systemHint(err) != "":
		return systemHint(err)
	case attached && next != "":
		return next
	case errors.As(err, &own) && own.Hint() != "":
		return own.Hint()
	case errors.As(err, &unsuitable) && unsuitable.Hint != "":
		return unsuitable.Hint
	case errors.As(err, &file):
		return "the file may be cut short (compare its size with the original's), or hold types that are not read; float32, bfloat16 and float16 are read"
	case errors.As(err, &syntax):
		return "the file is not valid JSON, or is cut short: copy it again from the original"
	case order.Undescribed(err):
		return "Gemma 1, 2, 3 and 3n, Llama, Qwen2 and Qwen3 have an order of their own; " + RecordHint
	case errors.Is(err, fs.ErrNotExist):
		return "check the path; --model wants a directory with config.json and model.safetensors"
	}
	return GeneralHint
}

// systemHint returns the next step for an error of the operating system. It returns "" if the error says enough.
func systemHint(err error) string {
	for _, s := range []struct {
		is   error
		next string
	}{
		{syscall.ENOSPC, "the disk is full: free some space, or name a place on another disk (tracediff doctor says how much space traces take)"},
		{syscall.EDQUOT, "your disk quota is used up: free some space, or name a place on another disk"},
		{syscall.EFBIG, "the file is larger than the system allows: raise the limit of the shell (ulimit -f unlimited), or name a place on another file system"},
		{syscall.EROFS, "the file system is read-only: name a place on another disk"},
		{syscall.ENOTDIR, "a part of the path is a file and not a folder: check the path"},
		{syscall.EISDIR, "it is a folder: name a file in it"},
		{syscall.EMFILE, "too many files are open: raise the limit of the shell, ulimit -n"},
		{syscall.EIO, "the disk or its network fails: name a place on another disk"},
		{syscall.EPIPE, "its reader has ended: let it read to the end"},
		{syscall.ELOOP, "the links form a loop: name the file itself"},
		{syscall.ENAMETOOLONG, "the name is longer than the file system allows: choose a shorter one"},
		{os.ErrDeadlineExceeded, "reading it does not end: write its contents to a file, and name that file"},
		{fs.ErrPermission, "the user who runs tracediff has no permission: check it (ls -l), or name another place"},
	} {
		if errors.Is(err, s.is) {
			return s.next
		}
	}
	return ""
}

// Words is the text of an error. It names a file that cannot be read without the system call that failed: "NAME: no such file or
// directory", not "stat NAME: no such file or directory". It names the file once.
func Words(err error) string {
	var system *fs.PathError
	if !errors.As(err, &system) {
		return err.Error()
	}
	before, after, found := strings.Cut(err.Error(), system.Error())
	if !found { // the error has words of its own
		return err.Error()
	}
	if !strings.HasPrefix(before, system.Path+": ") {
		before += system.Path + ": "
	}
	return before + system.Err.Error() + after
}

// GeneralHint is for errors that say themselves what is wanted.
const GeneralHint = "tracediff COMMAND --help says what each flag wants, with examples; tracediff doctor looks at the machine and the model"

// OnPath puts the path before an error that does not begin with it.
func OnPath(path string, err error) error {
	var own *files.Error
	if errors.As(err, &own) && own.Path == path {
		return err
	}
	if system, ok := err.(*fs.PathError); ok && system.Path == path { // whose path stands inside
		err = system.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// RecordHint is how a model that no order describes gets one.
const RecordHint = "its operations are recorded as transformers runs it: tracediff capture --side reference --reference hf --model DIR"
