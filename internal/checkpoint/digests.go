package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracediff/tracediff/internal/files"
)

// Digests remembers the digests of weight files and of stored traces in a JSON file, since reading gigabytes again takes seconds. A file is the
// one that was hashed while its path, size, times and, where the system has them, inode and time of status change are the
// same. What cannot be read of the JSON is nothing remembered.
type Digests struct{ path string }

// NewDigests is the cache at a path, which need not be there. Nothing is remembered at an empty path.
func NewDigests(path string) Digests { return Digests{path} }

// UserDigests is the cache of weight files in the user's cache folder, which hooks/python reads and writes, too. Where the system names no
// such folder nothing is remembered.
func UserDigests() Digests {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Digests{}
	}
	return Digests{filepath.Join(dir, "tracediff", "digests.json")}
}

// hashed is one remembered file.
type hashed struct {
	identity
	Digest string `json:"sha256,omitempty"`
	Chunks string `json:"chunks,omitempty"`
}

// of is the remembered digest of a scheme; empty for none.
func (h *hashed) of(s Scheme) *string {
	if s == Chunked {
		return &h.Chunks
	}
	return &h.Digest
}

// identity changes when a file is written, as far as the system tells.
type identity struct {
	Size    int64  `json:"size"`
	Written int64  `json:"mtime_ns"`
	Status  int64  `json:"ctime_ns,omitempty"` // also when a writer sets the time back
	Inode   uint64 `json:"inode,omitempty"`
	Device  uint64 `json:"device,omitempty"`
}

func identify(info fs.FileInfo) identity {
	id := identity{Size: info.Size(), Written: info.ModTime().UnixNano()}
	id.system(info)
	return id
}

const (
	maxDigests = 16 << 20 // some 50,000 files
	// settle is how long a file has to be unchanged before its digest is remembered: writes within one tick of a file
	// system's clock leave the same times. The coarsest clock in use, of FAT, ticks every two seconds.
	settle = 2 * time.Second
)

// Cached returns the digest of the checkpoint's weights, if every file is remembered and has not changed since. An embedded checkpoint
// has no files.
func (d Digests) Cached(c *Checkpoint, scheme Scheme) (string, bool) {
	if known, ok := c.known.Load(scheme); ok {
		return known.(string), true
	}
	all := d.load()
	var sums []string
	for _, s := range c.sorted() {
		sum := d.cached(c, s, scheme, all)
		if sum == "" {
			return "", false
		}
		sums = append(sums, sum)
	}
	sum := c.combine(scheme, sums)
	c.known.Store(scheme, sum)
	return sum, true
}

func (d Digests) cached(c *Checkpoint, s shard, scheme Scheme, all map[string]hashed) string {
	path, err := c.path(s)
	if err != nil || s.mapped == nil {
		return ""
	}
	known, ok := all[path]
	if !ok || known.identity != s.identity {
		return ""
	}
	return *known.of(scheme)
}

// Compute is the digest of the checkpoint's weights: of files that are not remembered every byte is read. What was hashed is remembered where
// the cache can be written. It tells progress of bytes done and in all. A file that changes while it is read is an error.
func (d Digests) Compute(ctx context.Context, c *Checkpoint, scheme Scheme, progress func(done, all int64)) (string, error) {
	if sum, ok := d.Cached(c, scheme); ok {
		return sum, nil
	}
	all := d.load()
	var sums []string
	var before int64
	for _, s := range c.sorted() {
		sum := d.cached(c, s, scheme, all)
		if sum == "" {
			var err error
			if sum, err = d.compute(ctx, c, s, scheme, all, func(n int64) { progress(before+n, c.Size()) }); err != nil {
				return "", err
			}
		}
		before += int64(len(s.data))
		sums = append(sums, sum)
	}
	_ = d.save(all)
	sum := c.combine(scheme, sums)
	c.known.Store(scheme, sum)
	return sum, nil
}

// compute hashes one file, and adds it to what is remembered.
func (d Digests) compute(ctx context.Context, c *Checkpoint, s shard, scheme Scheme, all map[string]hashed, progress func(int64)) (string, error) {
	if d.path != "" && s.mapped != nil {
		if err := rest(ctx, s.identity); err != nil {
			return "", err
		}
	}
	sum, err := s.hash(ctx, scheme, progress)
	if err != nil || s.mapped == nil {
		return sum, err
	}
	path, err := c.path(s)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || identify(info) != s.identity {
		return "", errors.Join(fmt.Errorf("hashing the weights: %s was changed since it was opened", s.name), err)
	}
	h := all[path]
	if h.identity != s.identity {
		h = hashed{identity: s.identity}
	}
	*h.of(scheme) = sum
	all[path] = h
	return sum, nil
}

// File returns the SHA-256 of a regular file in hexadecimal, from memory where the file is the one that was hashed. A file
// that was only just written is hashed and not remembered, see settle. That the cache cannot be written is no error: the
// file is hashed again the next time.
func (d Digests) File(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, info, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	all, id := d.load(), identify(info)
	if known, ok := all[path]; ok && known.identity == id && known.Digest != "" {
		return known.Digest, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if info, err := f.Stat(); err != nil || identify(info) != id {
		return "", errors.Join(fmt.Errorf("%s was changed while it was hashed", path), err)
	}
	if sinceWritten(id) > settle {
		all[path] = hashed{identity: id, Digest: digest}
		_ = d.save(all)
	}
	return digest, nil
}

// rest waits until a file that was only just written can no longer be written within the same tick of its clock.
func rest(ctx context.Context, id identity) error {
	wait := min(settle-sinceWritten(id), settle) // a time in the future waits no longer
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

func sinceWritten(id identity) time.Duration {
	return time.Since(time.Unix(0, max(id.Written, id.Status)))
}

// sorted returns the weight files by name.
func (c *Checkpoint) sorted() []shard {
	shards := slices.Clone(c.shards)
	slices.SortFunc(shards, func(a, b shard) int { return strings.Compare(a.name, b.name) })
	return shards
}

// path is where a weight file stands, the same from every folder.
func (c *Checkpoint) path(s shard) (string, error) {
	return filepath.Abs(filepath.Join(c.name, s.name))
}

func (d Digests) load() map[string]hashed {
	files := map[string]hashed{}
	if d.path == "" {
		return files
	}
	data, err := ReadFile(os.DirFS(filepath.Dir(d.path)), filepath.Base(d.path), maxDigests)
	if err != nil || json.Unmarshal(data, &files) != nil {
		return map[string]hashed{}
	}
	for path, f := range files {
		if !isSum(f.Digest) || !isSum(f.Chunks) || f.Digest == "" && f.Chunks == "" {
			delete(files, path)
		}
	}
	return files
}

// isSum reports whether a text is a digest in hexadecimal, or none.
func isSum(text string) bool {
	b, err := hex.DecodeString(text)
	return text == "" || err == nil && len(b) == sha256.Size
}

// save writes the file, whole or not at all, and makes the folder. Digests of deleted files are dropped.
func (d Digests) save(all map[string]hashed) error {
	if d.path == "" {
		return nil
	}
	for path := range all {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			delete(all, path)
		}
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o777); err != nil {
		return fmt.Errorf("remembering digests: %w", err)
	}
	if err := files.Write(d.path, append(text, '\n')); err != nil {
		return fmt.Errorf("remembering digests: %w", err)
	}
	return nil
}
