package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/internal/cores"
)

// Scheme is a way to identify weights by content, and the prefix of its digests.
type Scheme string

// The schemes. Each identifies a checkpoint by the SHA-256 of one line a weight file, in the order of their names: the digest of the file in
// hexadecimal, two spaces, its name. hooks/python has the same.
const (
	// Whole is the digest of a file as sha256sum has it.
	Whole Scheme = "sha256:"
	// Chunked is the SHA-256 of the SHA-256 digests, 32 bytes each, of the file's chunks of 8 MiB. The last chunk may be shorter. Chunks are
	// hashed on all cores.
	Chunked Scheme = "chunks:"
)

// Large is the size of weights beyond which their digest is Chunked; up to it, it is Whole, which takes a tenth of a second at most.
const Large = 128 << 20

const (
	chunk    = 8 << 20
	hashStep = chunk // between two reports of progress, and two looks at ctx
)

// SchemeOf is the scheme of a digest; ok is false for any other text.
func SchemeOf(digest string) (s Scheme, ok bool) {
	for _, s := range []Scheme{Whole, Chunked} {
		if sum, ok := strings.CutPrefix(digest, string(s)); ok && sum != "" && isSum(sum) {
			return s, true
		}
	}
	return "", false
}

// Scheme is the one that identifies the weights: by their size.
func (c *Checkpoint) Scheme() Scheme {
	if c.Size() > Large {
		return Chunked
	}
	return Whole
}

// Digest identifies the weights by content, in their own scheme. It reads every byte, once.
func (c *Checkpoint) Digest() string {
	sum, err := Digests{}.Compute(context.Background(), c, c.Scheme(), func(int64, int64) {})
	if err != nil { // a file that was changed under our hands
		return "unknown"
	}
	return sum
}

// combine is the digest of the weights, from those of the files.
func (c *Checkpoint) combine(scheme Scheme, sums []string) string {
	all := sha256.New()
	for i, s := range c.sorted() {
		fmt.Fprintf(all, "%s  %s\n", sums[i], s.name)
	}
	return string(scheme) + hex.EncodeToString(all.Sum(nil))
}

// hash is the digest of a file in hexadecimal. What was read is let go of, so that a checkpoint takes no memory of its size.
func (s shard) hash(ctx context.Context, scheme Scheme, progress func(int64)) (string, error) {
	if scheme == Chunked {
		return s.hashChunks(ctx, progress)
	}
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

// hashChunks hashes the chunks of a file on all cores. Progress is told by one goroutine at a time.
func (s shard) hashChunks(ctx context.Context, progress func(int64)) (string, error) {
	n := (len(s.data) + chunk - 1) / chunk
	sums := make([][sha256.Size]byte, n)
	var told sync.Mutex
	var done int64
	cores.Each(n, func(at int) {
		if ctx.Err() != nil {
			return
		}
		part := s.data[at*chunk : min((at+1)*chunk, len(s.data))]
		sums[at] = sha256.Sum256(part)
		s.release()
		told.Lock()
		defer told.Unlock()
		done += int64(len(part))
		progress(done)
	})
	all := sha256.New()
	for i := range sums {
		all.Write(sums[i][:])
	}
	return hex.EncodeToString(all.Sum(nil)), ctx.Err()
}
