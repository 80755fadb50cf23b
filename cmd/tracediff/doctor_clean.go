package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/health"
)

// A kind of file that tracediff puts into a folder of traces.
const (
	kindTraces    = "captured trace"
	kindStored    = "stored reference file"
	kindHanded    = "hand-over file" // for other runners: the order, the embedded checkpoint
	kindLeft      = "leftover"       // of a run that did not end
	kindDigests   = "digest file"
	kindSettings  = "settings file"
	kindSomebodys = "" // not tracediff's: never touched
)

// kinds, in the order in which they are removed. The settings go last: they are what a folder is known by.
var kinds = []string{kindLeft, kindTraces, kindStored, kindHanded, kindDigests, kindSettings}

// layout is what tracediff writes where, by its path in the folder. What it does not name is somebody else's.
var layout = []struct {
	kind string
	path *regexp.Regexp
}{
	{kindTraces, regexp.MustCompile(`^(local|reference)\.safetensors$`)},
	{kindStored, regexp.MustCompile(`^references/[0-9a-f]{16}(\.safetensors|\.json|\.floor\.json)$`)},
	{kindStored, regexp.MustCompile(`^floors/[0-9a-f]{16}\.json$`)},
	{kindHanded, regexp.MustCompile(`^(order\.json|names\.txt)$`)},
	{kindDigests, regexp.MustCompile(`^digests\.json$`)},
	{kindSettings, regexp.MustCompile(`^settings\.json$`)},
	{kindLeft, regexp.MustCompile(`^(local|reference)\.(lock|safetensors\.(part|part\.new|lock))$`)},
	{kindLeft, regexp.MustCompile(`^exec/(local|reference)-[0-9]+(\.lock|/(local|reference)\.safetensors(\.part|\.part\.new|\.lock)?)$`)},
	{kindLeft, regexp.MustCompile(`^(settings\.json|digests\.json|order\.json|names\.txt|reference\.safetensors)-[0-9]+\.part$`)},
	{kindLeft, regexp.MustCompile(`^references/[0-9a-f]{16}\.(lock|[0-9a-z]{26}\.new\.safetensors(\.part|\.part\.new|\.lock)?)$`)},
	{kindLeft, regexp.MustCompile(`^(references|floors)/floor-[0-9]+\.tmp/([01]\.safetensors(\.part|\.part\.new|\.lock)?|floor\.json)$`)},
}

// maxFolder bounds the files of a folder of traces that are looked at: some thousand stored references have three each.
const maxFolder = 100_000

// storedFile is a file of a folder of traces.
type storedFile struct {
	path string // in the folder, with slashes
	kind string
	size int64
	made time.Time
}

// openFolder opens a folder, and nothing else: opening a pipe would wait for its other end.
func openFolder(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &files.Error{Path: dir, Why: "is " + files.Kind(info.Mode()) + ", not a folder", Next: "name the folder of traces with --dir"}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// scanFolder lists the files of a folder of traces. Links are not followed, and nobody's.
func scanFolder(root *os.Root) ([]storedFile, error) {
	var files []storedFile
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case len(files) == maxFolder:
			return fmt.Errorf("more than %d files", maxFolder)
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a capture that runs has just renamed it
			return nil
		}
		if err != nil {
			return err
		}
		f := storedFile{name, kindSomebodys, info.Size(), info.ModTime()}
		if info.Mode().IsRegular() {
			f.kind = kindOf(root, name, info.Size())
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// kindOf tells tracediff's files by their names, and the written-out embedded checkpoint by its bytes.
func kindOf(root *os.Root, name string, size int64) string {
	for _, l := range layout {
		if l.path.MatchString(name) {
			return l.kind
		}
	}
	if from, ok := strings.CutPrefix(name, "model/"); ok {
		there, err := root.Open(name)
		if err != nil {
			return kindSomebodys
		}
		defer there.Close()
		if want, err := fs.ReadFile(fixtures.Files, from); err == nil && int64(len(want)) == size && sameBytes(there, want) {
			return kindHanded
		}
	}
	return kindSomebodys
}

func sameBytes(f *os.File, want []byte) bool {
	got := make([]byte, len(want))
	_, err := f.ReadAt(got, 0)
	return err == nil && bytes.Equal(got, want) || len(want) == 0
}

// clean removes what tracediff put into the folder, and says what and how much.
func (p *patient) clean(ctx context.Context, s *health.Section) {
	root, err := openFolder(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.OK("%s is not there: nothing to remove", p.dir)
		return
	}
	if err != nil {
		s.Fail("name the folder of traces with --dir", "%v", err)
		return
	}
	defer root.Close()
	files, err := scanFolder(root)
	if err == nil {
		err = p.removable(files)
	}
	if err != nil {
		s.Fail(doctorHint(err), "%s: nothing was removed: %v", p.dir, err)
		return
	}
	for _, kind := range kinds {
		if ctx.Err() == nil {
			removeKind(s, root, kind, files)
		}
	}
	removeEmpty(root, files)
	others := slices.DeleteFunc(files, func(f storedFile) bool { return f.kind != kindSomebodys })
	if len(others) > 0 {
		s.OK("%s not of tracediff, left alone: %s", plural(len(others), "file"), someOf(others))
		return
	}
	if root.Close() == nil && os.Remove(p.dir) == nil {
		s.OK("%s is gone", p.dir)
	}
}

// removable reports why a folder is not to be cleaned: nothing says that it is one of traces, or a run is writing there.
func (p *patient) removable(files []storedFile) error {
	_, known, err := lastSettings(p.dir)
	if filepath.Base(filepath.Clean(p.dir)) != defaultDir && (err != nil || !known) && len(files) > 0 {
		return hinted(errors.New("nothing says that this is a folder of traces: it is not called "+defaultDir+" and has no settings of a capture"),
			"remove by hand what you no longer want")
	}
	for _, f := range files {
		if trace, ok := strings.CutSuffix(f.path, ".lock"); ok && f.kind == kindLeft && capture.Busy(filepath.Join(p.dir, filepath.FromSlash(trace))) {
			return hinted(fmt.Errorf("a run is writing %s", trace), "wait for it to end, or end it")
		}
	}
	return nil
}

// removeKind removes the files of a kind and adds a line about it when there are any.
func removeKind(s *health.Section, root *os.Root, kind string, files []storedFile) {
	var gone []storedFile
	var total int64
	for _, f := range files {
		if f.kind != kind {
			continue
		}
		if err := root.Remove(filepath.FromSlash(f.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Fail("remove it by hand", "%v", err)
			continue
		}
		gone = append(gone, f)
		total += f.size
	}
	if len(gone) > 0 {
		s.OK("removed %s, %s: %s", plural(len(gone), kind), size(total), someOf(gone))
	}
}

// removeEmpty removes the folders that the removed files were in, the deepest first. Those that are not empty stay.
func removeEmpty(root *os.Root, files []storedFile) {
	folders := map[string]bool{}
	for _, f := range files {
		if f.kind == kindSomebodys {
			continue
		}
		for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	deepest := make([]string, 0, len(folders))
	for dir := range folders {
		deepest = append(deepest, dir)
	}
	slices.SortFunc(deepest, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, dir := range deepest {
		_ = root.Remove(filepath.FromSlash(dir)) // one that holds something else stays
	}
}

// someOf names the first files of a list.
func someOf(files []storedFile) string {
	const most = 3
	var names []string
	for _, f := range files[:min(len(files), most)] {
		names = append(names, f.path)
	}
	text := strings.Join(names, ", ")
	if n := len(files) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
