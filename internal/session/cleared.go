package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/order"
)

// clearance is where it is remembered that a large reference has cleared a list: that transformers' arithmetic gave every element of its trace,
// for every form of an operation of the list. To see that takes as long as to isolate the port. What is remembered is one digest of all that it
// depends on, so it can only clear a whole list. A reference that clears less is computed again each time, and so is one of which a part is not known.
//
// Nothing protects the file from who can write the user's cache folder, as nothing protects the digests of weights there. It never
// excuses an operation: of what it says, the worst is that an operation may accuse or be called right without having reproduced the reference.
type clearance struct {
	file  string // all that is remembered: digests, by the path of the trace
	trace string
	sum   string
}

// clearedFile is in the user's cache folder.
const (
	clearedFile = "cleared.json"
	maxCleared  = 1 << 20
)

// clearanceOf is that of a list by the trace of a run, of a checkpoint's weights; nil where the two are small, where it is not known what they
// are, where the trace is not what it was before it was opened, or where nothing can be remembered. of identifies the list.
func clearanceOf(ctx context.Context, e *Env, of, before string, t *capture.Trace, ck *checkpoint.Checkpoint) *clearance {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	path, err := filepath.Abs(t.Path())
	if err != nil {
		return nil
	}
	trace := largeTrace(path, ck)
	if trace == "" || trace != before {
		return nil
	}
	scheme, ok := checkpoint.SchemeOf(t.Manifest().Weights)
	if !ok {
		return nil
	}
	weights, err := weightsDigest(ctx, e, ck, scheme)
	if err != nil || weights != t.Manifest().Weights {
		return nil
	}
	program, err := executable()
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "a list cleared by a reference, 1\nlist %s\nconfig %x\ntrace %s\nweights %s\nprogram %s\nprocessor %v %v\n",
		of, sha256.Sum256(ck.Config()), trace, weights, program, cpu.X86, cpu.ARM64))
	return &clearance{filepath.Join(dir, "tracediff", clearedFile), path, hex.EncodeToString(sum[:])}
}

// largeTrace is the SHA-256 of a trace in hexadecimal; empty where the weights and the trace are not large together, or it cannot be read.
func largeTrace(path string, ck *checkpoint.Checkpoint) string {
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

// cleared is what a reference certifies of a list: all of it, where that is remembered, and else what certify finds. before is what
// largeTrace gave before the trace was opened.
func cleared(ctx context.Context, e *Env, of, before string, list *order.List, t *capture.Trace, ck *checkpoint.Checkpoint, certify func() (isolate.Certified, error)) (isolate.Certified, error) {
	c := clearanceOf(ctx, e, of, before, t, ck)
	if c != nil && c.load()[c.trace] == c.sum {
		e.detail("%s has cleared every operation before: %s", plain.Text(t.Path()), plain.Text(c.file))
		return isolate.Cleared(list), nil
	}
	own, err := certify()
	if err != nil || c == nil || !own.Clears(list) {
		return own, err
	}
	again, err := checkpoint.Open(ck.Name())
	if err != nil { // what was isolated holds; it is not kept
		return own, nil
	}
	// What was read is what was looked at before, or nobody knows what cleared the list.
	if now := clearanceOf(ctx, e, of, before, t, again); now != nil && *now == *c && c.keep() == nil {
		e.detail("%s has cleared every operation, which is kept: %s", plain.Text(t.Path()), plain.Text(c.file))
	}
	if err := again.Close(); err != nil {
		return nil, fmt.Errorf("closing %s, which was looked at again: %w", ck.Name(), err)
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

// keep writes the file, whole or not at all, and makes its folder. Traces that are gone are forgotten.
func (c *clearance) keep() error {
	all := c.load()
	maps.DeleteFunc(all, func(trace, _ string) bool {
		_, err := os.Stat(trace)
		return errors.Is(err, fs.ErrNotExist)
	})
	all[c.trace] = c.sum
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o777); err != nil {
		return err
	}
	return files.Write(c.file, append(text, '\n'))
}

// started is the program's file when it began to run.
var started, errStarted = os.Stat(executablePath())

// executablePath is where the program lies that runs. Linux has it there also when another one has taken its place.
func executablePath() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// executable is the SHA-256 of the program that runs, in hexadecimal. The error is of one that is not the one that was started.
func executable() (string, error) {
	if errStarted != nil {
		return "", errStarted
	}
	f, info, err := files.Open(executablePath())
	if err != nil {
		return "", err
	}
	defer f.Close()
	if !os.SameFile(info, started) || info.Size() != started.Size() || !info.ModTime().Equal(started.ModTime()) {
		return "", errors.New("another program has taken the place of the one that runs")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
