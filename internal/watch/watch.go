// Package watch says when the sources of a program have changed.
//
// Editors write a new file, rename it over the old file, and touch several files for one save: a change is reported when nothing has
// happened for [Quiet]. Builds write into the folders of the sources: files that are not text, files in the usual folders of builds, and files with
// unchanged content are no change. New files and folders are watched at once. A file that the user names is watched in any case.
package watch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// Quiet is how long nothing may happen before a change is told, and longest how long it is held back at most.
	Quiet   = 100 * time.Millisecond
	longest = 2 * time.Second

	maxFolders = 2000    // a quarter of what Linux lets a user watch by default
	maxHashed  = 8 << 20 // of a larger file the size and the time of the last change stand for the content
	sniffed    = 8 << 10 // bytes in which what is no text has a zero
)

// skipped are folders in which builds, tools and version control keep things; hidden ones are skipped, too.
var skipped = []string{"node_modules", "__pycache__", "venv", "build", "dist", "target", "out", "bin", "obj", "CMakeFiles", "DerivedData"}

// outputs are the ends of names of what builds, editors and tracediff write.
var outputs = []string{".o", ".a", ".so", ".d", ".obj", ".pyc", ".safetensors", ".part", ".log", ".swp", ".swx", ".swo", ".tmp", ".bak", "~"}

// TooManyError is more folders than are watched.
type TooManyError struct{ Path string }

// Error names the folder and the limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s has more than %d folders", e.Path, maxFolders)
}

// Watcher tells changes of files and of what is in folders.
type Watcher struct {
	// Changes has the paths of each change, sorted. It is never closed.
	Changes <-chan []string
	// Folders is how many are watched at the start.
	Folders int

	notify  *fsnotify.Watcher
	roots   []string             // folders, all below which is watched
	named   map[string]bool      // files that were named
	ignored []string             // paths without reports, with all below them
	folders map[string]bool      // that are watched
	known   map[string]bool      // files that are there
	own     []fs.FileInfo        // files without reports, by any name
	seen    map[string]signature // content of files that were looked at
	stop    chan struct{}
	done    chan struct{}
}

// signature is what a file had in it.
type signature [sha256.Size]byte

// New watches files and folders, apart from ignored paths and from own files, such as the file of standard output. The caller closes the
// watcher.
func New(paths, ignored []string, own ...fs.FileInfo) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	changes := make(chan []string)
	w := &Watcher{
		Changes: changes, notify: notify, named: map[string]bool{}, folders: map[string]bool{}, known: map[string]bool{}, seen: map[string]signature{},
		own: own, stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := w.open(paths, ignored); err != nil {
		return nil, errors.Join(err, notify.Close())
	}
	w.Folders = len(w.folders)
	go w.run(changes)
	return w, nil
}

// Close ends the watching.
func (w *Watcher) Close() error {
	close(w.stop)
	<-w.done
	return w.notify.Close()
}

func (w *Watcher) open(paths, ignored []string) error {
	for _, path := range ignored {
		real, err := resolved(path)
		if err != nil {
			return err
		}
		w.ignored = append(w.ignored, real)
	}
	for _, path := range paths {
		real, err := resolved(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(real)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			w.roots = append(w.roots, real)
			files, failed := w.add(real)
			for _, file := range files {
				w.known[file] = true
			}
			err = failed
		default:
			w.named[real] = true
			w.fresh(real)
			err = w.watchFolder(filepath.Dir(real)) // an editor puts another file in its place
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolved is a path without links, whether or not something is there.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(real, filepath.Base(path)), nil
	}
	return path, nil
}

// add watches a folder and its subfolders, and returns their files.
func (w *Watcher) add(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == folder:
			return err
		case err != nil: // it is gone again, or nobody may look into it
			return nil
		case !d.IsDir():
			files = append(files, path)
			return nil
		case path != folder && w.skips(path), w.ignores(path):
			return filepath.SkipDir
		}
		return w.watchFolder(path)
	})
	return files, err
}

func (w *Watcher) watchFolder(path string) error {
	if w.folders[path] {
		return nil
	}
	if len(w.folders) >= maxFolders {
		root := path
		for _, r := range w.roots {
			if below(path, r) {
				root = r
			}
		}
		return &TooManyError{root}
	}
	if err := w.notify.Add(path); err != nil {
		return fmt.Errorf("watching %s: %w", path, err)
	}
	w.folders[path] = true
	return nil
}

