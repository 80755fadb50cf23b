package portweights

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// writeSteps writes the steps and offsets of quantised weights, for the kernels with a use for them, as a separate
// checkpoint. Under the name of each weight is a float32 matrix with one row per row of the weight: the steps of
// the groups, then the offsets. Without such weights no file is written. The record receives the digest, and the
// names of weights whose groups do not lie within rows because a map swapped the axes.
func writeSteps(ctx context.Context, e *settings.Env, dir string, list []weights.Source, config []byte, r *portRecord) error {
	h, all := newHeader(), int64(0)
	var some []weights.Source
	for _, s := range list {
		rows, columns, ok := steppedAs(s)
		if !ok {
			continue
		}
		size := int64(rows) * int64(columns) * 4
		h.add(s.Original.Name, hooks.F32, []int{rows, columns}, all, all+size)
		some, all = append(some, s), all+size
	}
	if len(some) == 0 {
		return nil
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, checkpoint.ConfigFile), config, 0o666); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, weightsFile))
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(f, 1<<20)
	if err = h.write(to); err == nil {
		r.Across, err = stepsInto(ctx, to, some)
	}
	if err = errors.Join(err, to.Flush(), f.Close()); err != nil {
		return err
	}
	r.Steps, err = digestIn(ctx, e, dir)
	return err
}

// steppedAs is the shape of the steps and offsets of a weight; not ok where no kernel needs them, or where its rows have no whole groups.
func steppedAs(s weights.Source) (rows, columns int, ok bool) {
	format := s.Parts[0].Local.Codes()
	for _, p := range s.Parts {
		c, shape := p.Local.Coding, p.Taken()
		rowsOnly := len(shape) == 2 && len(p.Local.Shape) == 2 && shape[1] == p.Local.Shape[1]
		if c == nil || c.Data().Unit == nil || p.Local.Codes() != format || !rowsOnly {
			return 0, 0, false
		}
		group := quant.Stepped(format, c.Data().Group)
		if group < 1 || shape[1]%group != 0 || columns > 0 && columns != 2*shape[1]/group {
			return 0, 0, false
		}
		rows, columns = rows+shape[0], 2*shape[1]/group
	}
	return rows, columns, true
}

// stepsInto writes the steps and offsets of weights, row by row, and returns the names of those that have several in a group.
func stepsInto(ctx context.Context, to io.Writer, list []weights.Source) (across []string, err error) {
	for _, s := range list {
		mixed := false
		for _, p := range s.Parts {
			g, shape := p.Local.Coding.Data(), p.Taken()
			group := quant.Stepped(p.Local.Codes(), g.Group)
			raw := make([]byte, 4*shape[1])
			out := make([]byte, 0, 8*shape[1]/group)
			for row := range shape[0] {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				out = out[:0]
				for _, plane := range []io.ReaderAt{g.Unit, g.Offset} {
					if n, err := plane.ReadAt(raw, int64(row)*int64(len(raw))); n < len(raw) {
						return nil, fmt.Errorf("reading %s: %w", p.Local.Name, errors.Join(err, io.ErrUnexpectedEOF))
					}
					for at := 0; at < len(raw); at += 4 * group {
						numbers := raw[at:][:4*group]
						out = append(out, numbers[:4]...)
						mixed = mixed || !bytes.Equal(numbers[4:], numbers[:4*group-4])
					}
				}
				if _, err := to.Write(out); err != nil {
					return nil, err
				}
			}
		}
		if mixed {
			across = append(across, s.Original.Name)
		}
	}
	return across, nil
}

// steps returns the steps and offsets of a weight. It returns nil for a weight without steps along its rows.
func (p *Port) steps(w order.Weight) (program.Rows, error) {
	if p.codes == nil || slices.ContainsFunc(p.names(w), func(full string) bool { return slices.Contains(p.Across, full) }) {
		return nil, nil
	}
	for _, full := range p.names(w) {
		if t, ok := p.codes.Tensor(full); ok {
			return reference.Weights(p.codes, hooks.F32)(order.Weight{Name: full, Shape: t.Shape})
		}
	}
	return nil, nil
}

// names are what a weight may be called in the original.
func (p *Port) names(w order.Weight) (all []string) {
	for _, name := range []string{w.Name, w.Fallback} {
		if name != "" {
			all = append(all, p.Checkpoint.Prefix()+name, name, "language_model."+name)
		}
	}
	return all
}
