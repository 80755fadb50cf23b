package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// writeFloor measures the noise floor of a job's passes and writes it to path, whole or not at all: the walk with every
// rounding point against the walk with none. rounded is the trace of the first, which the caller keeps; nil: it is made. What is made here
// is kept only while it runs. The passes are replayed, so that both walk over the same tokens.
func writeFloor(ctx context.Context, e *Env, j reference.Job, rounded *capture.Trace, path string) (err error) {
	if err := files.Replaceable(path); err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	dir, release, err := makeRunFolder(filepath.Dir(path), "floor-", ".tmp")
	if err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	defer func() {
		err = hint.Also(err, os.RemoveAll(dir))
		release()
	}()
	sides := [2]*capture.Trace{rounded}
	for i, exact := range []bool{false, true} {
		if sides[i] != nil {
			continue
		}
		j.Exact, j.NewTokens, j.Registry = exact, 0, nil
		j.Path = filepath.Join(dir, fmt.Sprintf("%d.safetensors", i))
		what := "measuring the noise floor"
		if rounded == nil {
			what = fmt.Sprintf("measuring the noise floor, walk %d of 2", i+1)
		}
		p := e.progress(what, "entry", growing(j.Path))
		j.Progress = p.Step
		_, err := reference.Walk(ctx, j)
		p.Done()
		if err != nil {
			return fmt.Errorf("measuring the noise floor: %w", err)
		}
		if sides[i], err = capture.Open(j.Path); err != nil {
			return fmt.Errorf("measuring the noise floor: %w", err)
		}
		defer sides[i].Close()
	}
	p := e.progress("measuring the noise floor, comparing", "entry", sides[1].BytesRead)
	result, err := compare.Run(ctx, sides[0], sides[1], compare.Options{Order: j.List, All: true, Progress: p.Step})
	p.Done()
	if err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	floor, err := compare.NewNoiseFloor(result)
	if err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	data, err := json.Marshal(floor)
	if err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	if err := files.Write(path, append(data, '\n')); err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	return nil
}
