// Package inspect looks into one trace, or into one tensor of two traces, in place of a script: shapes, statistics, percentiles, a histogram,
// single values, heads outside the range of the others, channels that stand out, the tokens chosen by logits.
//
// It judges nothing. Whether a number is right is for [compare.Traces] to say, with a reference, and whether it is strange for
// a check. It needs no order and no manifest: any safetensors file is read, and the manifest of a trace only adds
// names to axes and texts to tokens.
//
// Everything is read in strips. Memory does not depend on a tensor's size, except for requested slices, which have a limit below. Percentiles are
// exact at any size: they are found by counting, not by sorting, at the price of reading the tensor up to four times more.
//
// NaN, infinities and masked elements are counted and have no part in any statistic. Masked is what stands for −Inf in a
// mask: a number within a hundredth of the lowest finite one of float64, float32, bfloat16 or float16. One of them would
// outweigh all others.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Options say what to look at. The zero value is the list of all tensors.
type Options struct {
	Name   string         // a key, a name, or a pattern of either; empty for all
	Passes capture.Ranges // of the tensors; nil: of a list all, of a single name the first that has it
	Header bool           // the list without statistics: no data are read

	Slice string // the values to show, as Python indexes: "0,:8,::2"; empty for those of tensors of a few elements
	Axis  *int   // in place of heads and streams, statistics by this axis; negative from the end
	Top   int    // how many channels and tokens are listed; 0 for 5
	Row   *int   // which row of the logits chooses; nil for the last, negative from the end

	Order     *order.List         // of the model, which names axes and operations; nil where it is not known
	TokenText func(id int) string // nil where it is not known

	Step func(at, of int) // told before each tensor of a list; may be nil
}

// defaultTop is enough to see a near tie and the few channels in which transformers keep their massive activations.
const defaultTop = 5

func (o *Options) top() int {
	if o.Top > 0 {
		return o.Top
	}
	return defaultTop
}

// Result is the List, or one tensor of each file.
type Result struct {
	Files []File `json:"files"` // one, or A and B
	// List has the tensors that were asked for, in the order of the file.
	List    []Line   `json:"list,omitempty"`
	Tensors []Tensor `json:"tensors,omitempty"` // one of each file
	// Difference is of the two tensors, where they have the same shape.
	Difference *Difference `json:"difference,omitempty"`
	Notes      []string    `json:"notes,omitempty"` // what was left out, and why
}

// File is one file, with its own statements.
type File struct {
	Path     string           `json:"path"`
	Sequence bool             `json:"sequence"`         // the order of its tensors is that of execution
	Status   string           `json:"status,omitempty"` // "complete", or how the run ended
	Producer capture.Producer `json:"producer"`         // the program that ran the model
	Model    string           `json:"model,omitempty"`  // a path or a name
	DType    string           `json:"dtype,omitempty"`  // the model's
	Device   string           `json:"device,omitempty"`
	Passes   int              `json:"passes"`  // forward calls with a tensor
	Tensors  int              `json:"tensors"` // all, whatever was asked for
	Bytes    int64            `json:"bytes"`   // of data
	Notes    []string         `json:"notes,omitempty"`
}

// Line is one tensor of a list.
type Line struct {
	Key    string `json:"key"` // in the file
	Name   string `json:"name"`
	Pass   int    `json:"pass"`
	Firing int    `json:"firing,omitempty"` // how often the name had been fired in this pass before
	DType  string `json:"dtype"`            // as torch spells it
	Shape  []int  `json:"shape"`            // empty for a scalar
	Bytes  int64  `json:"bytes"`
	Stats  *Stats `json:"stats,omitempty"` // nil where only the header was read
}

// Tensor is one tensor in full.
type Tensor struct {
	Line Line     `json:"line"`
	Axes []string `json:"axes"` // the role of each axis in words, "axis 2" where it is not known
	// Entry is the tensor's place in the order of the model: nil where that is not known.
	Entry *Entry `json:"entry,omitempty"`
	// Passes are the other passes of the file with this name.
	Passes string `json:"passes,omitempty"`

	Percentiles []Percentile `json:"percentiles,omitempty"`
	Histogram   *Histogram   `json:"histogram,omitempty"`
	Values      *Values      `json:"values,omitempty"`
	ByAxis      []Axis       `json:"by_axis,omitempty"` // heads and streams, or the axis asked for
	Channels    *Channels    `json:"channels,omitempty"`
	Logits      *Logits      `json:"logits,omitempty"`
}

// Entry is what the order says about a tensor.
type Entry struct {
	Index   int    `json:"index"` // in the order, from 0
	Entries int    `json:"entries"`
	Op      string `json:"op"`    // the operation that makes it
	Layer   int    `json:"layer"` // −1 before and after the layers
	Level   int    `json:"level"`
}

