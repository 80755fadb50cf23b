// Package pickle reads Python pickles as data. It runs nothing and imports nothing: a pickle that names a function or a class gets
// what its [Owner] has for that name, and is refused where the owner has nothing.
//
// The result is a tree of nil, bool, int64, float64, string, []byte, [Blob], [*List], [Tuple], [*Dict] and whatever the owner makes.
// Long texts and bytes stay in the file. What a pickle builds takes at most 64 MiB, however short it is.
package pickle

import (
	"fmt"
	"io"
)

// maxBuilt is the limit of the estimated memory for the objects of one pickle, in bytes: some 70,000 tensors.
const maxBuilt = 64 << 20

// blobFrom is the length from which texts and bytes stay in the file.
const blobFrom = 4096

// List is a list, or a set, whose order is that of the pickle.
type List struct{ Items []any }

// Tuple is a tuple.
type Tuple []any

// Dict is a dictionary in the order of its insertions; a key may stand in it more than once, and the last one counts.
type Dict struct{ Keys, Values []any }

// Blob is a long text or a long run of bytes: where it lies in the file.
type Blob struct {
	At, Length int64
	Text       bool // UTF-8, not bytes
}

// Owner gives a pickle the little that it may name.
type Owner interface {
	// Global returns what a name stands for, or the error that refuses it.
	Global(module, name string) (any, error)
	// Call returns what a global gives for arguments: only values of Global and Call come as fn.
	Call(fn any, args Tuple) (any, error)
	// Build gives an object of Call its state, and returns it.
	Build(object, state any) (any, error)
	// Persistent returns what an id of a thing outside the pickle stands for.
	Persistent(id any) (any, error)
}

// RefusedError is a pickle that names something that its owner does not have.
type RefusedError struct{ Module, Name string }

// Error names it.
func (e *RefusedError) Error() string {
	what := e.Name
	if e.Module != "" {
		what = e.Module + "." + e.Name
	}
	if len(what) > 120 {
		what = what[:120] + "..."
	}
	return fmt.Sprintf("a pickle that calls %q: refused", what)
}

// Load reads the pickle that begins at byte at of the first size bytes of r. It returns its value and where it ends.
func Load(r io.ReaderAt, at, size int64, owner Owner) (value any, end int64, err error) {
	m := &machine{in: &stream{r: r, at: at, size: size}, owner: owner, memo: map[int64]any{}}
	value, err = m.run()
	return value, m.in.at, err
}