// skips reports whether a folder is one that no sources are in.
func (w *Watcher) skips(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "cmake-build-") || slices.Contains(skipped, name)
}

func (w *Watcher) ignores(path string) bool {
	return slices.ContainsFunc(w.ignored, func(i string) bool { return below(path, i) })
}

// below reports whether a path is a folder, or in it.
func below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// run collects events until nothing has happened for a while. What they come to is looked at then: a file that is being written is
// empty for a moment.
func (w *Watcher) run(changes chan<- []string) {
	defer close(w.done)
	touched, told := map[string]bool{}, map[string]bool{}
	var first time.Time
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		var out chan<- []string
		if len(told) > 0 {
			out = changes
		}
		select {
		case <-w.stop:
			return
		case e := <-w.notify.Events:
			if e.Op == fsnotify.Chmod || !w.counts(e.Name) {
				continue
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				w.forget(e.Name)
			}
			if len(touched) == 0 {
				first = time.Now()
			}
			touched[e.Name] = true
			timer.Reset(min(Quiet, max(time.Until(first.Add(longest)), 0)))
		case <-w.notify.Errors: // events were lost: something has changed
			told["many files"] = true
		case <-timer.C:
			for path := range touched {
				for _, changed := range w.changed(path) {
					told[changed] = true
				}
			}
			clear(touched)
		case out <- slices.Sorted(maps.Keys(told)):
			clear(told)
		}
	}
}

// forget removes a deleted folder and its subfolders from the list. A folder of the same name is watched anew.
func (w *Watcher) forget(folder string) {
	if w.folders[folder] {
		maps.DeleteFunc(w.folders, func(path string, _ bool) bool { return below(path, folder) })
	}
}

// counts reports whether changes of a path may be reported.
func (w *Watcher) counts(path string) bool {
	return w.named[path] || w.inRoot(path) && !w.ignores(path) && !isOutput(path)
}

// changed returns the files with new content at a path with an event.
func (w *Watcher) changed(path string) []string {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		known := w.known[path]
		delete(w.known, path)
		delete(w.seen, path)
		if !known {
			return nil
		}
		return []string{path}
	case info.IsDir():
		return w.addNew(path)
	case slices.ContainsFunc(w.own, func(o fs.FileInfo) bool { return os.SameFile(o, info) }):
		return nil
	}
	return w.fresh(path)
}

// addNew watches a new folder and returns the files in it. Beyond the limit a folder is not watched; only its creation is reported.
func (w *Watcher) addNew(folder string) []string {
	if w.skips(folder) || w.folders[folder] {
		return nil
	}
	files, err := w.add(folder)
	if err != nil {
		return []string{folder}
	}
	var changed []string
	for _, path := range files {
		if w.counts(path) {
			changed = append(changed, w.fresh(path)...)
		}
	}
	return changed
}

// inRoot reports whether a path is in a folder that was named.
func (w *Watcher) inRoot(path string) bool {
	return slices.ContainsFunc(w.roots, func(r string) bool { return below(path, r) })
}

// isOutput reports whether the name is that of what a build, an editor or tracediff writes.
func isOutput(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") ||
		slices.ContainsFunc(outputs, func(end string) bool { return strings.HasSuffix(name, end) })
}

// fresh returns a path whose file counts and has changed since the last look.
func (w *Watcher) fresh(path string) []string {
	got, text, err := sign(path)
	if err != nil || !text && !w.named[path] {
		return nil
	}
	before, known := w.seen[path]
	w.seen[path], w.known[path] = got, true
	if known && before == got {
		return nil
	}
	return []string{path}
}

// sign is what a file has in it, and whether that is text.
func sign(path string) (s signature, text bool, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = errors.New("not a regular file")
	}
	if err != nil {
		return s, false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return s, false, err
	}
	head = head[:n]
	h := sha256.New()
	h.Write(head)
	fmt.Fprint(h, info.Size())
	if info.Size() > maxHashed {
		fmt.Fprint(h, info.ModTime().UnixNano())
	} else if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
		return s, false, err
	}
	h.Sum(s[:0])
	return s, bytes.IndexByte(head, 0) < 0, nil
}