// Difference is A − B, element by element in float64. Elements that are masked in both are masked here; where one of the two
// is not finite there is no difference, and it counts as NaN or infinite.
type Difference struct {
	Stats       Stats        `json:"stats"`
	Percentiles []Percentile `json:"percentiles,omitempty"`
	Histogram   *Histogram   `json:"histogram,omitempty"`
	Values      *Values      `json:"values,omitempty"` // of the slice
	// Metrics are those of a comparison, of A as the local side and B as the reference, without an order's rules.
	Metrics *measure.Metrics `json:"metrics"`
}

// Run looks into a trace. What is wrong with the options is an [OptionError], and so is a name that the file does not have;
// any other error is that of reading, or the context's.
func Run(ctx context.Context, t *capture.Trace, o Options) (*Result, error) {
	res := &Result{Files: []File{fileOf(t)}}
	found, one, err := find(t, &o)
	if err != nil {
		return nil, err
	}
	switch {
	case one && o.Header:
		return nil, optionError(errors.New("--header is about a list, and one tensor is named"), "leave it out, or leave the name out")
	case !one && (o.Slice != "" || o.Axis != nil || o.Row != nil):
		return nil, optionError(fmt.Errorf("--slice, --axis and --row are about one tensor, and %q names %d", o.Name, len(found)), "name one of them, and with --pass one of its passes")
	}
	if !one {
		res.List, err = list(ctx, t, found, &o)
		return res, err
	}
	x, err := look(ctx, t, found[0], &o)
	if err != nil {
		return nil, err
	}
	res.Tensors = []Tensor{*x}
	return res, nil
}

// Pair looks into one tensor of two files, side by side. Errors are those of [Run].
func Pair(ctx context.Context, a, b *capture.Trace, o Options) (*Result, error) {
	if o.Header {
		return nil, optionError(errors.New("--header is about a list, and one tensor is named"), "leave it out, or list one file")
	}
	res := &Result{Files: []File{fileOf(a), fileOf(b)}}
	var recs [2]capture.Record
	for i, t := range []*capture.Trace{a, b} {
		found, one, err := find(t, &o)
		if err != nil {
			return nil, err
		}
		if !one {
			return nil, optionError(fmt.Errorf("%q names %d tensors of %s", o.Name, len(found), t.Path()),
				"two files are put side by side for one tensor: name it, and with --pass one of its passes")
		}
		recs[i] = found[0]
		x, err := look(ctx, t, found[0], &o)
		if err != nil {
			return nil, err
		}
		res.Tensors = append(res.Tensors, *x)
	}
	var err error
	res.Difference, err = subtract(ctx, a, b, recs, res.Tensors)
	if err == nil && res.Difference == nil && o.Slice != "" {
		return nil, optionError(fmt.Errorf("--slice: %q has the shapes %v and %v, so there is no difference to show", o.Name, recs[0].Shape, recs[1].Shape), "look at one file: tracediff inspect FILE NAME --slice SLICE")
	}
	if err == nil && res.Difference == nil {
		res.Notes = append(res.Notes, "the shapes differ: there is no difference element by element")
	}
	return res, err
}

// fileOf reads a file's own statements.
func fileOf(t *capture.Trace) File {
	m := t.Manifest()
	f := File{
		Path: t.Path(), Sequence: t.Sequence(), Status: string(m.Status), Producer: m.Producer,
		Model: m.Model, Device: m.Device, Tensors: len(t.Records()), Notes: t.Notes(),
	}
	if m.DType.Valid() {
		f.DType = m.DType.String()
	}
	seen := map[int]bool{}
	for _, r := range t.Records() {
		f.Bytes += r.Size
		seen[r.Pass] = true
	}
	f.Passes = len(seen)
	return f
}

// list is a line a record.
func list(ctx context.Context, t *capture.Trace, records []capture.Record, o *Options) ([]Line, error) {
	lines := make([]Line, len(records))
	for i, r := range records {
		lines[i] = lineOf(r)
		if o.Header {
			continue
		}
		if o.Step != nil {
			o.Step(i, len(records))
		}
		src := sourceOf(ctx, t, r)
		s := newSummary(src)
		if err := src.each(s.add); err != nil {
			return nil, err
		}
		stats := s.stats()
		lines[i].Stats = &stats
	}
	return lines, nil
}

func lineOf(r capture.Record) Line {
	shape := r.Shape
	if shape == nil {
		shape = []int{} // of a scalar, which JSON would write as null
	}
	return Line{Key: r.Key, Name: r.Name, Pass: r.Pass, Firing: r.Firing, DType: r.DType.String(), Shape: shape, Bytes: r.Size}
}
