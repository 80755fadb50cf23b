package gguf

import (
	"fmt"
)

// maxElements bounds the bytes of the strings of one array that is read: the largest vocabularies and their merges have some 10 MB.
const maxElements = 128 << 20

// open returns a scanner at the elements of an array, and how many there are; nil where there is no array of that name.
func (f *File) open(key string) (s *scanner, a Array) {
	field, _ := f.Field(key)
	a, ok := field.Value.(Array)
	if !ok {
		return nil, a
	}
	return &scanner{r: f.data, size: f.size, at: f.elements[key], kept: maxElements}, a
}

// Texts reads the elements of an array of strings, which may have control characters. If the file has no such array, Texts returns nil and no error.
func (f *File) Texts(key string) ([]string, error) {
	s, a := f.open(key)
	if s == nil {
		return nil, nil
	}
	if a.Kind != kinds[text].name {
		return nil, fmt.Errorf("%s: elements of %s, want strings", key, a.Kind)
	}
	texts := make([]string, 0, min(a.Len, maxSkipped)) // no more were skipped
	for range a.Len {
		one, err := s.text(maxText)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		texts = append(texts, one)
	}
	return texts, nil
}

// Numbers reads the elements of an array of numbers. It returns nil without an error for a key without such an array.
func (f *File) Numbers(key string) ([]float64, error) {
	s, a := f.open(key)
	if s == nil {
		return nil, nil
	}
	if a.Len > maxSkipped {
		return nil, fmt.Errorf("%s: %d elements, more than %d", key, a.Len, maxSkipped)
	}
	for _, k := range kinds {
		if k.name != a.Kind || k.read == nil {
			continue
		}
		numbers := make([]float64, 0, a.Len) // the header has been read past as many
		for range a.Len {
			if err := s.bytes(s.number[:k.size]); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			n, _ := number(k.read(s.number[:]))
			numbers = append(numbers, n)
		}
		return numbers, nil
	}
	return nil, fmt.Errorf("%s: elements of %s, want numbers", key, a.Kind)
}
