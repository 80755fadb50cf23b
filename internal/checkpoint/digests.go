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

// NewDigests is the cache at a path, which need not be there.
func NewDigests(path string) Digests { return Digests{path} }

// hashed is one remembered file.
type hashed struct {
	identity
	Digest string `json:"sha256"`
}

// identity is what changes when a file is written, as far as the system says.
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
	hashStep   = 16 << 20 // between two reports of progress, and two looks at ctx
	// settle is how long a file has to be unchanged before its digest is remembered: writes within one tick of a file
	// system's clock leave the same times. The coarsest clock in use, of FAT, ticks every two seconds.
	settle = 2 * time.Second
)

// Cached returns the digest of the checkpoint's weights, see [Checkpoint.Digest], when every file is remembered and has not
// changed since. An embedded checkpoint has no files.
func (d Digests) Cached(c *Checkpoint) (string, bool) {
	files := d.load()
	var sums []string
	for _, s := range c.sorted() {
		path, err := c.path(s)
		if err != nil {
			return "", false
		}
		known, ok := files[path]
		if !ok || s.mapped == nil || known.identity != s.identity {
			return "", false
		}
		sums = append(sums, known.Digest)
	}
	return c.combine(sums), true
}

// Compute hashes the weights and remembers the digests. It tells progress of bytes done and in all. A file that changes
// while it is read is an error.
func (d Digests) Compute(ctx context.Context, c *Checkpoint, progress func(done, all int64)) (string, error) {
	files := d.load()
	var sums []string
	var before int64
	for _, s := range c.sorted() {
		path, err := c.path(s)
		if err != nil {
			return "", err
		}
		if err := rest(ctx, s); err != nil {
			return "", err
		}
		sum, err := s.hash(ctx, func(n int64) { progress(before+n, c.Size()) })
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err != nil || identify(info) != s.identity {
			return "", errors.Join(fmt.Errorf("hashing the weights: %s was changed since it was opened", s.name), err)
		}
		before += int64(len(s.data))
		sums = append(sums, sum)
		files[path] = hashed{s.identity, sum}
	}
	return c.combine(sums), d.save(files)
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
	if known, ok := all[path]; ok && known.identity == id {
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
	if time.Since(time.Unix(0, max(id.Written, id.Status))) > settle {
		all[path] = hashed{id, digest}
		_ = d.save(all)
	}
	return digest, nil
}

// rest waits until a file that was only just written can no longer be written within the same tick of its clock.
func rest(ctx context.Context, s shard) error {
	last := time.Unix(0, max(s.identity.Written, s.identity.Status))
	wait := min(settle-time.Since(last), settle) // a time in the future waits no longer
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

// hash reads a weight file once. What was read is let go of, so that a checkpoint takes no memory of its size.
func (s shard) hash(ctx context.Context, progress func(int64)) (string, error) {
	sum := sha256.New()
	for at := 0; at < len(s.data); at += hashStep {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		end := min(at+hashStep, len(s.data))
		sum.Write(s.data[at:end])
		s.release()
		progress(int64(end))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
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

// combine is the digest of the text that sha256sum prints for the files.
func (c *Checkpoint) combine(sums []string) string {
	all := sha256.New()
	for i, s := range c.sorted() {
		fmt.Fprintf(all, "%s  %s\n", sums[i], s.name)
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil))
}

func (d Digests) load() map[string]hashed {
	files := map[string]hashed{}
	data, err := ReadFile(os.DirFS(filepath.Dir(d.path)), filepath.Base(d.path), maxDigests)
	if err != nil || json.Unmarshal(data, &files) != nil {
		return map[string]hashed{}
	}
	for path, f := range files {
		if b, err := hex.DecodeString(f.Digest); err != nil || len(b) != sha256.Size {
			delete(files, path)
		}
	}
	return files
}

// save writes the file, whole or not at all, and makes its folder. Files that are gone are forgotten.
func (d Digests) save(all map[string]hashed) error {
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
