// Package notebook keeps what was found in a folder of JSON files, by digests of all that it was found by, for the next run of the program.
//
// Nothing protects the files from who can write the user's cache folder: what stands there is believed. What cannot be read is nothing known.
package notebook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/internal/files"
)

const (
	maxFile    = 64 << 20
	maxEntries = 1 << 15 // in one file; each is some 600 bytes
	maxFiles   = 16
)

// Store is one file with the results of one subject, such as a program and a model. Several goroutines may use a Store.
type Store struct {
	path string

	mu      sync.Mutex
	all     map[string]json.RawMessage // by digest, in hexadecimal
	asked   map[string]bool            // what this run asked for, or found
	found   int
	changed bool
}

// Open reads the file of a subject in a folder. Any text identifies a subject. The folder need not exist.
func Open(folder, subject string) *Store {
	sum := sha256.Sum256([]byte(subject))
	s := &Store{path: filepath.Join(folder, hex.EncodeToString(sum[:])+".json"), asked: map[string]bool{}}
	data, err := files.Read(s.path, maxFile)
	if err != nil || json.Unmarshal(data, &s.all) != nil || s.all == nil {
		s.all = map[string]json.RawMessage{}
	}
	return s
}

// Load reports whether something is known by a digest, which into then has.
func (s *Store) Load(k [sha256.Size]byte, into any) bool {
	name := hex.EncodeToString(k[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.all[name]
	if !ok || json.Unmarshal(data, into) != nil {
		return false
	}
	s.asked[name] = true
	s.found++
	return true
}

// Keep keeps what was found. What JSON does not hold is not kept.
func (s *Store) Keep(k [sha256.Size]byte, found any) {
	data, err := json.Marshal(found)
	if err != nil {
		return
	}
	name := hex.EncodeToString(k[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name], s.asked[name], s.changed = data, true, true
}

// Found is how often something was known.
func (s *Store) Found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// Save writes the file, whole or not at all, and makes its folder. Of too much, what this run asked for is kept. The files of subjects that were
// not written to for the longest time are removed where there are too many.
func (s *Store) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed {
		return nil
	}
	if len(s.all) > maxEntries {
		maps.DeleteFunc(s.all, func(name string, _ json.RawMessage) bool { return !s.asked[name] })
	}
	text, err := json.Marshal(s.all)
	if err != nil {
		return fmt.Errorf("keeping what was found: %w", err)
	}
	folder := filepath.Dir(s.path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("keeping what was found: %w", err)
	}
	if len(text) > maxFile {
		return nil
	}
	if err := files.Write(s.path, text); err != nil {
		return fmt.Errorf("keeping what was found: %w", err)
	}
	s.changed = false
	return prune(folder)
}

// prune removes the oldest files of a folder.
func prune(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("keeping what was found: %w", err)
	}
	var all []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, old := range all[min(maxFiles, len(all)):] {
		if err := os.Remove(filepath.Join(folder, old.Name())); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("keeping what was found: %w", err)
		}
	}
	return nil
}
