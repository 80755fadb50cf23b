// Package noise measures the noise floor of a prompt: the error caused only by the rounding of a dtype. A floor is
// stored next to its reference and read back by later sessions.
package noise

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// Write measures the noise floor of a job's passes, and writes it to path atomically. The floor is the difference
// between two walks: with every rounding point and with none. rounded is the trace of the first walk, which the
// caller keeps; if it is nil, Write makes a temporary trace. The passes are replayed, so both walks see the same
// tokens.
func Write(ctx context.Context, e *settings.Env, j reference.Job, rounded *capture.Trace, path string) (err error) {
	if err := files.Replaceable(path); err != nil {
		return fmt.Errorf("measuring the noise floor: %w", err)
	}
	dir, release, err := tracefolder.MakeRunFolder(filepath.Dir(path), "floor-", ".tmp")
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
		p := e.Begin(what, "entry", settings.Growing(j.Path))
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
	p := e.Begin("measuring the noise floor, comparing", "entry", sides[1].BytesRead)
	result, err := compare.Traces(ctx, sides[0], sides[1], compare.Options{Order: j.List, All: true, Progress: p.Step})
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

// maxFloorFile bounds what is read of a stored floor.
const maxFloorFile = 1 << 28

func readFloor(path string) (*gate.NoiseFloor, error) {
	text, err := files.Read(path, maxFloorFile)
	if err != nil {
		return nil, err
	}
	floor, err := gate.ParseNoiseFloor(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return floor, nil
}
