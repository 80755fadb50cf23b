// Package torch reads what torch.save writes, as zip archives and as the stream before version 1.6, and plain pickles of
// dictionaries of numpy arrays. Nothing in a file is run or imported: a pickle may name what a dump needs, tensors, storages,
// dtypes, ordered dictionaries and numpy arrays, and is refused by the first other name.
//
// Tensors are views of storages: their strides and offsets are those of the file. A dictionary, list or tuple is flattened:
// {"q": (a, b)} has the tensors q.0 and q.1.
package torch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/pickle"
	"github.com/tracediff/tracediff/internal/plain"
)

const pickleName = "data.pkl"

// root is the folder of an archive that has the pickle; false where none has.
func root(z *container.Zip) (string, bool) {
	for _, m := range z.Members {
		if dir, ok := strings.CutSuffix(m.Name, pickleName); ok && strings.Count(m.Name, "/") <= 1 {
			return dir, true
		}
	}
	return "", false
}

// IsArchive reports whether an archive is torch's.
func IsArchive(z *container.Zip) bool {
	_, ok := root(z)
	return ok
}

// Archive reads a zip archive of torch.save into f. A tensor that is the whole archive is called by the parameter whole.
func Archive(z *container.Zip, f *container.File, whole string) error {
	f.Format = "torch.save"
	dir, _ := root(z)
	members := make(map[string]container.Member, len(z.Members))
	for _, m := range z.Members {
		members[m.Name] = m
		if strings.HasPrefix(m.Name, dir+"code/") {
			return hint.Add(errors.New("a TorchScript archive: a program, not a dump"), "save a dict of tensors: torch.save({name: tensor}, FILE)")
		}
	}
	o := &owner{spool: z.Spool(), storage: func(e element, key string, numel int64) (*storage, error) {
		m, ok := members[dir+"data/"+key]
		if !ok {
			return nil, fmt.Errorf("storage %s is not in the archive", plain.Quote(key))
		}
		s := &storage{element: e, data: z.Data(m), bytes: m.Size, key: key}
		if size := e.size(); size > 0 && (numel > m.Size/size || numel*size != m.Size) {
			return nil, fmt.Errorf("storage %s has %d bytes, not %d elements of %s", plain.Quote(key), m.Size, numel, e.d)
		}
		return s, nil
	}}
	if m, ok := members[dir+"byteorder"]; ok {
		switch b, err := z.Start(m, 16); {
		case err != nil:
			return err
		case string(b) == "big":
			o.big = true
		case string(b) != "little":
			return fmt.Errorf("the byte order %.16q", b)
		}
	}
	m := members[dir+pickleName]
	o.pickled = z.Data(m)
	v, _, err := pickle.Load(o.pickled, 0, m.Size, o)
	if err == nil {
		err = flatten(f, v, whole)
	}
	return refused(err)
}

// refused adds to the error of a pickle what to do about it.
func refused(err error) error {
	if errors.As(err, new(*pickle.RefusedError)) {
		return hint.Add(err, "nothing in it was run; save only a dict of tensors: torch.save({name: tensor}, FILE)")
	}
	return err
}

// The stream of torch.save before version 1.6 begins with a pickled magic number.
const legacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

// IsLegacy reports whether a file begins as the stream of old versions does.
func IsLegacy(start []byte) bool {
	return len(start) > 2+len(legacyMagic) && start[0] == 0x80 && string(start[2:2+len(legacyMagic)]) == legacyMagic
}

