package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// checkExample runs two examples with a known or partly known result. The first is the program's own: if the
// built-in model does not reproduce transformers, no other output of the program is trustworthy.
func (p *Patient) checkExample(ctx context.Context, s *health.Section) {
	if p.failed {
		s.Skip("fix them, then run the command again", "not run: the errors above come first")
		return
	}
	started := time.Now()
	result, err := p.knownGood(ctx)
	result.say(s, err, amount.Since(started))
	if ctx.Err() == nil {
		p.runModel(ctx, s)
	}
}

// knownPrompt is the first command of the README. The binary contains its golden.
const knownPrompt = `tracediff compare --prompt "Hello world"`

// known holds the facts of the command's report.
type known struct {
	Exit      int
	Error     string
	reference string
	Compared  int // tensors
	Equal     int // of the Compared tensors; the others differ only because this machine rounds differently
	Certified int // EXACT or ROUNDING from their own inputs
}

// say adds the line about it.
func (k *known) say(s *health.Section, err error, took time.Duration) {
	const hint = "go test ./... in the sources says where: a new kind of processor or failing memory can cause this"
	switch {
	case err != nil:
		s.Fail(Hint(err), "%s: %v", knownPrompt, err)
	case k.Exit != 0 || k.Compared == 0:
		s.Fail(hint, "%s: the built-in model differs from %s: %s", knownPrompt, k.reference, k.Error)
	default:
		s.OK("%s: the built-in model matches %s in %d tensors, %d of them bit by bit, %d certified; %s",
			knownPrompt, k.reference, k.Compared, k.Equal, k.Certified, took)
	}
}

// knownGood runs the comparison of the embedded example in a temporary folder and reads its report.
func (p *Patient) knownGood(ctx context.Context) (known, error) {
	dir, err := files.MkdirTemp("tracediff-doctor-")
	if err != nil {
		return known{}, err
	}
	defer os.RemoveAll(dir)
	report, err := p.Example(ctx, "compare", "--prompt", "Hello world", "--format", "json", "--quiet", "--dir", dir)
	if err != nil {
		return known{}, err
	}
	return readKnown(report)
}

