package proven

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// clearance is a cached result: a large reference trace has cleared an order, because transformers' arithmetic
// reproduced every element of the trace for every form of the order. Computing the result takes as long as
// isolating the port. The cache holds a single digest of every dependency, so it can only clear a whole order. A
// reference with less is isolated again each time, and so is a reference with an unknown dependency.
//
// What it saves: a port of SmolLM2-135M that is wrong in layer 10 of 30, with a trace of 127 MiB, is compared in 11.9 s
// of processor time in place of 17.8 s; with the certificates of [Remember] too, in 8.8 s. What it costs: a digest of the
// program in each such run, 0.2 s, and a file of some hundred bytes a reference. Digests of traces and weights are kept.
//
// The file is unprotected against anybody with write access to the user's cache folder, like the cached digests of
// weights. The possible damage is limited: a forged file never excuses an operation. At worst, an operation may
// produce a BUG, or be called right, without having reproduced the reference.
type clearance struct {
	file string // all that is remembered: digests, by the path of the trace
	path string
	sum  string
}

// clearedFile is in the user's cache folder.
const (
	clearedFile = "cleared.json"
	maxCleared  = 1 << 20
)

// Clearing is the question whether the trace of a run clears a list.
type Clearing struct {
	Env    *settings.Env
	Of     string // identifies the list
	List   *order.List
	Trace  *capture.Trace
	Before string // what [LargeTrace] gave before the trace was opened
}

// by returns the clearance for a checkpoint's weights. It returns nil if the weights and the trace are small, if
// their digests are unknown, if the trace changed since it was opened, or if the user has no cache folder.
func (c *Clearing) by(ctx context.Context, ck *checkpoint.Checkpoint) *clearance {
	t := c.Trace
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	path, err := filepath.Abs(t.Path())
	if err != nil {
		return nil
	}
	trace := LargeTrace(path, ck)
	if trace == "" || trace != c.Before {
		return nil
	}
	scheme, ok := checkpoint.SchemeOf(t.Manifest().Weights)
	if !ok {
		return nil
	}
	weights, err := origin.Digest(ctx, c.Env, ck, scheme)
	if err != nil || weights != t.Manifest().Weights {
		return nil
	}
	program, err := c.Env.Process.Sum()
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "a list cleared by a reference, 1\nlist %s\nconfig %x\ntrace %s\nweights %s\nprogram %s\nprocessor %v %v\n",
		c.Of, sha256.Sum256(ck.Config()), trace, weights, program, cpu.X86, cpu.ARM64))
	return &clearance{filepath.Join(dir, "tracediff", clearedFile), path, hex.EncodeToString(sum[:])}
}

// LargeTrace is the SHA-256 of a trace in hexadecimal; empty where the weights and the trace are not large together, or it cannot be read.
func LargeTrace(path string, ck *checkpoint.Checkpoint) string {
	info, err := os.Stat(path)
	if err != nil || info.Size()+ck.Size() <= checkpoint.Large {
		return ""
	}
	sum, err := checkpoint.UserDigests().File(path)
	if err != nil {
		return ""
	}
	return sum
}

// Certified returns the operations certified by the trace: all operations, if a clearance is cached, and otherwise
// the result of certify.
func (c *Clearing) Certified(ctx context.Context, ck *checkpoint.Checkpoint, certify func() (isolate.Certified, error)) (isolate.Certified, error) {
	is := c.by(ctx, ck)
	if is != nil && is.load()[is.path] == is.sum {
		c.Env.Detail("%s cleared every operation in an earlier run: %s", plain.Text(c.Trace.Path()), plain.Text(is.file))
		return isolate.Cleared(c.List), nil
	}
	own, err := certify()
	if err != nil || is == nil || !own.Clears(c.List) {
		return own, err
	}
	again, err := checkpoint.Open(ck.Name())
	if err != nil { // what was isolated holds; it is not kept
		return own, nil
	}
	// Keep the result only if the files did not change during certify: otherwise nobody knows which weights cleared
	// the list.
	if now := c.by(ctx, again); now != nil && *now == *is && is.keep() == nil {
		c.Env.Detail("%s cleared every operation, which is remembered: %s", plain.Text(c.Trace.Path()), plain.Text(is.file))
	}
	if err := again.Close(); err != nil {
		return nil, fmt.Errorf("closing %s, which was opened again: %w", ck.Name(), err)
	}
	return own, nil
}

// load is what is remembered; nothing of a file that cannot be read.
func (c *clearance) load() map[string]string {
	all := map[string]string{}
	data, err := files.Read(c.file, maxCleared)
	if err != nil || json.Unmarshal(data, &all) != nil || all == nil {
		return map[string]string{}
	}
	return all
}

// keep writes the cache file atomically, and creates its folder. It drops the entries of deleted traces.
func (c *clearance) keep() error {
	all := c.load()
	maps.DeleteFunc(all, func(trace, _ string) bool {
		_, err := os.Stat(trace)
		return errors.Is(err, fs.ErrNotExist)
	})
	all[c.path] = c.sum
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o777); err != nil {
		return err
	}
	return files.Write(c.file, append(text, '\n'))
}
