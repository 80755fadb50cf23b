package reference

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
)

// MaxStored is the largest estimated size, in bytes, of a reference that is captured as a whole: level 3, all layers and
// positions. Every narrower comparison of the same input can use such a reference. A larger reference is captured at the
// scope of the comparison.
const MaxStored = 1 << 30

// Store is the references of a folder of traces. For each key it has KEY.safetensors, and KEY.json with the
// description. It may have KEY.floor.json, the noise floor of the passes, and KEY.program.json, the program recorded
// with the reference.
type Store struct {
	dir     string
	digests checkpoint.Digests // of the traces, so that a large trace is not hashed for every comparison
}

// NewStore is the store of a folder of traces. NewStore makes and reads no file.
func NewStore(traces string) Store {
	return Store{filepath.Join(traces, "references"), checkpoint.NewDigests(filepath.Join(traces, "digests.json"))}
}

// Entry is one stored reference.
type Entry struct {
	Key   Key
	Model string    // the name of the model that the person gave in that run
	Path  string    // of the trace
	Made  time.Time // when the trace was finished
	Size  int64     // bytes of all files of the entry
	Floor bool      // the entry has a noise floor
	Err   error     // why nobody can use the entry; with an error, Key and Model are not reliable

	trace   content  // of the stored trace
	program *content // of the program recorded with the trace; nil without a program
	digests checkpoint.Digests
}

// FloorPath is the path of the noise floor of a reference.
func (e *Entry) FloorPath() string { return strings.TrimSuffix(e.Path, ".safetensors") + ".floor.json" }

func (e *Entry) sidecarPath() string { return strings.TrimSuffix(e.Path, ".safetensors") + ".json" }

// sidecar is the content of KEY.json.
type sidecar struct {
	Key   Key     `json:"key"`
	Model string  `json:"model"`
	Trace content `json:"trace"`
	// Program is nil if no program was recorded.
	Program *content `json:"program,omitempty"`
}

// content identifies a stored file, so that a replaced or changed file is noticed.
type content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// maxSidecar bounds a description in bytes. Most of a description is token ids, 10 bytes each, of at most the
// longest context.
const maxSidecar = 16 << 20

var keyName = regexp.MustCompile(`^[0-9a-f]{16}\.safetensors$`)

// List returns the entries, newest first. A missing folder is an empty store. Broken entries are in the list, with the
// reason.
func (s Store) List() ([]Entry, error) {
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the stored references: %w", err)
	}
	var entries []Entry
	for _, f := range files {
		if !keyName.MatchString(f.Name()) {
			continue
		}
		e := Entry{Path: filepath.Join(s.dir, f.Name()), digests: s.digests}
		e.Err = e.describe()
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.Path, b.Path)) })
	return entries, nil
}

// describe fills in an entry from its files.
func (e *Entry) describe() error {
	info, err := os.Stat(e.Path)
	if err != nil {
		return err
	}
	e.Made, e.Size = info.ModTime(), info.Size()
	base := strings.TrimSuffix(e.Path, ".safetensors")
	if floor, err := os.Stat(e.FloorPath()); err == nil {
		e.Floor, e.Size = true, e.Size+floor.Size()
	}
	data, err := files.Read(e.sidecarPath(), maxSidecar)
	if err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	e.Size += int64(len(data))
	var side sidecar
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // an unknown component could mean another reference
	if err := d.Decode(&side); err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	e.Key, e.Model, e.trace, e.program = side.Key, side.Model, side.Trace, side.Program
	if e.program != nil {
		e.Size += e.program.Size
	}
	if e.Key.String() != filepath.Base(base) {
		return errors.New("its description is of another reference")
	}
	return nil
}

// Intact returns an error for a trace, or a recorded program, that differs from the stored file. The error names
// the file.
func (e *Entry) Intact() error {
	if e.Err != nil {
		return e.Err
	}
	if err := e.same(e.Path, e.trace); err != nil || e.program == nil {
		return err
	}
	return e.same(ProgramBeside(e.Path), *e.program)
}

// Open opens the entry's trace if the entry fits w and r, and returns the ids of the wanted passes. The error is a
// *[Refusal] for a key that differs. If the trace contradicts its key, the error says how.
func (e *Entry) Open(w Wanted, r Runner) (*capture.Trace, [][]int, error) {
	if e.Err != nil {
		return nil, nil, e.Err
	}
	if why := e.refusal(w, r); why != nil {
		return nil, nil, why
	}
	t, err := capture.Open(e.Path)
	if err != nil {
		return nil, nil, err
	}
	passes, err := w.agrees(t, e.Key)
	if err == nil { // last, since hashing takes longest; a file that was replaced after capture.Open has another digest
		err = e.Intact()
	}
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return t, passes, nil
}

// Passed is a stored reference that was not used, with the reason.
type Passed struct {
	Entry
	Why error
}

// Found is a stored reference that fits, open.
type Found struct {
	*capture.Trace
	Passes [][]int // the ids of the wanted passes
	Entry  Entry
}

