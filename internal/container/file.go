package container

import (
	"fmt"
	"io"

	"github.com/tracediff/tracediff/internal/hint"
)

// File is an open file of tensors, or a folder of them.
type File struct {
	Format  string // for people: "npz", "torch.save"
	Tensors []Tensor
	Notes   []string // what was left out or taken for something, a line each
	Order   bool     // the tensors stand in the order in which they were computed

	closers []io.Closer
}

// Note adds a remark.
func (f *File) Note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Own makes Close close c, too.
func (f *File) Own(c io.Closer) { f.closers = append(f.closers, c) }

// Close closes what the tensors are read from.
func (f *File) Close() error {
	var err error
	for _, c := range f.closers {
		err = hint.Also(err, c.Close())
	}
	f.closers = nil
	return err
}
