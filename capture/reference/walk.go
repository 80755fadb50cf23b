package reference

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// WalkName is the producer of a walk's trace.
const WalkName = "tracediff float64 walk"

// walkVersion changes when the numbers of the walk change.
const walkVersion = "1"

// Job is one reference run by the walk: a model, its input, and the tensors to record.
type Job struct {
	Checkpoint *checkpoint.Checkpoint
	List       *order.List // of the checkpoint's configuration
	Record     *order.List // the names to record and their order; nil for List
	DType      hooks.DType // float32, bfloat16 or float16
	Exact      bool        // without rounding, written as float64: the exact result, which no model of DType computes
	Passes     [][]int
	NewTokens  int // further passes, decoded greedily
	Path       string
	Manifest   capture.Manifest // the part that the caller knows; Walk fills in the rest
	Memory     int64            // bytes of memory, without files; 0 for 1 GiB. The trace does not depend on Memory
	Watch
}

// Watch receives tensors and progress of a walk.
type Watch struct {
	Registry *hooks.Registry // may have observers and replacers of the caller; nil for no hooks
	Debug    *debug.Log      // shows the recorded tensors; nil for no output
	Progress func(pass, passes, entry, entries int)
}

// Output is the token ids of a walk: its input and its choices.
type Output struct {
	Passes [][]int // the ids of each pass
	Greedy []int   // the most likely next token of each pass; −1 for a pass without computed logits
}

// Walk evaluates TENSOR_ORDER pass by pass and entry by entry, in float64, with the rounding of the dtype at every
// rounding point of the reference. It writes a trace at Path and makes the folder of Path. The hook of an entry fires when
// the entry is computed. Walk uses only the operations of the list: it shares no kernel and no forward pass with any port.
// It computes only entries in scope and their ancestors. On an error the unfinished trace keeps its name with
// [capture.Suffix] and has the reason in its status.
func Walk(ctx context.Context, j Job) (Output, error) {
	if j.Record == nil {
		j.Record = j.List
	}
	alone := j.traceAlone()
	if j.Registry == nil {
		j.Registry = &hooks.Registry{}
	}
	selected := j.Manifest.Scope.Select(j.Record)
	var w *capture.Writer
	write := func(e hooks.Event) error { return w.Observe(e) }
	if err := capture.Attach(j.Registry, j.Debug.Around(write), j.Record, j.Manifest.Scope, j.tokens()); err != nil {
		return Output{}, err
	}
	walk, err := j.newWalk(selected)
	if err != nil {
		return Output{}, err
	}
	if w, err = j.create(selected); err != nil {
		return Output{}, err
	}
	walk.large = newInPieces(walk, w, selected, alone)
	defer walk.large.close()
	if err := walk.run(ctx); err != nil {
		if failed := w.Fail(err); failed != nil {
			return walk.out, fmt.Errorf("%w (and %w)", err, failed)
		}
		return walk.out, err
	}
	return walk.out, w.Close()
}

// tokens is the number of tokens of each pass.
func (j *Job) tokens() []int {
	var n []int
	for _, ids := range j.Passes {
		n = append(n, len(ids))
	}
	return append(n, slices.Repeat([]int{1}, j.NewTokens)...)
}

// create begins the trace.
func (j *Job) create(selected []*order.Entry) (*capture.Writer, error) {
	m := j.Manifest
	m.Side, m.DType, m.Device, m.Passes = "reference", j.DType, "cpu", len(j.tokens())
	m.Producer = capture.Producer{Name: WalkName, Version: "v" + walkVersion}
	if j.Exact {
		m.DType, m.Producer.Details = hooks.F64, map[string]string{"arithmetic": "exact"}
	}
	if !j.List.IsRecorded() { // a recorded program has no configuration; the trace has the digest of the program
		m.Config = j.List.Config.Canonical()
	}
	for _, e := range selected {
		m.Entries = append(m.Entries, e.Name)
	}
	if err := os.MkdirAll(filepath.Dir(j.Path), 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of the trace: %w", err)
	}
	return capture.Create(j.Path, m, capture.Reserve(j.Record, m.Scope, j.tokens()))
}

// walk is a plan for all passes and the state of the run.
type walk struct {
	*Job
	plan   *order.Plan
	points []*hooks.Point    // by entry
	steps  []int             // of each pass
	given  [][]program.Value // by pass: the arguments, by entry
	past   int               // tokens before this pass
	done   int               // steps of this pass
	bytes  []byte            // scratch of the hooks
	large  *inPieces         // writes large tensors
	out    Output
}