// readKnown takes what matters here from a report.
func readKnown(data []byte) (known, error) {
	var d struct {
		Runs []struct {
			Exit   int
			Error  string
			Result struct {
				Reference struct {
					Producer struct{ Name, Version string }
				}
				Rows []struct {
					Metrics *struct{ Unequal int64 }
				}
				Isolation struct{ Exact, Rounding int }
				Coverage  struct{ Compared int }
			}
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return known{}, fmt.Errorf("reading the report: %w", err)
	}
	if len(d.Runs) != 1 {
		return known{}, fmt.Errorf("the report has %s", amount.Of(len(d.Runs), "run"))
	}
	run := d.Runs[0]
	k := known{
		Exit: run.Exit, Error: run.Error, Compared: run.Result.Coverage.Compared,
		reference: run.Result.Reference.Producer.Name + " " + run.Result.Reference.Producer.Version,
		Certified: run.Result.Isolation.Exact + run.Result.Isolation.Rounding,
	}
	if k.Error == "" {
		k.Error = knownPrompt + " prints what differs"
	}
	for _, row := range run.Result.Rows {
		if row.Metrics != nil && row.Metrics.Unequal == 0 {
			k.Equal++
		}
	}
	return k, nil
}

// Bounds of the unrequested example run, which keep the checklist within seconds: a short input, and weights small
// enough for memory. The walk computes one operation at a time in float64, about thirty times slower than the
// model.
const (
	exampleTokens = 16
	exampleWalk   = 1 << 30  // bytes of weights
	exampleModel  = 16 << 30 // bytes of weights
)

// runModel runs one forward call of the named model, and reports the next token.
func (p *Patient) runModel(ctx context.Context, s *health.Section) {
	if p.model.undescribed {
		s.Skip("tracediff capture --side reference --reference hf runs it in transformers", "not run: nothing here runs a model of type %q", p.model.config.ModelType)
		return
	}
	ck, err := p.model.open()
	if err != nil {
		return // said of the weights
	}
	defer ck.Close()
	dtype, err := p.ComputedIn(p.model.config.DType)
	if err != nil {
		return // said of the model
	}
	name, run, most := "the built-in model", p.model.forward, int64(exampleModel)
	if gemma.CheckFamily(p.model.list) != nil {
		name, run, most = "the float64 walk", p.model.walk, exampleWalk
	}
	if memory := health.Memory().Available; memory > 0 {
		most = min(most, memory)
	}
	if ck.Size() > most && !p.Full {
		s.Skip("--full runs it", "not run: with %s of weights %s takes more than seconds", amount.Bytes(ck.Size()), name)
		return
	}
	ids, which := p.exampleIDs()
	logits := watch{}
	reg := &hooks.Registry{}
	if err := reg.Observe("*", logits.see); err != nil {
		s.Fail(general, "%v", err)
		return
	}
	started := time.Now()
	if err := run(ctx, ck, dtype, ids, reg); err != nil {
		s.Fail(Hint(err), "%s, %s: %v", name, which, err)
		return
	}
	sayNext(s, &logits, p.tok, fmt.Sprintf("%s in %s, %s (%s)", name, dtype, which, amount.Since(started)))
}

// exampleIDs returns the ids to run and a description: the first forward call of the input, or a single token
// without an input.
func (p *Patient) exampleIDs() (ids []int, which string) {
	if len(p.input.Passes) == 0 {
		return []int{max(p.model.config.Tokens.BOS, 0)}, "a single token"
	}
	ids = p.input.Passes[0]
	if n := len(ids); n > exampleTokens && !p.Full {
		return ids[:exampleTokens], fmt.Sprintf("the first %d of %d tokens", exampleTokens, n)
	}
	if len(ids) == 1 {
		return ids, "a single token"
	}
	return ids, fmt.Sprintf("all %d tokens", len(ids))
}

// sayNext says how the model goes on, or that it cannot.
func sayNext(s *health.Section, w *watch, tok *tokenizer.Tokenizer, what string) {
	switch {
	case w.broken != "":
		s.Fail("tracediff capture and compare say which operation it is; float16 overflows at 65504: try --dtype float32", "%s: NaN or Inf, first in %s", what, w.broken)
		return
	case len(w.logits) == 0:
		s.Fail(general, "%s: there are no logits", what)
		return
	}
	next, least, sum := 0, math.Inf(1), 0.0
	for i, v := range w.logits {
		if v > w.logits[next] {
			next = i
		}
		least = min(least, v)
	}
	if w.logits[next] == least {
		s.Warn("a head or an embedding of zeros gives this", "%s: all %d logits are %g", what, len(w.logits), least)
		return
	}
	for _, v := range w.logits {
		sum += math.Exp(v - w.logits[next])
	}
	text := fmt.Sprint(next)
	if tok != nil {
		text += fmt.Sprintf(" %q", tok.Text(next))
	}
	s.OK("%s: all logits finite; next token %s (greedy, probability %.2g)", what, text, 1/sum)
}

// forward runs the built-in model.
func (m *model) forward(ctx context.Context, ck *checkpoint.Checkpoint, dtype hooks.DType, ids []int, reg *hooks.Registry) error {
	local, err := gemma.New(ck, m.list, dtype, reg, gemma.All)
	if err != nil {
		return err
	}
	_, err = local.Run(ctx, reg, gemma.Input{Passes: [][]int{ids}, LastLayer: gemma.All})
	return err
}

// walk runs the float64 walk, for families without a built-in model. It leaves a trace, which is gone afterwards.
func (m *model) walk(ctx context.Context, ck *checkpoint.Checkpoint, dtype hooks.DType, ids []int, reg *hooks.Registry) error {
	dir, err := files.MkdirTemp("tracediff-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, err = reference.Walk(ctx, reference.Job{
		Checkpoint: ck, List: m.list, DType: dtype, Passes: [][]int{ids}, Watch: reference.Watch{Registry: reg},
		Path: filepath.Join(dir, "walk.safetensors"), Manifest: capture.Manifest{Scope: capture.Scope{Level: 1}},
	})
	return err
}

// watch remembers of a forward call the last logits, and the first tensor that is not finite.
type watch struct {
	logits []float64 // of the last position
	broken string
	buffer []float64
}

// see looks at a tensor. -Inf is what a mask is made of; nothing else is infinite in a model that works.
func (w *watch) see(e hooks.Event) error {
	t := e.Tensor
	if !t.DType.Float() || len(t.Shape) == 0 {
		return nil
	}
	n := len(t.Data) / t.DType.Size()
	if cap(w.buffer) < n {
		w.buffer = make([]float64, n)
	}
	values := w.buffer[:n]
	if err := floats.Decode(values, t.DType, t.Data); err != nil {
		return err
	}
	for _, v := range values {
		if w.broken == "" && (math.IsNaN(v) || math.IsInf(v, 1)) {
			w.broken = e.Name
		}
	}
	if e.Name == "logits" {
		w.logits = append(w.logits[:0], values[n-t.Shape[len(t.Shape)-1]:]...)
	}
	return nil
}
