//go:build !unix

package main

// signals does nothing: the screen is drawn at the next change.
func (s *screen) signals() (stop func()) { return func() {} }
