// Package hint attaches to an error the next step of the person who meets it.
package hint

import (
	"cmp"
	"errors"
)

type hinted struct {
	error
	next string
}

func (e hinted) Unwrap() error { return e.error }

// Add attaches a next step to an error; nil stays nil.
func Add(err error, next string) error {
	if err == nil {
		return nil
	}
	return hinted{err, next}
}

// Default attaches a next step to an error that has none.
func Default(err error, next string) error {
	if _, has := Of(err); has {
		return err
	}
	return Add(err, next)
}

// Of returns the next step that was attached to an error last; false where none was.
func Of(err error) (next string, ok bool) {
	var h hinted
	if errors.As(err, &h) {
		return h.next, true
	}
	return "", false
}

// withSecond is an error with a second failure. The first error decides the hint.
type withSecond struct {
	error
	second error
}

func (e withSecond) Error() string { return e.error.Error() + "; and " + e.second.Error() }
func (e withSecond) Unwrap() error { return e.error }

// Also attaches a second failure to err. If one error is nil, it returns the non-nil error.
func Also(err, second error) error {
	if err == nil || second == nil {
		return cmp.Or(err, second)
	}
	return withSecond{err, second}
}