// Legacy reads the stream of old versions of torch.save: a magic number, the protocol, the system, the object, the keys of the
// storages, each a pickle, and then each storage as its number of elements and its bytes.
func Legacy(r io.ReaderAt, size int64, f *container.File, whole string) error {
	f.Format = "torch.save, legacy"
	spool := &container.Spool{}
	f.Own(spool)
	storages := map[string]*storage{}
	o := &owner{pickled: r, spool: spool, deferred: true}
	at := int64(2 + len(legacyMagic))
	var protocol, system, object, keys any
	for _, into := range []*any{&protocol, &system, &object, &keys} {
		if into == &object {
			o.storage = func(e element, key string, numel int64) (*storage, error) {
				s, known := storages[key]
				if !known {
					room := (size - at) / max(e.size(), 1)
					if numel > room {
						return nil, fmt.Errorf("storage %s of %d elements in a file of %d bytes", plain.Quote(key), numel, size)
					}
					s = &storage{element: e, data: &section{r: r}, bytes: numel * e.size(), key: key}
					storages[key] = s
				}
				if s.element != e || s.bytes != numel*e.size() {
					return nil, fmt.Errorf("storage %s with two dtypes or sizes", plain.Quote(key))
				}
				return s, nil
			}
		}
		v, end, err := pickle.Load(r, at, size, o)
		if err != nil {
			return refused(err)
		}
		*into, at = v, end
	}
	if err := systemOf(system, o); err != nil {
		return err
	}
	list, ok := keys.(*pickle.List)
	if protocol != int64(1001) || !ok {
		return errors.New("a stream of torch.save of another protocol than 1001")
	}
	for _, t := range o.pending {
		t.Big = o.big
	}
	if err := place(list.Items, storages, r, at, size, o.big); err != nil {
		return err
	}
	return flatten(f, object, whole)
}

// section is a storage whose place in the file is known only after the pickle was read.
type section struct {
	r  io.ReaderAt
	at int64
}

func (s *section) ReadAt(p []byte, off int64) (int, error) { return s.r.ReadAt(p, s.at+off) }

// systemOf reads the byte order of the machine that wrote a stream.
func systemOf(system any, o *owner) error {
	d, ok := system.(*pickle.Dict)
	if !ok {
		return errors.New("a stream of torch.save that does not say its byte order")
	}
	for i, k := range d.Keys {
		if k == "little_endian" {
			little, ok := d.Values[i].(bool)
			o.big = !little
			if !ok {
				return errors.New("a stream of torch.save that does not say its byte order")
			}
		}
	}
	return nil
}

// place finds each storage after the pickles, in the order of the keys.
func place(keys []any, storages map[string]*storage, r io.ReaderAt, at, size int64, big bool) error {
	found := 0
	for _, k := range keys {
		key, _ := k.(string)
		s, ok := storages[key]
		if !ok {
			return fmt.Errorf("storage %s belongs to no tensor", plain.Quote(key))
		}
		if s.base != 0 {
			return fmt.Errorf("storage %s twice", plain.Quote(key))
		}
		var count [8]byte
		if _, err := r.ReadAt(count[:], at); err != nil {
			return fmt.Errorf("storage %s: the file ends before it", plain.Quote(key))
		}
		n := binary.LittleEndian.Uint64(count[:])
		if big {
			n = binary.BigEndian.Uint64(count[:])
		}
		at += 8
		if e := s.element; e.unknown != "" {
			return fmt.Errorf("storage %s of dtype %s, which is not read", plain.Quote(key), e.unknown)
		}
		if n != uint64(s.bytes/s.size()) || s.bytes > size-at {
			return fmt.Errorf("storage %s has %d elements, not %d, or the file ends in it", plain.Quote(key), n, s.bytes/s.size())
		}
		s.base = at
		s.data.(*section).at = at
		at += s.bytes
		found++
	}
	if found != len(storages) {
		return fmt.Errorf("%d of %d storages are not in the file", len(storages)-found, len(storages))
	}
	if at != size {
		return fmt.Errorf("%d bytes after the last storage belong to nothing", size-at)
	}
	return nil
}

// Pickle reads a plain pickle, such as a dictionary of numpy arrays, into f.
func Pickle(r io.ReaderAt, size int64, f *container.File, whole string) error {
	f.Format = "pickle"
	spool := &container.Spool{}
	f.Own(spool)
	o := &owner{pickled: r, spool: spool}
	v, end, err := pickle.Load(r, 0, size, o)
	if err != nil {
		return refused(err)
	}
	if end != size {
		return fmt.Errorf("%d bytes after the pickle belong to nothing", size-end)
	}
	return flatten(f, v, whole)
}
