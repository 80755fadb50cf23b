package session

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Embedded is the checkpoint that runs when no model is named.
const Embedded = "gemma3n-tiny"

// Close closes the model.
func (j *Job) Close() error {
	if j.port == nil {
		return hint.Also(j.kernels.Close(), j.ck.Close())
	}
	return hint.Also(j.port.Close(), j.port.original.Close())
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
		j.kernels = p
		return nil
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
