package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// storedFile is a file of a folder of traces.
type storedFile struct {
	path string // in the folder, with slashes
	kind string
	size int64
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

// scanFolder lists the files of a folder of traces, and the folders that runs made for themselves. Links are not followed, and nobody's.
func scanFolder(root *os.Root) (files []storedFile, folders []string, err error) {
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if tracefolder.InRunFolder(name) {
				folders = append(folders, name)
			}
			return nil
		case len(files) == tracefolder.MaxFolder:
			return fmt.Errorf("more than %d files", tracefolder.MaxFolder)
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a capture that runs has just renamed it
			return nil
		}
		if err != nil {
			return err
		}
		f := storedFile{name, tracefolder.FileForeign, info.Size()}
		if info.Mode().IsRegular() || tracefolder.InRunFolder(name) {
			f.kind = kindOf(root, name, info.Size())
		}
		files = append(files, f)
		return nil
	})
	return files, folders, err
}

// kindOf tells tracediff's files by their names, and the written-out embedded checkpoint by its bytes.
func kindOf(root *os.Root, name string, size int64) string {
	if kind := tracefolder.FileKind(name); kind != tracefolder.FileForeign {
		return kind
	}
	if from, ok := strings.CutPrefix(name, "model/"); ok {
		there, err := root.Open(name)
		if err != nil {
			return tracefolder.FileForeign
		}
		defer there.Close()
		if want, err := fs.ReadFile(fixtures.Files, from); err == nil && int64(len(want)) == size && sameBytes(there, want) {
			return tracefolder.FileHanded
		}
	}
	return tracefolder.FileForeign
}

func sameBytes(f *os.File, want []byte) bool {
	got := make([]byte, len(want))
	_, err := f.ReadAt(got, 0)
	return err == nil && bytes.Equal(got, want) || len(want) == 0
}

// Clean removes what tracediff put into the folder, and says what and how much. References that can be used are kept: each took a run of the model.
func (p *Patient) Clean(ctx context.Context, s *health.Section) {
	root, err := openFolder(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.OK("%s is not there: nothing to remove", p.Dir)
		return
	}
	if err != nil {
		s.Fail("name the folder of traces with --dir", "%v", err)
		return
	}
	defer root.Close()
	keys, err := uselessKeys(p.Dir) // before the scan, as digests may be written
	var files []storedFile
	var folders []string
	if err == nil {
		files, folders, err = scanFolder(root)
	}
	for i := range files {
		key, _, _ := strings.Cut(strings.TrimPrefix(files[i].path, "references/"), ".")
		if files[i].kind == tracefolder.FileStored && keys[key] {
			files[i].kind = tracefolder.FileLeft
		}
	}
	if err == nil {
		err = removable(p.Dir, files)
	}
	if err != nil {
		s.Fail(Hint(err), "%s: nothing was removed: %v", p.Dir, err)
		return
	}
	for _, kind := range tracefolder.FileKinds {
		if ctx.Err() == nil && kind != tracefolder.FileStored {
			removeKind(s, root, kind, files)
		}
	}
	removeEmpty(root, files, folders)
	if kept := ofKind(files, tracefolder.FileStored); len(kept) > 0 {
		s.OK("kept %s, %s: %s", amount.Of(len(kept), tracefolder.FileStored), amount.Bytes(sizeOf(kept)), someOf(kept))
	}
	others := slices.DeleteFunc(files, func(f storedFile) bool { return f.kind != tracefolder.FileForeign })
	if len(others) > 0 {
		s.OK("%s not written by tracediff, kept: %s", amount.Of(len(others), "file"), someOf(others))
		return
	}
	if root.Close() == nil && os.Remove(p.Dir) == nil {
		s.OK("%s is gone", p.Dir)
	}
}

// uselessKeys are the keys of stored references that nobody can use.
func uselessKeys(dir string) (map[string]bool, error) {
	entries, err := reference.NewStore(dir).List()
	keys := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Intact() != nil {
			keys[strings.TrimSuffix(filepath.Base(e.Path), ".safetensors")] = true
		}
	}
	return keys, err
}

// removable returns an error if a folder must not be cleaned: it does not look like a folder of traces, or a run is
// writing in it.
func removable(dir string, files []storedFile) error {
	_, known, err := settings.LastSettings(dir)
	known = err == nil && known || slices.ContainsFunc(files, func(f storedFile) bool {
		return f.kind == tracefolder.FileStored && strings.HasSuffix(f.path, ".safetensors")
	})
	if filepath.Base(filepath.Clean(dir)) != settings.DefaultDir && !known && len(files) > 0 {
		return hint.Add(errors.New("this may not be a folder of traces: it is not called "+settings.DefaultDir+" and has no settings of a capture and no reference"),
			"remove by hand what you no longer want")
	}
	for _, f := range files {
		if trace, ok := strings.CutSuffix(f.path, ".lock"); ok && f.kind == tracefolder.FileLeft && capture.Busy(filepath.Join(dir, filepath.FromSlash(trace))) {
			return hint.Add(fmt.Errorf("a run is writing %s", trace), "wait for it to end, or end it")
		}
	}
	return nil
}

// removeKind removes the files of a kind and adds a line about it when there are any.
func removeKind(s *health.Section, root *os.Root, kind string, files []storedFile) {
	var gone []storedFile
	for _, f := range files {
		if f.kind != kind {
			continue
		}
		if err := root.Remove(filepath.FromSlash(f.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Fail("remove it by hand", "%v", err)
			continue
		}
		gone = append(gone, f)
	}
	if len(gone) > 0 {
		s.OK("removed %s, %s: %s", amount.Of(len(gone), kind), amount.Bytes(sizeOf(gone)), someOf(gone))
	}
}

// sizeOf is how many bytes files take.
func sizeOf(files []storedFile) (total int64) {
	for _, f := range files {
		total += f.size
	}
	return total
}

// removeEmpty removes the folders of the removed files and the folders that runs made for themselves, the deepest first. A folder with files stays.
func removeEmpty(root *os.Root, files []storedFile, folders []string) {
	emptied := map[string]bool{}
	for _, f := range files {
		if f.kind != tracefolder.FileForeign {
			folders = append(folders, path.Dir(f.path))
		}
	}
	for _, dir := range folders {
		for ; dir != "."; dir = path.Dir(dir) {
			emptied[dir] = true
		}
	}
	deepest := make([]string, 0, len(emptied))
	for dir := range emptied {
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
	for _, f := range files {
		names = append(names, f.path)
	}
	return amount.Some(names, most)
}
