package compare

import (
	"os"
	"slices"
)

// SameFile is what a result says of a trace that was compared with itself.
const SameFile = "both sides are the same file"

// same says that the two sides are one: one file, or two of one program that are equal in every tensor, of which one may be a copy. Such
// sides match whatever the port does. A port that is exact has another producer than its reference, and is not meant.
func (w *walker) same() {
	if w.o.Alone {
		return
	}
	l, r := &w.res.Local, &w.res.Reference
	switch {
	case sameFile(w.sides[local].trace.Path(), w.sides[reference].trace.Path()):
		w.res.Same = SameFile
	case !w.o.AB && l.Producer.Name != "" && l.Producer.Name == r.Producer.Name && l.Producer.Version == r.Producer.Version && len(w.res.Rows) > 0 && !slices.ContainsFunc(w.res.Rows, differs):
		w.res.Same = "both sides are of " + l.Producer.Name + " and equal in every tensor: one may be a copy of the other"
	default:
		return
	}
	text := w.res.Same + "; that they agree says nothing about a port"
	w.res.Notes = append([]string{text}, w.res.Notes...)
	if w.o.Parity {
		w.res.Incomplete = append(w.res.Incomplete, text)
	}
}

// sameFile reports whether two paths, with links followed, are of one file.
func sameFile(a, b string) bool {
	i, err := os.Stat(a)
	if err != nil {
		return false
	}
	j, err := os.Stat(b)
	return err == nil && os.SameFile(i, j)
}

// differs reports whether a row does not have the same numbers on both sides.
func differs(r Row) bool {
	m := r.Metrics
	return r.Verdict != Match || m == nil || m.Unequal > 0 || m.NonFinite > 0
}
