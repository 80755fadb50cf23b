package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/watch"
)

// tree makes files and returns their folder, without links.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range files {
		write(t, filepath.Join(dir, name), "first\n")
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666) // a file that is there is never empty meanwhile
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	must(t, f.Close())
}

const (
	// silence is long enough for what would be told to be told.
	silence = 4 * watch.Quiet
	// attempts is how often a case is tried on a machine that is too busy for it.
	attempts = 20
)

// calm reports whether this process was never kept waiting for so long that the watcher may take what was done as two changes.
func calm(do func()) bool {
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		for last, going := time.Now(), true; going; last = time.Now() {
			select {
			case <-stop:
				going = false
			case <-time.After(time.Millisecond):
			}
			most = max(most, time.Since(last))
		}
		longest <- most
	}()
	do()
	close(stop)
	return <-longest < watch.Quiet/2
}

// told is what is told of an action until nothing more is.
func told(t *testing.T, do func(t *testing.T, dir string)) (got []string) {
	t.Helper()
	dir := tree(t, "a.c", "sub/b.c", ".git/HEAD", "build/x.h", "traces/a.txt", "named/local.safetensors")
	src := filepath.Join(dir, "src")
	must(t, os.Mkdir(src, 0o777))
	for _, name := range []string{"a.c", "sub", ".git", "build", "traces"} {
		must(t, os.Rename(filepath.Join(dir, name), filepath.Join(src, name)))
	}
	w, err := watch.New([]string{src, filepath.Join(dir, "named/local.safetensors")}, []string{filepath.Join(src, "traces"), filepath.Join(src, "report.json")})
	must(t, err)
	defer func() { must(t, w.Close()) }()
	must(t, os.Symlink("../named", filepath.Join(src, "named")))
	do(t, src)
	for {
		select {
		case paths := <-w.Changes:
			for _, path := range paths {
				rel, err := filepath.Rel(src, path)
				must(t, err)
				if rel == "../named/local.safetensors" {
					rel = rel[3:]
				}
				got = append(got, rel)
			}
		case <-time.After(silence):
			return got
		}
	}
}

// What is told of an action, by names below the folder. Nothing else is told after it.
func TestChanges(t *testing.T) {
	for _, test := range []struct {
		why  string
		do   func(t *testing.T, dir string)
		want []string
	}{
		{"a file is written", func(t *testing.T, dir string) { write(t, dir+"/a.c", "second\n") }, []string{"a.c"}},
		{"two at once are one change", func(t *testing.T, dir string) {
			write(t, dir+"/a.c", "second\n")
			write(t, dir+"/sub/b.c", "second\n")
		}, []string{"a.c", "sub/b.c"}},
		{"an editor writes another file and renames it", func(t *testing.T, dir string) {
			write(t, dir+"/a.c.tmp", "second\n")
			must(t, os.Rename(dir+"/a.c.tmp", dir+"/a.c"))
		}, []string{"a.c"}},
		{"an editor keeps the old one under another name", func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/a.c", dir+"/a.c~"))
			write(t, dir+"/a.c", "second\n")
			must(t, os.Remove(dir+"/a.c~"))
		}, []string{"a.c"}},
		{"a new file", func(t *testing.T, dir string) { write(t, dir+"/new.c", "x") }, []string{"new.c"}},
		{"a new folder, and a file in it", func(t *testing.T, dir string) { write(t, dir+"/more/deep/new.c", "x") }, []string{"more/deep/new.c"}},
		{"a file is removed", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/a.c")) }, []string{"a.c"}},
		{"a change of permissions is none", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/a.c", 0o600)) }, nil},
		{"version control", func(t *testing.T, dir string) { write(t, dir+"/.git/index", "x") }, nil},
		{"a new hidden folder", func(t *testing.T, dir string) { write(t, dir+"/.cache/x", "x") }, nil},
		{"a folder of outputs", func(t *testing.T, dir string) { write(t, dir+"/build/config.h", "x") }, nil},
		{"an object file", func(t *testing.T, dir string) { write(t, dir+"/a.o", "x") }, nil},
		{"a program", func(t *testing.T, dir string) { write(t, dir+"/port", "\x7fELF\x00\x00") }, nil},
		{"a trace", func(t *testing.T, dir string) { write(t, dir+"/sub/local.safetensors", "x") }, nil},
		{"an ignored folder", func(t *testing.T, dir string) { write(t, dir+"/traces/settings.json", "x") }, nil},
		{"an ignored file", func(t *testing.T, dir string) { write(t, dir+"/report.json", "x") }, nil},
		{"what lies beside a named file", func(t *testing.T, dir string) { write(t, dir+"/named/other.bin", "x") }, nil},
		{"a named file, whatever it is", func(t *testing.T, dir string) { write(t, dir+"/named/local.safetensors", "\x00") }, []string{"named/local.safetensors"}},
		{"a named file with the content that it had", func(t *testing.T, dir string) { write(t, dir+"/named/local.safetensors", "first\n") }, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			var got []string
			for range attempts {
				if calm(func() { got = told(t, test.do) }) || slices.Equal(got, test.want) {
					break
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A folder that is removed and made again, as by a change of branches, is watched as before.
func TestFolderMadeAnew(t *testing.T) {
	dir := tree(t, "sub/deep/a.c")
	w, err := watch.New([]string{dir}, nil)
	must(t, err)
	defer func() { must(t, w.Close()) }()
	must(t, os.RemoveAll(dir+"/sub"))
	write(t, dir+"/sub/deep/a.c", "second\n")
	for _, text := range []string{"third\n", "fourth\n"} {
		if got := <-w.Changes; !slices.Equal(got, []string{dir + "/sub/deep/a.c"}) {
			t.Errorf("%q", got)
		}
		write(t, dir+"/sub/deep/a.c", text)
	}
}

// The same content again is no change: a build that writes a header anew would go on for ever.
func TestTheSameContentIsNoChange(t *testing.T) {
	dir := tree(t, "a.h")
	w, err := watch.New([]string{dir}, nil)
	must(t, err)
	defer func() { must(t, w.Close()) }()
	write(t, dir+"/a.h", "second\n")
	if got := <-w.Changes; len(got) != 1 {
		t.Errorf("%q", got)
	}
	write(t, dir+"/a.h", "second\n")
	select {
	case got := <-w.Changes:
		t.Errorf("%q", got)
	case <-time.After(silence):
	}
}

// Nothing that happens while nobody listens is lost.
func TestChangesWait(t *testing.T) {
	dir := tree(t, "a.c", "b.c")
	w, err := watch.New([]string{dir}, nil)
	must(t, err)
	defer func() { must(t, w.Close()) }()
	write(t, dir+"/a.c", "second\n")
	time.Sleep(silence)
	write(t, dir+"/b.c", "second\n")
	time.Sleep(silence)
	var got []string
	for len(got) < 2 {
		select {
		case paths := <-w.Changes:
			got = append(got, paths...)
		case <-time.After(time.Minute):
			t.Fatalf("only %q", got)
		}
	}
	if want := []string{dir + "/a.c", dir + "/b.c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTooManyFolders(t *testing.T) {
	dir := t.TempDir()
	for n := range 2001 {
		must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(n)), 0o777))
	}
	w, err := watch.New([]string{dir}, nil)
	if err == nil {
		must(t, w.Close())
		t.Fatal("no error")
	}
	if _, ok := err.(interface{ Unwrap() []error }); !ok || w != nil {
		t.Errorf("%v", err)
	}
}
