package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/proven"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// inputs are two opened traces and all that is known of their model.
type inputs struct {
	asked    Asked
	env      *settings.Env
	settings settings.Settings
	captured bool // the local side was captured for this comparison, and the reference suits it
	alone    bool // both traces are one

	local, ref *capture.Trace
	stored     *reference.Entry // where the reference is stored; nil where it is not, or not known to be
	names      *mapping.Map     // of the local side; nil: it has the order's
	order      traceOrder
	model      traceModel

	o compare.Options // as far as they are known
}

// traceOrder is the order that the traces have.
type traceOrder struct {
	list    *order.List     // the whole order of the model; nil where it is not known
	shown   *order.List     // list without the unnamed steps of a recorded program: the entries a trace can contain
	program *orders.Program // whose list is the order; nil where an order describes the model
	byName  bool            // the order is that of the model that was named
}

// traceModel is what the traces were made of: a checkpoint, or the weights of a port.
type traceModel struct {
	ck      *checkpoint.Checkpoint // by which both traces are computed; nil where it is not known
	claimed *checkpoint.Checkpoint // ck, where somebody named the model
	port    *portweights.Port      // whose own weights certify the local trace; nil: those of the model do
	kernels *portweights.Port      // a file of the model's own weights; its formats determine the engine's possible kernels; nil: not named
	opened  []io.Closer            // for this comparison
	noFloor error                  // why the noise floor of the prompt could not be measured; nil where it was, or was not wanted
}

// own returns the checkpoint for certifying the local trace: the port's weights if named, and otherwise the
// model's.
func (m *traceModel) own() *checkpoint.Checkpoint {
	if m.port != nil {
		return m.port.Checkpoint
	}
	return m.ck
}

// file is the port's file that was named, nil for none.
func (m *traceModel) file() *portweights.Port { return cmp.Or(m.port, m.kernels) }

// close lets go of what was opened for the comparison, the last first.
func (m *traceModel) close() {
	for _, c := range slices.Backward(m.opened) {
		_ = c.Close() // it was read
	}
}

