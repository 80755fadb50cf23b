package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

type reworded struct{ cause error }

func (reworded) Error() string   { return "a.npz is not there" }
func (e reworded) Unwrap() error { return e.cause }

func TestWords(t *testing.T) {
	missing := &fs.PathError{Op: "stat", Path: "a.npz", Err: fs.ErrNotExist}
	for _, c := range []struct {
		err  error
		want string
	}{
		{missing, "a.npz: file does not exist"},
		{fmt.Errorf("open trace: %w; there is an unfinished one", missing), "open trace: a.npz: file does not exist; there is an unfinished one"},
		{fmt.Errorf("a.npz: opening it: %w", missing), "a.npz: opening it: file does not exist"},
		{errors.New("stat a.npz: "), "stat a.npz: "},
		{reworded{missing}, "a.npz is not there"},
	} {
		if got := Words(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
