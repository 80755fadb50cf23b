package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// large writes a checkpoint of one file that is larger than what is hashed as a whole: its last tensor is all zeros, of which no
// byte stands on the disk.
func large(t *testing.T) (dir, file string) {
	t.Helper()
	dir = checkpointtest.Write(t, t.TempDir(), []byte("{}"), tensors(""), 1)
	file = filepath.Join(dir, "model.safetensors")
	checkpointtest.Enlarge(t, file)
	return dir, file
}

// Large weights have the digest that its definition gives, which is remembered under the schemes that were asked for, and another one after a
// single byte was changed.
func TestDigestOfLargeWeights(t *testing.T) {
	t.Parallel()
	dir, file := large(t)
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Scheme() != checkpoint.Chunked {
		t.Fatalf("%d bytes have the scheme %q", c.Size(), c.Scheme())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := sha256.New()
	for at := 0; at < len(data); at += 8 << 20 {
		part := sha256.Sum256(data[at:min(at+8<<20, len(data))])
		parts.Write(part[:])
	}
	of := func(scheme string, sum []byte) string {
		all := sha256.Sum256([]byte(hex.EncodeToString(sum) + "  model.safetensors\n"))
		return scheme + hex.EncodeToString(all[:])
	}
	whole := sha256.Sum256(data)
	d := checkpoint.NewDigests(filepath.Join(t.TempDir(), "digests.json"))
	for scheme, want := range map[checkpoint.Scheme]string{checkpoint.Chunked: of("chunks:", parts.Sum(nil)), checkpoint.Whole: of("sha256:", whole[:])} {
		var told atomic.Int64
		got, err := d.Compute(context.Background(), c, scheme, func(done, _ int64) { told.Store(done) })
		if err != nil || got != want || told.Load() != c.Size() {
			t.Errorf("%s: %s after %d of %d bytes, %v; want %s", scheme, got, told.Load(), c.Size(), err, want)
		}
		if s, ok := checkpoint.SchemeOf(got); !ok || s != scheme {
			t.Errorf("%s has the scheme %q", got, s)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = checkpoint.Open(dir); err != nil {
		t.Fatal(err)
	}
	if got, ok := d.Cached(c, checkpoint.Chunked); !ok || got != of("chunks:", parts.Sum(nil)) {
		t.Errorf("remembered %q", got)
	}
	if got, ok := d.Cached(c, checkpoint.Whole); !ok || got != of("sha256:", whole[:]) {
		t.Errorf("remembered %q beside it", got)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{1}, int64(len(data)-1))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if c, err = checkpoint.Open(dir); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, ok := d.Cached(c, checkpoint.Chunked); ok {
		t.Errorf("%s is remembered of a file that was changed", got)
	}
	if got := c.Digest(); got == of("chunks:", parts.Sum(nil)) {
		t.Errorf("another byte, and still %s", got)
	}
}

// What is no digest has no scheme.
func TestSchemeOf(t *testing.T) {
	for _, text := range []string{"", "unknown", "sha256:", "chunks:", "md5:00", "sha256:abc", "chunks:" + hex.EncodeToString(make([]byte, 31))} {
		if s, ok := checkpoint.SchemeOf(text); ok {
			t.Errorf("%q has the scheme %q", text, s)
		}
	}
}
