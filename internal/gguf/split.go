package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/tracediff/tracediff/internal/plain"
)

// partName is how gguf-split and the gguf package name the parts of a file: NAME-00001-of-00003.gguf.
var partName = regexp.MustCompile(`^(.*-)([0-9]{5})(-of-([0-9]{5})\.gguf)$`)

// maxParts bounds how many files one GGUF is split into: their names have five digits, and models some hundred at most.
const maxParts = 4096

// Parts are the paths of all parts of the split GGUF of a path, in order; nil for a file name without a part number.
func Parts(path string) []string {
	folder, name := filepath.Split(path)
	m := partName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	n, err := strconv.Atoi(m[4])
	if err != nil || n < 1 || n > maxParts {
		return nil
	}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%s%05d%s", folder, m[1], i+1, m[3]))
	}
	return all
}

// Split is the number of files that f was split into, by f's metadata; 1 without an entry.
func (f *File) Split() int {
	n, ok := f.Number("split.count")
	if !ok || !(n > 1) || n > 1<<16 {
		return 1
	}
	return int(n)
}

// Join adds the tensors of the other parts of a split file to the first part. Statements of the first part, such as an importance matrix, hold
// for all. Parts of different files, or in the wrong order, are an error and leave f unchanged.
func (f *File) Join(parts ...*File) error {
	tensors := f.Tensors[:len(f.Tensors):len(f.Tensors)]
	seen := map[string]int{}
	weighted := f.weighted()
	for i, p := range append([]*File{f}, parts...) {
		if n := p.Split(); n != len(parts)+1 {
			return fmt.Errorf("part %d says that it is one of %d, not of %d", i+1, n, len(parts)+1)
		}
		if no, ok := p.Number("split.no"); !ok || no != float64(i) {
			return fmt.Errorf("part %d says that its number is %v, counted from 0", i+1, no)
		}
		for k := range p.Tensors {
			t := p.Tensors[k]
			if at, twice := seen[t.Name]; twice {
				return fmt.Errorf("parts %d and %d both have %s", at, i+1, plain.Quote(t.Name))
			}
			seen[t.Name] = i + 1
			if t.weighted = weighted; i > 0 {
				tensors = append(tensors, t)
			}
		}
	}
	if n, ok := f.Number("split.tensors.count"); ok && n != float64(len(tensors)) {
		return fmt.Errorf("the parts have %d tensors together, but the first says %v", len(tensors), n)
	}
	f.Tensors = tensors
	return nil
}
