package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// opening is a trace whose header is being read.
type opening struct {
	*Trace
	look bool // see [Look]
	ours bool // the file has the version of a trace, so the keys mean something
}

// open reads the header, decides whether the file is a trace, and builds the records.
func (o *opening) open() error {
	text, err := safetensors.Text(o.file, o.size)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(versionKey)) {
		if err := safetensors.Bounded(text); err != nil {
			return err
		}
	}
	mendStatus(text)
	header, parseErr := safetensors.Parse(text)
	if err := o.readMetadata(header.Metadata); err != nil {
		return err
	}
	if parseErr != nil {
		if !o.manifest.Status.unfinished() || !errors.Is(parseErr, io.ErrUnexpectedEOF) {
			return parseErr
		}
		o.note("the header is cut off after tensor %d: the run stopped while it wrote the next one", len(header.Tensors))
	}
	ordered := inOrder(header.Tensors)
	end, err := header.Layout()
	if err != nil {
		return err
	}
	if o.sequence && !ordered {
		return errors.New("the header lists the tensors in another order than their data")
	}
	start := 8 + int64(len(text))
	tensors, err := o.fit(header.Tensors, end, o.size-start)
	if err != nil {
		return err
	}
	if tensors, err = o.readable(tensors); err != nil {
		return err
	}
	if err := o.list(tensors, start); err != nil {
		return err
	}
	if err := o.contradiction(); err != nil {
		if !o.look {
			return err
		}
		o.note("%v", err)
	}
	return nil
}

// contradiction returns an error for tensors that contradict the manifest.
func (o *opening) contradiction() error {
	m := &o.manifest
	if n := len(o.records); m.Entries != nil && len(m.Entries) == 0 && n > 0 {
		return fmt.Errorf("metadata %sentries lists no names, and the file has %d tensors", keyPrefix, n)
	}
	for _, r := range o.records {
		if m.Passes > 0 && r.Pass >= m.Passes {
			return fmt.Errorf("metadata %spasses is %d, and tensor %s is of pass %d, counted from 0", keyPrefix, m.Passes, plain.Quote(r.Key), r.Pass)
		}
		if axes, ok := m.Axes[r.Name]; ok && len(strings.Fields(axes)) != len(r.Shape) {
			return fmt.Errorf("metadata %saxes has %s for tensor %s, which has %d axes", keyPrefix, plain.Quote(axes), plain.Quote(r.Key), len(r.Shape))
		}
	}
	return nil
}

// readable refuses tensors of an unknown dtype. For [Look] at a file of another writer it leaves such tensors out.
func (o *opening) readable(tensors []safetensors.Tensor) ([]safetensors.Tensor, error) {
	known := tensors[:0]
	for _, s := range tensors {
		switch err := s.Readable(); {
		case err == nil:
			known = append(known, s)
		case o.ours || !o.look:
			return nil, err
		default:
			o.unread = append(o.unread, s.Unknown)
			o.note("tensor %s left out: shape %v, %d bytes of dtype %s, which is not read", plain.Quote(s.Name), s.Shape, s.End-s.Begin, plain.Quote(s.Unknown))
		}
	}
	return known, nil
}

// inOrder reports whether the data stand in the order of the entries, without gaps.
func inOrder(tensors []safetensors.Tensor) bool {
	end := int64(0)
	for _, s := range tensors {
		if s.Begin != end {
			return false
		}
		end = s.End
	}
	return true
}

// readMetadata fills the manifest, if the file is a trace.
func (o *opening) readMetadata(metadata map[string]string) (err error) {
	if _, o.ours = metadata[versionKey]; !o.ours {
		return foreign(metadata)
	}
	if o.manifest, err = parseManifest(metadata); err != nil {
		return err
	}
	switch s := metadata[sequenceKey]; s {
	case "", execution:
		o.sequence = s == execution
	default:
		return fmt.Errorf("metadata %s is %s, want %q", sequenceKey, plain.Quote(s), execution)
	}
	status, declared := metadata[statusKey]
	if !declared {
		o.lacks = fmt.Sprintf("it has %s and no %s, so it is not known whether the run ended", versionKey, statusKey)
		o.note("%s: read as %q", o.lacks, StatusOpen)
		o.manifest.Status = StatusOpen
		return nil
	}
	o.manifest.Status = Status(strings.TrimRight(status, " "))
	_, isFailed := o.manifest.Status.Failure()
	if !isFailed && o.manifest.Status != StatusOpen && o.manifest.Status != StatusComplete {
		o.lacks = fmt.Sprintf("its status %s is not one that a run leaves, unless the run stopped while it wrote the status", plain.Quote(string(o.manifest.Status)))
		o.note("%s: read as %q", o.lacks, StatusOpen)
		o.manifest.Status = StatusOpen
	}
	return nil
}

// foreign returns an error for metadata that has keys of a trace and no version. Without a version the keys have no known
// meaning, and a failed run would pass for a run without a status.
func foreign(metadata map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if strings.HasPrefix(key, keyPrefix) {
			return fmt.Errorf("metadata has %s and no %s: leave out all keys that begin with %q, or write the version", plain.Quote(key), versionKey, keyPrefix)
		}
	}
	return nil
}

// fit compares the data that the header lists, end bytes, with the have bytes of the file. It returns the tensors
// whose data are in the file: all tensors, or the first tensors of an unfinished trace.
func (o *opening) fit(tensors []safetensors.Tensor, end, have int64) ([]safetensors.Tensor, error) {
	switch {
	case have == end:
		return tensors, nil
	case !o.manifest.Status.unfinished() && have > end:
		return nil, fmt.Errorf("%d bytes after the last tensor belong to no tensor", have-end)
	case !o.manifest.Status.unfinished():
		return nil, hint.Add(fmt.Errorf("%d of %d bytes of data are missing at its end", end-have, end), safetensors.CutShort)
	}
	listed := len(tensors)
	for len(tensors) > 0 && tensors[len(tensors)-1].End > have {
		tensors = tensors[:len(tensors)-1]
	}
	if lost := listed - len(tensors); lost > 0 {
		o.note("%d tensors left out: their data lie beyond the end of the file", lost)
	} else {
		o.note("%d bytes after the last tensor left out: the run stopped before it listed them", have-end)
	}
	return tensors, nil
}

// list makes the records and their index. In a trace every key has to have the form of [Key].
func (o *opening) list(tensors []safetensors.Tensor, start int64) error {
	o.records = make([]Record, len(tensors))
	o.index = make(map[firing]int, len(tensors))
	for i, s := range tensors {
		r := Record{Key: s.Name, Name: s.Name, DType: s.DType, Shape: s.Shape, Size: s.End - s.Begin, offset: start + s.Begin}
		if o.ours {
			key, err := parseKey(s.Name)
			if err != nil {
				return err
			}
			r.Pass, r.Name, r.Firing = key.Pass, key.Name, key.Firing
		}
		if o.sequence {
			if i > 0 && r.Pass < o.records[i-1].Pass {
				return writtenAgain(tensors, fmt.Errorf("tensor %s of pass %d comes after pass %d", plain.Quote(r.Key), r.Pass, o.records[i-1].Pass))
			}
			if _, before := o.LookupFiring(r.Pass, r.Name, r.Firing-1); r.Firing > 0 && !before {
				return fmt.Errorf("tensor %s comes before firing %d of its name", plain.Quote(r.Key), r.Firing-1)
			}
		}
		o.records[i] = r
		o.index[firing{r.Pass, r.Name, r.Firing}] = i
	}
	return nil
}

func (o *opening) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}
