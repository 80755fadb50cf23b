package notebook_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/notebook"
)

func digest(n int) [sha256.Size]byte { return sha256.Sum256(fmt.Append(nil, n)) }

// holds reports what a store has of one digest.
func holds(s *notebook.Store, n int) string {
	var got string
	if !s.Load(digest(n), &got) {
		return "nothing"
	}
	return got
}

func save(t *testing.T, s *notebook.Store) {
	t.Helper()
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
}

// What was kept of a subject is found again, of that subject alone.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	s := notebook.Open(dir, "a")
	s.Keep(digest(1), "one")
	s.Keep(digest(2), make(chan int)) // no JSON
	if got := holds(s, 1); got != "one" {
		t.Errorf("before it is saved: %s", got)
	}
	save(t, s)
	a, b := notebook.Open(dir, "a"), notebook.Open(dir, "b")
	if got := []string{holds(a, 1), holds(a, 2), holds(b, 1)}; fmt.Sprint(got) != "[one nothing nothing]" {
		t.Errorf("found: %q", got)
	}
	if a.Found() != 1 || b.Found() != 0 {
		t.Errorf("%d and %d were found", a.Found(), b.Found())
	}
	var number int
	if a.Load(digest(1), &number) {
		t.Error("a text was found as a number")
	}
}

// A file that is damaged, or is none, is nothing known, and is written again.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	s := notebook.Open(dir, "a")
	s.Keep(digest(1), "one")
	save(t, s)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	intact, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", "null", "[]", "{", `{"":1}`, string(intact[:len(intact)/2]), "\x00" + string(intact)} {
		if err := os.WriteFile(files[0], []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		s := notebook.Open(dir, "a")
		if got := holds(s, 1); got != "nothing" {
			t.Errorf("of %q %s was found", damaged, got)
		}
		s.Keep(digest(1), "again")
		save(t, s)
		if got := holds(notebook.Open(dir, "a"), 1); got != "again" {
			t.Errorf("after %q %s was found", damaged, got)
		}
	}
}

// A folder has the subjects that were written to last, and a file what the last run asked for, where there is too much.
func TestStoreOfTooMuch(t *testing.T) {
	dir := t.TempDir()
	const subjects = 20
	for n := range subjects {
		s := notebook.Open(dir, fmt.Sprint(n))
		s.Keep(digest(1), "one")
		save(t, s)
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 16 {
			t.Fatalf("%d files after %d subjects", len(files), n+1)
		}
		for _, f := range files { // as if each had been written an hour before the next
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(f, time.Time{}, info.ModTime().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, want := range map[int]string{0: "nothing", subjects - 16: "one", subjects - 1: "one"} {
		if got := holds(notebook.Open(dir, fmt.Sprint(n)), 1); got != want {
			t.Errorf("of subject %d %s was found, want %s", n, got, want)
		}
	}

	s := notebook.Open(dir, "many")
	for n := range 1<<15 - 1 {
		s.Keep(digest(n), "x")
	}
	save(t, s)
	s = notebook.Open(dir, "many")
	s.Keep(digest(-1), "new")
	s.Keep(digest(-2), "new")
	if got := holds(s, 7); got != "x" {
		t.Errorf("%s was found", got)
	}
	save(t, s)
	s = notebook.Open(dir, "many")
	if got := []string{holds(s, 7), holds(s, 8), holds(s, -1), holds(s, -2)}; fmt.Sprint(got) != "[x nothing new new]" {
		t.Errorf("found: %q", got)
	}
}
