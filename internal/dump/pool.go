package dump

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tracediff/tracediff/internal/files"
)

// maxOpen bounds how many files of a folder are open at a time: a folder can have more than a process may open.
const maxOpen = 64

// pool keeps the files open that were read last.
type pool struct {
	mu   sync.Mutex
	open map[*lazy]*os.File
	last []*lazy // the least recently opened first
}

// lazy is a file that is opened where it is read.
type lazy struct {
	pool *pool
	path string
	info os.FileInfo
}

// add returns a file that is read through the pool. It records the file's identity: a later change is an error.
func (p *pool) add(path string) (*lazy, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, files.Irregular(path, info.Mode())
	}
	return &lazy{pool: p, path: path, info: info}, nil
}

// size is the file's, when it was first seen.
func (l *lazy) size() int64 { return l.info.Size() }

// ReadAt implements [io.ReaderAt]. The pool stays locked during the read, so no other reader closes the file.
func (l *lazy) ReadAt(b []byte, off int64) (int, error) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	f, err := l.pool.get(l)
	if err != nil {
		return 0, err
	}
	return f.ReadAt(b, off)
}

func (p *pool) get(l *lazy) (*os.File, error) {
	if f, ok := p.open[l]; ok {
		return f, nil
	}
	if p.open == nil {
		p.open = map[*lazy]*os.File{}
	}
	if len(p.last) >= maxOpen {
		oldest := p.last[0]
		err := p.open[oldest].Close()
		delete(p.open, oldest)
		if p.last = p.last[1:]; err != nil {
			return nil, err
		}
	}
	f, info, err := files.Open(l.path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, l.info) || info.Size() != l.info.Size() || !info.ModTime().Equal(l.info.ModTime()) {
		f.Close()
		return nil, fmt.Errorf("%s has changed since it was first read", l.path)
	}
	p.open[l] = f
	p.last = append(p.last, l)
	return f, nil
}

// Close closes the files.
func (p *pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []error
	for _, f := range p.open {
		all = append(all, f.Close())
	}
	p.open, p.last = nil, nil
	return errors.Join(all...)
}
