package capture

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/internal/tracekey"
)

// Suffix ends the name of a trace during the run. The file keeps the suffix if the run fails.
const Suffix = ".part"

// errClosed sticks to a writer that was closed or failed.
var errClosed = errors.New("the trace is closed")

// A Writer writes one trace while a model runs. Its memory does not grow with the trace: a Writer keeps the names
// of one pass, and no tensor. An error sticks: after the first error every call returns the error and writes
// nothing. A Writer is for one goroutine at a time, like a forward pass.
type Writer struct {
	path    string
	part    part
	release func() // gives back the lock; nil once closed
	err     error

	pass  int
	fired map[string]int // how often each name was fired in this pass
	key   []byte         // scratch, kept so that a tensor costs no allocation
	entry []byte
}

// Create starts the trace at path. It writes the manifest to path.part and leaves room in the header for reserve
// bytes and a tenth more. [HeaderBytes] gives the bytes of one tensor; too small a reserve costs a copy and is no
// error. An unfinished trace of an earlier run at path.part is replaced. A trace at path stays until Close.
//
// The error wraps [ErrLocked] while another run writes to path. Other errors are from the manifest (text that is not
// valid UTF-8, a config that is not JSON, a scope without level) and from the file system.
func Create(path string, m Manifest, reserve int) (*Writer, error) {
	return createOn(osDisk{}, path, m, reserve)
}

func createOn(d disk, path string, m Manifest, reserve int) (_ *Writer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create trace %s: %w", path, err)
		}
	}()
	header, err := m.header()
	if err != nil {
		return nil, err
	}
	if err := replaceable(path); err != nil {
		return nil, err
	}
	release, _, err := lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, part: part{disk: d, path: path + Suffix}, release: release, fired: map[string]int{}}
	size := int64(len(header)) + min(int64(max(reserve, 0)), safetensors.MaxHeader)*11/10
	size = roundUp(max(min(size, safetensors.MaxHeader), int64(len(header))))
	if err := w.part.rebuild(size, bytes.NewReader(header)); err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// replaceable refuses a path that is not a regular file: the rename at the end of the run would destroy a device or a
// pipe, and fail on a folder.
func replaceable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &files.Error{Path: path, Why: "is " + files.Kind(info.Mode()) + ", and a trace would replace it", Next: "move it away, or write the trace to another place"}
	}
	return nil
}

// Observe appends a tensor to the trace: it is a [hooks.Observer]. Observe writes the tensor's bytes before it
// returns, so the bytes may change afterwards. The key is made by [Key], and the firing is the number of earlier
// events of the name in this pass. An event of an earlier pass than the last event, a tensor that fails its Check
// and a name that cannot stand in a key are errors.
func (w *Writer) Observe(e hooks.Event) error {
	if w.err != nil {
		return w.err
	}
	if err := w.observe(e); err != nil {
		w.err = fmt.Errorf("trace %s: tensor %s: %w", w.path, plain.Quote(Key(e.Pass, e.Name, 0)), err)
	}
	return w.err
}

func (w *Writer) observe(e hooks.Event) error {
	if err := e.Tensor.Check(); err != nil {
		return err
	}
	if err := w.begin(e); err != nil {
		return err
	}
	if err := w.part.put(e.Tensor.Data, 0); err != nil {
		return err
	}
	return w.finish(e, int64(len(e.Tensor.Data)))
}

// begin checks the name and the pass of an event.
func (w *Writer) begin(e hooks.Event) error {
	if err := checkName(e.Name); err != nil {
		return err
	}
	if e.Pass < w.pass {
		return fmt.Errorf("pass %d after pass %d: passes only go forward", e.Pass, w.pass)
	}
	if e.Pass > w.pass {
		clear(w.fired)
		w.pass = e.Pass
	}
	return nil
}

// finish adds a tensor whose bytes were written with [part.put] to the trace.
func (w *Writer) finish(e hooks.Event, bytes int64) error {
	w.key = tracekey.Key{Pass: e.Pass, Name: e.Name, Firing: w.fired[e.Name]}.Append(w.key[:0])
	w.entry = appendEntry(w.entry[:0], w.key, e.Tensor.DType, e.Tensor.Shape, w.part.data, w.part.data+bytes)
	if err := w.part.append(bytes, w.entry); err != nil {
		return err
	}
	w.fired[e.Name]++
	return nil
}

// Close completes the trace: it syncs the data, sets the status, and gives the file its name. After an error of an
// earlier call the trace is left failed, as by [Writer.Fail], and Close returns that error.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.complete()
	}
	if w.err != nil {
		// The error of complete is the first error; an error of Fail would follow from it.
		why := w.err
		_ = w.Fail(why)
		return why
	}
	w.end()
	return nil
}

// complete does the work of Close. The data are synced before the status says "complete".
func (w *Writer) complete() error {
	err := w.part.Sync()
	if err == nil {
		err = w.part.setStatus(StatusComplete)
	}
	if err == nil {
		err = w.part.Sync()
	}
	if err == nil {
		err = w.part.Close()
		w.part.file = nil
	}
	if err == nil {
		err = w.part.disk.Rename(w.part.path, w.path)
	}
	if err != nil {
		return fmt.Errorf("close trace %s: %w", w.path, err)
	}
	return nil
}

// Fail ends the trace of a run that went wrong: the status becomes "failed: " and why, cut to [StatusWidth] bytes.
// The file stays at path.part. On a closed writer Fail does nothing, so that it can be deferred.
func (w *Writer) Fail(why error) error {
	if w.release == nil {
		return nil
	}
	defer w.end()
	if why == nil {
		why = errors.New("no reason given")
	}
	if w.part.file == nil {
		return nil // the file could not be opened again or is closed already: an earlier error said so
	}
	err := w.part.setStatus(failed + Status(why.Error()))
	if err == nil {
		err = w.part.Sync()
	}
	if err != nil {
		return fmt.Errorf("mark trace %s as failed: %w", w.path, err)
	}
	return nil
}

// end closes the file and gives back the lock. Later calls of the writer return an error.
func (w *Writer) end() {
	if w.part.file != nil {
		_ = w.part.Close() // synced already, or about to be reported as failed
		w.part.file = nil
	}
	w.release()
	w.release = nil
	if w.err == nil {
		w.err = fmt.Errorf("trace %s: %w", w.path, errClosed)
	}
}

// Lock keeps other runs from writing to path: this run holds the file path.lock until release is called or the process
// ends, even by a kill. The error is [ErrLocked] while another run, of this process or another process, holds the lock.
// Other errors are from the file system. A [Writer] locks the path of its trace.
func Lock(path string) (release func(), err error) {
	release, _, err = lock(path + ".lock")
	return release, err
}

// Busy reports whether a run, of this process or another process, is writing the trace at path. It removes a lock file
// that a killed run left.
func Busy(path string) bool {
	release, _, err := lock(path + ".lock")
	if err == nil {
		release()
	}
	return errors.Is(err, ErrLocked)
}

// Abandoned takes the lock of a path, as [Lock] does, if certainly no run has the lock. ok is false while a run has the lock, and on a file system without
// locks.
func Abandoned(path string) (release func(), ok bool) {
	release, sure, err := lock(path + ".lock")
	if err != nil {
		return nil, false
	}
	if !sure {
		release()
		return nil, false
	}
	return release, true
}