// compare compares the traces: each step adds what it finds to the options of the comparison.
func (in *inputs) compare(ctx context.Context) (*compare.Result, error) {
	for _, step := range []func(context.Context) error{
		in.fit,       // the names and layouts of the order
		in.choose,    // what of given traces is compared
		in.openModel, // the checkpoint of given traces
		in.weigh,     // the weights of a port that a captured side is verified with
		in.unround,   // a dump of 16 bits that was computed in float32
		in.openPort,  // the weights of a port that given traces are verified with
		in.declare,   // what the traces declare of the weights that made them
		in.certify,   // what certifies the local trace, or why nothing does
		in.limit,     // limits of accumulated errors
		in.explain,   // the lines of source that compute an entry
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return in.run(ctx)
}

// run compares the traces by the options that all steps have made.
func (in *inputs) run(ctx context.Context) (*compare.Result, error) {
	o, e := &in.o, in.env
	o.All, o.Partial, o.StrictDType = o.All || in.asked.All, e.Partial, in.asked.StrictDType
	o.Fused = in.asked.Fused
	o.Sight, o.Baseline = e.Sight, in.asked.Known.lines(e)
	started := time.Now()
	what, bytes := "comparing", func() int64 { return in.local.BytesRead() + in.ref.BytesRead() }
	switch {
	case in.alone:
		what, bytes = "verifying", in.local.BytesRead
	case o.Isolator != nil:
		what = "comparing and verifying"
	}
	p := e.Begin(what, "entry", bytes)
	o.Progress = p.Step
	if o.Isolator != nil && e.Progress != nil {
		o.Isolator.Tell(p.Doing)
	}
	o.Observe = in.asked.Observe
	result, err := in.result(ctx, *o)
	p.Done()
	if err != nil {
		return nil, err
	}
	if in.model.noFloor != nil { // the error of a refused comparison has no note before it
		fmt.Fprintf(e.Notes, "note: the built-in limits decide (docs/verdict.md), since there is no noise floor: %v\n", in.model.noFloor)
	}
	next, err := in.finer(result)
	if err != nil {
		return nil, err
	}
	if next != "" {
		result.Notes = append([]string{next}, result.Notes...)
	}
	proven.Keep(e, *o)
	tracefolder.RemoveLeftWalks(e)
	e.Detail("compared %d entries in %s", len(result.Rows), amount.Since(started))
	return result, nil
}

// result compares the two traces, or certifies a single trace.
func (in *inputs) result(ctx context.Context, o compare.Options) (*compare.Result, error) {
	switch {
	case in.alone:
		return compare.Alone(ctx, in.local, o)
	case in.asked.AB != nil:
		return compare.AB(ctx, in.local, in.ref, o)
	}
	return compare.Traces(ctx, in.local, in.ref, o)
}

// findOrder finds the order of existing traces: the order in a manifest, the order of the model on the command
// line, or a recorded program.
func (in *inputs) findOrder() (err error) {
	s := &in.settings
	if in.order.list, err = orders.OfTraces(in.local, in.ref); err != nil {
		return err
	}
	if in.order.list == nil && s.Model != "" {
		if in.order.list, err = namedOrder(s, in.local, in.ref); err != nil {
			return err
		}
		in.order.byName = in.order.list != nil
	}
	in.order.shown = in.order.list
	if in.asked.AB != nil || in.order.list != nil && s.Program == "" {
		return nil
	}
	if in.order.program, err = orders.FindProgram(s.Program, in.ref, in.local); err != nil || in.order.program == nil {
		return err
	}
	in.order.list = in.order.program.List
	in.order.shown = in.order.list.Named()
	return nil
}

// namedOrder returns the order of the model in the folder s.Model, for traces without a configuration in the
// manifest. It returns nil if a manifest has a configuration, if the model has no order, or if the order names no
// tensor of the local trace.
func namedOrder(s *settings.Settings, local, ref *capture.Trace) (*order.List, error) {
	dir := s.Model
	if local.Manifest().Config != nil || ref.Manifest().Config != nil {
		return nil, nil
	}
	config, err := origin.ReadConfig(dir)
	var list *order.List
	if err == nil {
		list, err = order.New(config)
	}
	if order.Undescribed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	a, err := fit(s, local, list)
	if err != nil {
		return nil, err
	}
	for _, r := range a.Trace.Records() {
		if r.Name != order.InputIDs && list.Index(r.Name) >= 0 {
			return list, nil
		}
	}
	return nil, nil
}

// choose selects the entries to compare in existing traces, and the tokenizer for showing ids.
func (in *inputs) choose(context.Context) (err error) {
	if in.captured {
		return nil
	}
	s := &in.settings
	if in.o.Order, err = orders.Picked(in.order.shown, s.Order); err != nil {
		return err
	}
	if in.o.Order != nil {
		if err := orders.CheckScope(s.Scope, in.o.Order); err != nil {
			return err
		}
	}
	if err := orders.CheckRun(s.Scope, orders.RunTokens(in.local, in.ref)); err != nil {
		return err
	}
	in.o.TokenTexts, err = textsBeside(in.env, s.Model, in.local, in.ref)
	return err
}

// openModel opens the checkpoint of traces that were there.
func (in *inputs) openModel(ctx context.Context) (err error) {
	s := &in.settings
	weights := s.Weights
	switch {
	case in.captured, in.asked.AB != nil && !in.order.byName && !sameModel(in.local, in.ref): // of two models there is no one noise floor
		return nil
	case in.asked.AB != nil:
		weights = ""
	}
	if in.model.ck, err = origin.Common(ctx, in.env, s.Model, weights, in.local, in.ref); err != nil || in.model.ck == nil {
		return err
	}
	in.model.opened = append(in.model.opened, in.model.ck)
	if s.Model != "" {
		in.model.claimed = in.model.ck
	}
	return nil
}

// explain is asked for the lines of source that compute an entry.
func (in *inputs) explain(context.Context) error {
	in.o.Code = orders.Code(in.env, in.order.program, in.local, in.ref, in.names)
	return nil
}
