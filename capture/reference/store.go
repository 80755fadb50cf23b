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

// MaxStored is the estimated size up to which a reference is captured whole, at level 3, all layers and positions, so that
// every narrower comparison of the same input can use it. A larger one is captured at the scope that was asked for.
const MaxStored = 1 << 30

// Store is the references of a folder of traces: for each key KEY.safetensors, KEY.json which describes it, and perhaps
// KEY.floor.json, the noise floor of its passes, and KEY.program.json, the program that was recorded with it.
type Store struct {
	dir     string
	digests checkpoint.Digests // of the traces: a large one is not hashed at every comparison
}

// NewStore is the store of a folder of traces. Nothing is made or read yet.
func NewStore(traces string) Store {
	return Store{filepath.Join(traces, "references"), checkpoint.NewDigests(filepath.Join(traces, "digests.json"))}
}

// Entry is one stored reference.
type Entry struct {
	Key   Key
	Model string    // what was run, as the person named it then
	Path  string    // of the trace
	Made  time.Time // when the trace was finished
	Size  int64     // bytes of the trace and what belongs to it
	Floor bool      // a noise floor is beside it
	Err   error     // why the entry cannot be used by anybody; Key and Model are then not to be relied on

	trace   content  // what was kept
	program *content // and the program that was recorded with it; nil for none
	digests checkpoint.Digests
}

// FloorPath is where the noise floor of a reference stands.
func (e *Entry) FloorPath() string { return strings.TrimSuffix(e.Path, ".safetensors") + ".floor.json" }

func (e *Entry) sidecarPath() string { return strings.TrimSuffix(e.Path, ".safetensors") + ".json" }

// sidecar is the content of KEY.json.
type sidecar struct {
	Key   Key     `json:"key"`
	Model string  `json:"model"`
	Trace content `json:"trace"`
	// Program is nil where none was recorded.
	Program *content `json:"program,omitempty"`
}

// content is what tells a trace from one that was put in its place or written into: a key says what a file ought to be.
type content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// maxSidecar bounds a description: its largest part are token ids, 10 bytes each, of the longest context.
const maxSidecar = 16 << 20

var keyName = regexp.MustCompile(`^[0-9a-f]{16}\.safetensors$`)

// List returns the entries, the newest first. A folder that is not there is an empty store. Entries that are broken are
// listed with the reason.
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

// describe fills an entry in from its files.
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
	d.DisallowUnknownFields() // a component that is not known may be what makes it another reference
	if err := d.Decode(&side); err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	e.Key, e.Model, e.trace, e.program = side.Key, side.Model, side.Trace, side.Program
	if e.program != nil {
		e.Size += e.program.Size
	}
	if e.Key.String() != filepath.Base(base) {
		return errors.New("its description is that of another reference")
	}
	return nil
}

// Intact reports a trace, or the program recorded with it, that is not the one that was kept: the error names it.
func (e *Entry) Intact() error {
	if e.Err != nil {
		return e.Err
	}
	if err := e.same(e.Path, e.trace); err != nil || e.program == nil {
		return err
	}
	return e.same(ProgramBeside(e.Path), *e.program)
}

// Open opens the entry's trace when it is what is wanted of a runner, and returns the ids of the passes wanted. The error
// is a *[Refusal] when the key differs, and says what the trace itself contradicts when it is not what its key says.
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
	if err == nil { // only now, as it takes longest; what is open is what is hashed, or the hash differs
		err = e.Intact()
	}
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return t, passes, nil
}

// Passed is a stored reference that was not used, and why.
type Passed struct {
	Entry
	Why error
}

// Found is a stored reference that is what was wanted, open.
type Found struct {
	*capture.Trace
	Passes [][]int // the ids of the passes that were wanted
	Entry  Entry
}

// Find returns the newest entry that is what is wanted of a runner, nil when there is none. Then passed has the entries of
// this model by this runner, the nearest misses first. The error is that of reading the folder.
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

// nearness is larger the later a refusal comes; a broken entry, which a person wants to know of, is nearest.
func nearness(why error) int {
	var r *Refusal
	if errors.As(why, &r) {
		return r.Component
	}
	return 1 << 10
}

// Lock makes the folder and keeps other runs from making the reference of a key, until release is called. While another run
// makes it the error is [capture.ErrLocked]. What stands in the key's places and is no file is an error, too.
func (s Store) Lock(k Key) (release func(), err error) {
	err = os.MkdirAll(s.dir, 0o777)
	if err == nil { // before anything runs
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

// Place returns where the trace of a key is to be written: a name that no other run has, so that none takes or removes
// what another writes, even where the file system knows no locks. The folder is there once the key is locked.
func (s Store) Place(k Key) string {
	return filepath.Join(s.dir, k.String()+"."+strings.ToLower(rand.Text())+".new.safetensors")
}

// Keep stores the trace at a path, which is on the same file system, under a key. When the trace is not what the key says
// that is an error, and the file stays where it is.
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

// Of returns the entry that holds the trace at a path: the path names the stored file, or a copy of it. The entry is nil if the trace was not stored, and if
// the path names no file, as that of a trace inside the program does.
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
		if there, err := os.Stat(e.Path); err == nil && os.SameFile(info, there) { // its digest is known
			is = e.Path
		}
		if e.same(is, e.trace) == nil {
			return e, nil
		}
	}
	return nil, nil
}

// entry is the place of a key, of which nothing is read yet.
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

// holds reports what a trace says otherwise than its key.
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

// replace puts a new trace and its description in the place of older ones. The description goes first: a trace without one
// is broken, a description without a trace is nothing.
func (e *Entry) replace(path string, side sidecar) error {
	text, err := json.MarshalIndent(side, "", "\t")
	if err != nil {
		return err
	}
	if err := e.replaceable(); err != nil {
		return err
	}
	for _, old := range []string{e.Path, e.FloorPath()} { // the older program goes with MoveProgram
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

// replaceable reports what stands in the entry's places and is no file of a store.
func (e *Entry) replaceable() error {
	for _, path := range []string{e.Path, e.sidecarPath(), e.FloorPath(), ProgramBeside(e.Path)} {
		if err := files.Replaceable(path); err != nil {
			return err
		}
	}
	return nil
}
