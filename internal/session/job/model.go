package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// Model is a model that is open, and what its files say.
type Model struct {
	Checkpoint  *checkpoint.Checkpoint // with the weights of the port, where these were named
	Digest      string                 // of the weights
	Folder      fs.FS                  // the model directory
	Config      *order.Config          // of an undescribed model, what any config.json says
	Canonical   json.RawMessage        // the configuration as a manifest has it
	Undescribed bool                   // no order describes the model
	DType       hooks.DType            // in which it is computed

	Port    *portweights.Port // nil where no weights of a port were named, or they are the model's
	Kernels *portweights.Port // of a file of the model's own numbers: how an engine may multiply with its formats; nil: none was named
}

// Close closes what was opened of the model.
func (m *Model) Close() error {
	if m.Port == nil {
		return hint.Also(m.Kernels.Close(), m.Checkpoint.Close())
	}
	return hint.Also(m.Port.Close(), m.Port.Original.Close())
}

// Close closes the model.
func (j *Job) Close() error { return j.Model.Close() }

// usePort makes the weights of the port those of the job, where they are named and are not the model's own numbers.
func (j *Job) usePort(ctx context.Context, e *settings.Env) error {
	if j.Settings.Weights == "" || e == nil {
		return nil
	}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return hint.Add(err, "--dir names a folder that can be written to")
	}
	p, err := portweights.Open(ctx, e, &j.Settings, j.Dir, j.Model.Checkpoint)
	if err != nil {
		return err
	}
	if p.Same(j.Model.DType) {
		e.Detail("the weights of %s are the model's own numbers in %s", j.Settings.Weights, j.Model.DType)
		j.Model.Kernels = p
		return nil
	}
	j.Model.Port, j.Model.Checkpoint = p, p.Checkpoint
	if j.Model.Undescribed { // which weights it needs, its program says
		return nil
	}
	if err := gemma.CheckWeights(j.Model.Checkpoint, j.Described()); err != nil {
		return hint.Add(fmt.Errorf("--weights %s: %w", j.Settings.Weights, err), portweights.Hint)
	}
	return nil
}
