package session

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Embedded is the checkpoint that runs when no model is named.
const Embedded = "gemma3n-tiny"

// DigestLimit is the size up to which weights are hashed at every run: a tenth of a second. Of larger ones the digest is
// known when a reference was made of them here, and else "unknown", which no comparison gates on.
const DigestLimit = 128 << 20

// Close closes the model.
func (j *Job) Close() error {
	if j.port == nil {
		return j.ck.Close()
	}
	return hint.Also(j.port.Close(), j.port.original.Close())
}

// knownWeights sets the digest of the weights where that costs no second: of small ones, and of those that were hashed
// when a reference was made of them and have not changed since.
func (j *Job) knownWeights() {
	j.weights = "unknown"
	if j.ck.Size() <= DigestLimit {
		j.weights = j.ck.Digest()
	} else if sum, ok := checkpoint.NewDigests(j.digests()).Cached(j.ck); ok {
		j.weights = sum
	}
}

// digests is where the digests of weight files are remembered.
func (j *Job) digests() string { return filepath.Join(j.dir, "digests.json") }

// hashWeights makes the digest known: a reference that is stored has to say of which weights it is.
func (j *Job) hashWeights(ctx context.Context, e *Env) (err error) {
	if j.weights != "unknown" {
		return nil
	}
	const mega = 1e6
	p := e.progress("hashing the weights", "MB", nil)
	defer p.Done()
	j.weights, err = checkpoint.NewDigests(j.digests()).Compute(ctx, j.ck, func(done, all int64) {
		p.Step(0, 1, int(done/mega), int(all/mega))
	})
	return err
}

// usePort makes the weights of the port those of the job, where they are named and are not the model's own numbers.
func (j *Job) usePort(ctx context.Context, e *Env) error {
	if j.Weights == "" || e == nil {
		return nil
	}
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return hint.Add(err, "--dir names a folder that can be written to")
	}
	p, err := openPort(ctx, e, &j.Settings, j.dir, j.ck)
	if err != nil {
		return err
	}
	if p.same(j.dtype) {
		e.detail("the weights of %s are the model's own numbers in %s", j.Weights, j.dtype)
		return p.Close()
	}
	j.port, j.ck = p, p.ck
	if j.undescribed { // which weights it needs, its program says
		return nil
	}
	if err := gemma.CheckWeights(j.ck, j.described()); err != nil {
		return hint.Add(fmt.Errorf("--weights %s: %w", j.Weights, err), portHint)
	}
	return nil
}

// openModel opens the model.
func (j *Job) openModel() (err error) {
	if j.Model == "" {
		if j.folder, err = fs.Sub(fixtures.Files, Embedded); err != nil {
			return err
		}
		j.ck, err = checkpoint.OpenFS("fixtures/"+Embedded, j.folder)
		return err
	}
	j.folder = os.DirFS(j.Model)
	if j.ck, err = checkpoint.Open(j.Model); err != nil {
		return fmt.Errorf("%s: %w", j.Model, err)
	}
	return nil
}

// readModelConfig reads a directory's config.json alone; an empty dir is the embedded checkpoint.
func readModelConfig(dir string) (*order.Config, error) {
	var data []byte
	var err error
	if dir == "" {
		data, err = fs.ReadFile(fixtures.Files, Embedded+"/"+checkpoint.ConfigFile)
	} else {
		data, err = checkpoint.ReadConfig(os.DirFS(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return order.ReadConfig(data)
}