// newWalk plans the selected entries of the passes in scope, and the logits of each pass from which a token is
// chosen.
func (j *Job) newWalk(selected []*order.Entry) (*walk, error) {
	w := &walk{Job: j, steps: make([]int, len(j.tokens()))}
	for i := range j.List.Entries {
		w.points = append(w.points, j.Registry.Point(j.List.Entries[i].Name))
	}
	var targets []order.Node
	for pass := range j.tokens() {
		for _, e := range selected {
			at := j.List.Index(e.Name)
			if at < 0 {
				return nil, fmt.Errorf("the order of the model has no tensor %s", e.Name)
			}
			node := order.Node{Entry: at, Pass: pass} // in a recorded program, a pass may lack some names
			if j.Manifest.Scope.Passes.Has(pass) && !w.argument(at) && j.List.In(node) {
				targets = append(targets, node)
			}
		}
		logits := order.Node{Entry: j.List.Index(logits), Pass: pass}
		if next := pass + 1; next >= len(j.Passes) && next < len(j.tokens()) && !slices.Contains(targets, logits) {
			targets = append(targets, logits)
		}
	}
	var err error
	w.plan, err = j.List.Plan(func(n order.Node) bool { return w.argument(n.Entry) }, targets)
	if err != nil {
		return nil, err
	}
	for _, n := range w.plan.Steps {
		w.steps[n.Pass]++
	}
	return w, nil
}

// argument reports whether an entry is an input and is not computed.
func (w *walk) argument(entry int) bool {
	_, is := w.List.Entries[entry].Op.(op.Given)
	return is
}

func (w *walk) run(ctx context.Context) error {
	env := order.Env{
		Arith: program.Arith{DType: w.DType, Emulated: !w.Exact}, Passes: order.Passes(w.tokens()),
		Read: w.read, Weights: Weights(w.Checkpoint, w.DType), Begin: w.begin, Visit: w.visit,
		Rows: &order.Rows{Elements: w.elements(), Whole: w.large.whole, Visit: w.large.visit},
	}
	if err := w.plan.Run(ctx, env); err != nil {
		return err
	}
	w.begin(len(w.steps) - 1) // also fires the ids of last passes without computed entries
	return w.Registry.Err()
}

// begin fires the arguments of the passes up to pass: the positions and the ids, from the input or chosen by the pass
// before. An error of a hook sticks to the registry.
func (w *walk) begin(pass int) {
	for k := len(w.given); k <= pass; k++ {
		var ids []int
		if k < len(w.Passes) {
			ids = slices.Clone(w.Passes[k])
		} else {
			ids = []int{w.out.Greedy[k-1]}
		}
		w.out.Passes, w.out.Greedy = append(w.out.Passes, ids), append(w.out.Greedy, -1)
		w.Registry.BeginPass(k)
		w.done = 0
		values := make([]program.Value, 2)
		for i, name := range []string{order.InputIDs, positionIDs} {
			values[i] = program.Value{Shape: []int{1, len(ids)}, Data: make([]float64, len(ids))}
			for t, id := range ids {
				values[i].Data[t] = float64(id)
				if name == positionIDs {
					values[i].Data[t] = float64(w.past + t)
				}
			}
			if at := w.List.Index(name); at >= 0 {
				_ = w.fire(at, hooks.I64, values[i])
			}
		}
		w.past += len(ids)
		w.given = append(w.given, values)
	}
}

const (
	positionIDs = "position_ids"
	logits      = "logits"
)

// read gives the plan its leaves: ids and positions.
func (w *walk) read(n order.Node) (program.Value, error) {
	if w.List.Entries[n.Entry].Name == order.InputIDs {
		return w.given[n.Pass][0], w.Registry.Err()
	}
	return w.given[n.Pass][1], w.Registry.Err()
}

// visit fires a computed entry.
func (w *walk) visit(n order.Node, v program.Value) error {
	w.step(n)
	if err := w.fire(n.Entry, w.written(n), v); err != nil {
		return err
	}
	w.choose(n, v)
	return nil
}

// step reports progress: one more entry is computed.
func (w *walk) step(n order.Node) {
	if w.done++; w.Progress != nil {
		w.Progress(n.Pass, len(w.steps), w.done, w.steps[n.Pass])
	}
}

// written is the dtype of an entry in the trace.
func (w *walk) written(n order.Node) hooks.DType {
	dtype := w.List.At(n).DTypeOf(w.DType)
	if w.Exact && dtype.Float() {
		return hooks.F64
	}
	return dtype
}

// choose stores the token that the last row of logits chooses.
func (w *walk) choose(n order.Node, v program.Value) {
	if w.List.At(n).Name == logits {
		w.out.Greedy[n.Pass] = argmax(v.Data[len(v.Data)-v.Shape[len(v.Shape)-1]:])
	}
}

// fire hands a value to its hook, in the dtype of the model, and reads back the value of a replacer.
func (w *walk) fire(entry int, dtype hooks.DType, v program.Value) error {
	at := w.points[entry]
	if at == nil {
		return w.Registry.Err()
	}
	n := len(v.Data) * dtype.Size()
	if cap(w.bytes) < n {
		w.bytes = make([]byte, n)
	}
	b := w.bytes[:n]
	floats.Append(b[:0], dtype, v.Data...)
	if err := at.Fire(hooks.Tensor{DType: dtype, Shape: v.Shape, Data: b}); err != nil {
		return err
	}
	if at.Replaces() {
		return floats.Decode(v.Data, dtype, b)
	}
	return nil
}

// argmax is the index of the first largest element, like torch's argmax.
func argmax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}