// Find returns the newest entry that fits w and r, or nil. Without a fit, passed has the entries of this model and this
// runner and the broken entries, nearest misses first. An error is from reading the folder.
func (s Store) Find(w Wanted, r Runner) (_ *Found, passed []Passed, err error) {
	entries, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		t, passes, err := e.Open(w, r)
		if err == nil {
			return &Found{t, passes, e}, nil, nil
		}
		if e.Err != nil || e.Key.Name == r.Name && (e.Key.Config == digest(w.Config) || filepath.Base(e.Model) == filepath.Base(w.Model)) {
			passed = append(passed, Passed{e, err})
		}
	}
	slices.SortStableFunc(passed, func(a, b Passed) int { return cmp.Compare(nearness(b.Why), nearness(a.Why)) })
	return nil, passed, nil
}

// nearness grows with the component of a refusal; a broken entry, which a person wants to know about, is nearest.
func nearness(why error) int {
	var r *Refusal
	if errors.As(why, &r) {
		return r.Component
	}
	return 1 << 10
}

// Lock makes the folder and keeps other runs from making the reference of a key, until release is called. While another run
// makes the reference, the error wraps [capture.ErrLocked]. A path of the key that is not a file is an error, too.
func (s Store) Lock(k Key) (release func(), err error) {
	err = os.MkdirAll(s.dir, 0o777)
	if err == nil { // before the run, not after it
		err = s.entry(k).replaceable()
	}
	if err != nil {
		return nil, fmt.Errorf("storing the reference: %w", err)
	}
	if release, err = capture.Lock(filepath.Join(s.dir, k.String())); err != nil {
		return nil, fmt.Errorf("storing the reference: %w", err)
	}
	return release, nil
}

// Place returns the path at which to write the trace of a key. No other run has the same path, so no run takes or
// removes the file of another run, even on a file system without locks. The folder exists after Lock.
func (s Store) Place(k Key) string {
	return filepath.Join(s.dir, k.String()+"."+strings.ToLower(rand.Text())+".new.safetensors")
}

// Keep stores the trace at a path under a key. The path is on the file system of the store. A trace that contradicts the
// key is an error, and the file stays at the path.
func (s Store) Keep(path string, w Wanted, k Key) (*Found, error) {
	if err := holds(path, w, k); err != nil {
		return nil, fmt.Errorf("storing the reference: %w", err)
	}
	e := s.entry(k)
	side := sidecar{Key: k, Model: w.Model}
	var err error
	if side.Trace, err = s.content(path); err == nil {
		side.Program, err = s.programContent(path)
	}
	if err == nil {
		err = e.replace(path, side)
	}
	if err != nil {
		return nil, fmt.Errorf("storing the reference: %w", err)
	}
	e.Err = e.describe()
	t, passes, err := e.Open(w, k.Runner)
	if err != nil {
		return nil, fmt.Errorf("storing the reference: %w", err)
	}
	return &Found{t, passes, *e}, nil
}

// Of returns the entry that holds the trace at a path: the path of the stored file, or of a copy. It returns nil for a trace that is not stored, and
// for a path without a file, such as the path of a trace inside the program.
func (s Store) Of(path string) (*Entry, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	for k := range entries {
		e := &entries[k]
		if e.Err != nil || info.Size() != e.trace.Size {
			continue
		}
		is := path
		if there, err := os.Stat(e.Path); err == nil && os.SameFile(info, there) { // the digest of the stored file is known
			is = e.Path
		}
		if e.same(is, e.trace) == nil {
			return e, nil
		}
	}
	return nil, nil
}

// entry is the entry of a key, before any file is read.
func (s Store) entry(k Key) *Entry {
	return &Entry{Path: filepath.Join(s.dir, k.String()+".safetensors"), digests: s.digests}
}

func (s Store) content(path string) (content, error) {
	info, err := os.Stat(path)
	if err != nil {
		return content{}, err
	}
	sum, err := s.digests.File(path)
	return content{info.Size(), sum}, err
}

// holds returns an error for a trace that contradicts its key.
func holds(path string, w Wanted, k Key) error {
	t, err := foreign.Open(path)
	if err != nil {
		return err
	}
	if t.Status() == "" {
		return errors.Join(errors.New("it does not name its model and weights"), t.Close())
	}
	_, err = w.agrees(t, k)
	return errors.Join(err, t.Close())
}

// replace puts a new trace and its description in the place of the old files. The description is written first: a trace
// without a description is a broken entry, and a description without a trace is no entry.
func (e *Entry) replace(path string, side sidecar) error {
	text, err := json.MarshalIndent(side, "", "\t")
	if err != nil {
		return err
	}
	if err := e.replaceable(); err != nil {
		return err
	}
	for _, old := range []string{e.Path, e.FloorPath()} { // MoveProgram replaces or removes the old program
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := files.Write(e.sidecarPath(), append(text, '\n')); err != nil {
		return err
	}
	if err := MoveProgram(path, e.Path); err != nil {
		return err
	}
	return os.Rename(path, e.Path)
}

// replaceable returns an error for a path of the entry that is not a file of a store.
func (e *Entry) replaceable() error {
	for _, path := range []string{e.Path, e.sidecarPath(), e.FloorPath(), ProgramBeside(e.Path)} {
		if err := files.Replaceable(path); err != nil {
			return err
		}
	}
	return nil
}
