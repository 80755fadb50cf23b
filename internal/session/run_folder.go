package session

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/hint"
)

// execFolder is where commands write, each run in a folder of its own below it.
const execFolder = "exec"

// runFolders are the folders that a run makes for itself in a folder of traces and removes when it ends well: where a command writes, where a noise floor is
// measured, where weights are dequantised. Paths have slashes. Every run locks its own.
var runFolders = regexp.MustCompile(`^(` + execFolder + `/(local|reference)-[0-9]+|(references|floors)/floor-[0-9]+\.tmp|` + portsFolder + `/new-[0-9]+\.tmp)$`)

// InRunFolder reports whether a path in a folder of traces, with slashes, is that of a folder which a run made for itself, or of something in one.
func InRunFolder(name string) bool {
	parent, below, _ := strings.Cut(name, "/")
	own, _, _ := strings.Cut(below, "/")
	return runFolders.MatchString(parent + "/" + own)
}

// makeRunFolder makes a new folder for one run, named by a number between before and after. The lock comes first: without the lock another run would remove
// the folder.
func makeRunFolder(parent, before, after string) (folder string, release func(), err error) {
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return "", nil, err
	}
	for {
		folder = filepath.Join(parent, fmt.Sprintf("%s%d%s", before, rand.Uint32(), after))
		release, err = capture.Lock(folder)
		if errors.Is(err, capture.ErrLocked) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if err = os.Mkdir(folder, 0o700); err == nil {
			return folder, release, nil
		}
		release()
		if !errors.Is(err, fs.ErrExist) {
			return "", nil, err
		}
	}
}

// RemoveLeft removes the folders and the unfinished traces that failed and killed runs have left in the folder of traces. A command calls RemoveLeft after a successful
// run: until then a person may want to look into them. What is or holds a side of the settings stays, and what another run has locked.
func RemoveLeft(e *Env, s Settings) {
	var given []string
	for _, side := range []Source{s.Local, s.Reference} {
		if at, err := filepath.Abs(side.Text); side.Kind == KindFile && err == nil {
			given = append(given, at)
		}
	}
	e.removeLeft(execFolder, given...)
	e.removeLeftWalks()
	if err := removeUnfinished(e.Dir, given); err != nil {
		fmt.Fprintf(e.Notes, "note: what an earlier run has left cannot be removed: %v\n", err)
	}
}

// removeLeftWalks removes only the folders in which tracediff itself computes. A comparison of files calls it: a person may be comparing the trace of a failed
// command, so the folders of commands stay.
func (e *Env) removeLeftWalks() {
	for _, parent := range []string{"references", "floors", portsFolder} {
		e.removeLeft(parent)
	}
}

func (e *Env) removeLeft(parent string, given ...string) {
	if err := removeLeft(e.Dir, parent, given); err != nil {
		fmt.Fprintf(e.Notes, "note: what an earlier run has left cannot be removed: %v\n", err)
	}
}

// removeLeft removes the folders of runs below one folder of a folder of traces that no run has locked, unless they hold what was given.
func removeLeft(dir, parent string, given []string) error {
	entries, err := os.ReadDir(filepath.Join(dir, parent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".lock") // a run that was killed early has left its lock alone
		if folder := filepath.Join(dir, parent, name); runFolders.MatchString(parent+"/"+name) && !holdsAny(folder, given) {
			err = hint.Also(err, removeAbandoned(folder, folder))
		}
	}
	return err
}

// unfinished is a trace in a folder of traces whose run has not come to its end. The groups are the trace that it was to be, which its run locks.
var unfinished = regexp.MustCompile(`^((?:local|reference)\.safetensors)\.part(?:\.new)?$|^(references/[0-9a-f]{16}\.[0-9a-z]{26}\.new\.safetensors)(?:\.part(?:\.new)?)?$`)

// removeUnfinished removes the unfinished traces that no run has locked, unless they were given.
func removeUnfinished(dir string, given []string) (err error) {
	for _, below := range []string{"", "references/"} {
		entries, problem := os.ReadDir(filepath.Join(dir, below))
		if problem != nil && !errors.Is(problem, fs.ErrNotExist) {
			err = hint.Also(err, problem)
		}
		for _, entry := range entries {
			found := unfinished.FindStringSubmatch(below + entry.Name())
			if path := filepath.Join(dir, below, entry.Name()); found != nil && !holdsAny(path, given) {
				err = hint.Also(err, removeAbandoned(filepath.Join(dir, found[1]+found[2]), path))
			}
		}
	}
	return err
}

// holdsAny reports whether a path is one of the absolute paths, or a folder that holds one of them.
func holdsAny(path string, paths []string) bool {
	at, err := filepath.Abs(path)
	for _, p := range paths {
		if err != nil || p == at || strings.HasPrefix(p, at+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// removeAbandoned removes the file or folder of a run that no longer goes on, which has locked a path. Where the file system has no locks nobody knows, and the file
// stays.
func removeAbandoned(locked, path string) error {
	release, ok := capture.Abandoned(locked)
	if !ok {
		return nil
	}
	defer release()
	return os.RemoveAll(path)
}
