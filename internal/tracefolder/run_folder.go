package tracefolder

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
	"github.com/tracediff/tracediff/internal/settings"
)

// ExecFolder is the folder for the output of commands. Each run writes to a subfolder.
const ExecFolder = "exec"

// PortsFolder is the folder for the converted weights of ports. Each port has a subfolder with a record.
const (
	PortsFolder = "ports"
	PortFile    = "port.json"
)

// runFolders are the folders that a run makes for itself in a folder of traces and removes when it ends well: where a command writes, where a noise floor is
// measured, where weights are dequantised. Paths have slashes. Every run locks its own.
var runFolders = regexp.MustCompile(`^(` + ExecFolder + `/(local|reference)-[0-9]+|(references|floors)/floor-[0-9]+\.tmp|` + PortsFolder + `/new-[0-9]+\.tmp)$`)

// InRunFolder reports whether a path in a folder of traces, with slashes, is that of a folder which a run made for itself, or of something in one.
func InRunFolder(name string) bool {
	parent, below, _ := strings.Cut(name, "/")
	own, _, _ := strings.Cut(below, "/")
	return runFolders.MatchString(parent + "/" + own)
}

// MakeRunFolder makes a new folder for one run, named by a number between before and after. The lock comes first: without the lock another run would remove
// the folder.
func MakeRunFolder(parent, before, after string) (folder string, release func(), err error) {
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

// RemoveLeftovers removes the folders and the unfinished traces that failed and killed runs have left in the folder of traces. A command calls RemoveLeftovers after a successful
// run: until then a person may want to look into them. What is or holds a side of the settings stays, and what another run has locked.
func RemoveLeftovers(e *settings.Env, s settings.Settings) {
	var given []string
	for _, side := range []settings.Source{s.Local, s.Reference} {
		if at, err := filepath.Abs(side.Text); side.Kind == settings.KindFile && err == nil {
			given = append(given, at)
		}
	}
	removeRuns(e, ExecFolder, given...)
	RemoveLeftWalks(e)
	if err := removeUnfinished(e.Dir, given); err != nil {
		fmt.Fprintf(e.Notes, "note: files of an earlier run cannot be removed: %v\n", err)
	}
}

// RemoveLeftWalks removes only the folders in which tracediff itself computes. A comparison of files calls it: a person may be comparing the trace of a failed
// command, so the folders of commands stay.
func RemoveLeftWalks(e *settings.Env) {
	for _, parent := range []string{"references", "floors", PortsFolder} {
		removeRuns(e, parent)
	}
}

// removeRuns calls removeLeft, and reports an error as a note.
func removeRuns(e *settings.Env, parent string, given ...string) {
	if err := removeLeft(e.Dir, parent, given); err != nil {
		fmt.Fprintf(e.Notes, "note: files of an earlier run cannot be removed: %v\n", err)
	}
}

// removeLeft removes the unlocked run folders in the folder parent of a folder of traces. A run folder with one of
// the given paths inside is kept.
func removeLeft(dir, parent string, given []string) error {
	entries, err := os.ReadDir(filepath.Join(dir, parent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".lock") // a run that was killed early has left only its lock
		if folder := filepath.Join(dir, parent, name); runFolders.MatchString(parent+"/"+name) && !holdsAny(folder, given) {
			err = hint.Also(err, removeAbandoned(folder, folder))
		}
	}
	return err
}

// unfinished matches the unfinished traces in a folder of traces. The groups are the path of the finished trace, on
// which a run holds its lock.
var unfinished = regexp.MustCompile(`^((?:gate/)?(?:local|reference)\.safetensors)\.part(?:\.new)?$|^(references/[0-9a-f]{16}\.[0-9a-z]{26}\.new\.safetensors)(?:\.part(?:\.new)?)?$`)

// removeUnfinished removes the unfinished traces without a running writer. Given files are kept.
func removeUnfinished(dir string, given []string) (err error) {
	for _, below := range []string{"", GateFolder + "/", "references/"} {
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

// holdsAny reports whether a path, or a file below it, is one of the absolute paths.
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
