package compare_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// namedEngine is an engine: the list's data flow, with an arithmetic for each entry in each pass. It takes from the order what is
// computed from what, and the constants; every number is its own.
type namedEngine struct {
	name   string
	dtype  hooks.DType
	exact  bool                                   // what it stores is narrower than what it computes on with
	choose func(e *order.Entry, tokens int) arith // what computes an entry of a pass of so many tokens
	first  int                                    // the position of the first token
	drop   []string                               // entries that are not captured, by the end of their name; level 3 too then
}

// captured reports whether the engine shows an entry.
func (g *namedEngine) captured(e *order.Entry) bool {
	return g.drop == nil || e.Level < 3 && !slices.ContainsFunc(g.drop, func(end string) bool { return strings.HasSuffix(e.Name, end) })
}

// engineRun is one run of an engine, and beside it what it would have been with another arithmetic, or without a mistake: from the
// engine's own tensors as far as they are captured, which is what isolation has.
type engineRun struct {
	*namedEngine
	t      testing.TB
	c      ordertest.Case
	other  func(e *order.Entry, tokens int) arith // of the shadow
	damage *damage                                // nil for none
	weight map[string]dense

	events     []hooks.Event
	now, old   map[string]dense // the pass's tensors and those of the pass before
	dark, gone map[string]dense // the same of the shadow
	apart      []apart
}

// apart is where a captured tensor is not what its shadow is.
type apart struct {
	name           string
	pass           int
	tokens         int
	elements, rows int
}

// start begins a run; shadow is what to compute beside it.
func (g *namedEngine) start(t testing.TB, c ordertest.Case, shadow func(e *order.Entry, tokens int) arith, d *damage) *engineRun {
	return &engineRun{namedEngine: g, t: t, c: c, other: shadow, damage: d, weight: map[string]dense{}}
}

// run computes all passes and returns the trace.
func (r *engineRun) run() *capture.Trace {
	r.t.Helper()
	r.forward()
	return build(r.t, r.manifest(), r.events...)
}

// manifest is that of the engine's trace.
func (r *engineRun) manifest() capture.Manifest {
	m := manifest("local", r.dtype)
	m.Passes, m.Config = len(r.c.Passes), r.c.List.Config.Canonical()
	if r.drop != nil {
		m.Scope.Level = 0
	}
	for i := range r.c.List.Entries {
		if e := &r.c.List.Entries[i]; r.captured(e) {
			m.Entries = append(m.Entries, e.Name)
		}
	}
	return m
}

// forward computes all passes.
func (r *engineRun) forward() {
	past := 0
	for pass, ids := range r.c.Passes {
		r.old, r.gone = r.now, r.dark
		r.now, r.dark = map[string]dense{}, map[string]dense{}
		for i := range r.c.List.Entries {
			r.entry(&r.c.List.Entries[i], pass, past, ids)
		}
		past += len(ids)
	}
}

// entry computes one entry and its shadow.
func (r *engineRun) entry(e *order.Entry, pass, past int, ids []int) {
	shape := e.Size(order.Pass{Past: past, Tokens: len(ids)}, r.c.List.Config.SlidingWindow)
	y, given := arguments(e, shape, r.first+past, ids)
	shadow := y
	if given {
		r.fire(e, pass, hooks.I64, y)
	} else {
		a := r.choose(e, len(ids))
		y = r.compute(e, a, shape, r.now, r.old, r.damage)
		shadow = r.compute(e, r.other(e, len(ids)), shape, r.dark, r.gone, nil)
		r.fire(e, pass, a.stored(e), y)
	}
	r.now[e.Name], r.dark[e.Name] = y, shadow
	if r.captured(e) {
		r.compare(e, pass, len(ids), y, shadow)
		r.dark[e.Name] = r.shown(y)
	}
}

// arguments are the ids and positions of a pass, which nobody computes.
func arguments(e *order.Entry, shape []int, past int, ids []int) (y dense, given bool) {
	if e.Name != order.InputIDs && e.Name != "position_ids" {
		return dense{}, false
	}
	y = dense{shape, make([]float64, len(ids))}
	for t, id := range ids {
		y.data[t] = float64(id)
		if e.Name != order.InputIDs {
			y.data[t] = float64(past + t)
		}
	}
	return y, true
}

// shown is what isolation reads of a captured tensor: what is stored. The shadow of an engine with a mistake is the engine itself,
// which reads what it computed.
func (r *engineRun) shown(y dense) dense {
	if !r.exact || r.damage != nil {
		return y
	}
	stored := dense{y.shape, make([]float64, len(y.data))}
	for i, v := range y.data {
		stored.data[i] = float64(float32(v))
	}
	return stored
}

// compute evaluates an entry from these tensors of this pass and of the pass before.
func (r *engineRun) compute(e *order.Entry, a arith, shape []int, now, old map[string]dense, d *damage) dense {
	c := calc{arith: a, op: e.Op, shape: shape}
	for _, ref := range e.Inputs {
		x, ok := now[ref.Name]
		if ref.Prev {
			x, ok = old[ref.Name]
		}
		if !ok {
			continue // nothing was cached before the first pass
		}
		if ref.Index != nil {
			n := len(x.data) / x.shape[0]
			x = dense{x.shape[1:], x.data[*ref.Index*n:][:n]}
		}
		c.in = append(c.in, x)
	}
	for _, w := range e.Weights {
		c.w = append(c.w, r.weights(w))
	}
	var y []float64
	if d != nil && d.at[e.Name] {
		y = d.mistake.compute(c)
	} else {
		y = c.eval()
	}
	if to := a.stored(e); !a.exact && to.Float() {
		rounding := a
		rounding.dtype = to
		for i, v := range y {
			y[i] = rounding.r(v)
		}
	}
	return dense{shape, y}
}

// weights reads a tensor of the checkpoint, in the model's dtype.
func (r *engineRun) weights(w order.Weight) dense {
	if d, ok := r.weight[w.Name]; ok {
		return d
	}
	t, err := reference.Weights(r.c.Checkpoint, r.dtype)(w)
	if err != nil {
		r.t.Fatal(err)
	}
	rows, cols := t.Size()
	d := dense{[]int{rows, cols}, make([]float64, rows*cols)}
	for i := range rows {
		if err := t.Row(d.data[i*cols:][:cols], i); err != nil {
			r.t.Fatal(err)
		}
	}
	r.weight[w.Name] = d
	return d
}

func (r *engineRun) fire(e *order.Entry, pass int, d hooks.DType, y dense) {
	if !r.captured(e) {
		return
	}
	r.events = append(r.events, in(pass, fire(e.Name, d, y.shape, y.data...)))
}

// compare notes where an entry is not its shadow, as it is stored.
func (r *engineRun) compare(e *order.Entry, pass, tokens int, y, shadow dense) {
	at, n := apart{name: e.Name, pass: pass, tokens: tokens}, y.last()
	rows := map[int]bool{}
	for i, v := range y.data {
		if w := shadow.data[i]; float32(v) != float32(w) && (v == v || w == w) {
			at.elements++
			rows[i/n] = true
		}
	}
	if at.rows = len(rows); at.elements > 0 {
		r.apart = append(r.apart, at)
	}
}

// always is one arithmetic for everything.
func always(a arith) func(*order.Entry, int) arith {
	return func(*order.Entry, int) arith { return a }
}

// engineNames are the arithmetics that are tested, the first of them to see that an engine without one of its own is strict.
var engineNames = []string{"strict", "mlx", "keras", "every", "wide", "f16gelu", "fma", "double", "double-trace", "split", "kernels", "two"}

// engineDTypes are the dtypes that make sense for each, the most usual most often.
var engineDTypes = map[string][]hooks.DType{
	"strict":  {hooks.BF16, hooks.F32, hooks.F16},
	"mlx":     {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16},
	"keras":   {hooks.BF16},
	"every":   {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16},
	"wide":    {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16},
	"f16gelu": {hooks.F32, hooks.BF16}, "fma": {hooks.F32, hooks.BF16}, "double": {hooks.BF16, hooks.F32},
	"double-trace": {hooks.F32},
	"split":        {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16},
	"kernels":      {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16}, "two": {hooks.BF16, hooks.BF16, hooks.BF16, hooks.F16},
}

// everyKinds are the operations that have inner steps.
var everyKinds = slices.Sorted(maps.Keys(arithmetics))

// style returns an arithmetic by its name.
func style(name string, g engine, rng *rand.Rand) arith {
	a := arith{engine: g, sites: strictSites}
	switch name {
	case "mlx":
		a.sites = append(sitesWithout(strictSites, "altup_predict.mixed", "altup_correct.coefficient", "altup_correct.product"),
			"rms_norm.product", "rms_norm.gain", "gelu_tanh.*", "gelu.*", "silu.exp", "std.*")
		a.inverse, a.ratio, a.power, a.cast, a.divides, a.absolute, a.queries = true, true, true, true, true, true, true
		a.wide = []string{"modalities", "altup.prediction_coefs", "altup.correction_coefs"}
	case "keras": // of Gemma 1 to 3
		a.sites = append(slices.Clone(strictSites), "gelu_tanh.*", "gelu.*")
		a.cast, a.queries = true, true
	case "keras of Qwen":
		a.sites = append(sitesWithout(strictSites, "scores.product", "rms_norm.after"), "linear.product")
		a.wide = []string{"self_attn.scores", "scores_masked"}
	case "keras of Gemma 3n":
		a.sites = append(slices.Clone(strictSites), "rms_norm.*", "softmax.*", "gelu_tanh.*")
		a.cast = true
	case "keras of Gemma 3n's MLP":
		a.sites, a.uncast = nil, true
		a.wide = []string{"mlp.sparsity.mean", "mlp.sparsity.std", "mlp.sparsity.cutoff", "mlp.gate_sparse", "mlp.act_fn"}
	case "every":
		a.sites, a.root = nil, true
		for _, kind := range everyKinds {
			a.sites = append(a.sites, kind+".*")
		}
	case "wide":
		a.sites = nil
	case "f16gelu":
		a.table = true
	case "fma":
		a.sites = sitesWithout(strictSites, "altup_predict.mixed", "altup_correct.product", "cutoff.product", "rope.cos", "rope.sin")
		a.fused, a.engine.fused = true, true
	case "double":
		a.sites, a.double = nil, true
	case "double-trace":
		a.sites, a.double, a.exact = nil, true, true
	case "split":
		a.parts, a.wideParts = 2<<rng.IntN(3), rng.IntN(2) == 0
	case "norms": // as mlx has them
		a.sites = append(slices.Clone(strictSites), "rms_norm.product", "rms_norm.gain")
	}
	return a
}

// drawNamed draws an engine of a name: the order of its sums and its library, and what else the name leaves open.
func drawNamed(name string, d hooks.DType, list *order.List, rng *rand.Rand) *namedEngine {
	g := drawEngine(rng, d)
	g.reciprocal = false
	p := &namedEngine{name: name, dtype: d}
	switch name {
	case "keras":
		p.drop = []string{"self_attn.probs", "self_attn.context", "act_fn", "mlp.gate_sparse", "mlp.gated", "per_layer_gated"}
		p.choose = kerasOf(list, g, rng)
	case "kernels":
		pairs := [][2]string{{"strict", "wide"}, {"wide", "strict"}, {"every", "norms"}, {"norms", "every"}, {"strict", "split"}, {"mlx", "strict"}}
		pair := pairs[rng.IntN(len(pairs))]
		prefill, step := style(pair[0], g, rng), style(pair[1], drawEngine(rng, d), rng)
		step.reciprocal = false
		p.choose = func(_ *order.Entry, tokens int) arith {
			if tokens > 1 {
				return prefill
			}
			return step
		}
	case "two":
		p.choose = drawTwo(g, list, rng)
	default:
		a := style(name, g, rng)
		p.exact, p.choose = a.exact, always(a)
	}
	return p
}

// kerasOf is keras-hub's arithmetic of a family, of which each is written anew.
func kerasOf(list *order.List, g engine, rng *rand.Rand) func(*order.Entry, int) arith {
	switch kind := list.Config.ModelType; {
	case kind == "llama" || strings.HasPrefix(kind, "qwen"):
		return always(style("keras of Qwen", g, rng))
	case kind == "gemma3n_text":
		all, mlp := style("keras of Gemma 3n", g, rng), style("keras of Gemma 3n's MLP", g, rng)
		return func(e *order.Entry, _ int) arith {
			if strings.Contains(e.Name, ".mlp.") {
				return mlp
			}
			return all
		}
	}
	return always(style("keras", g, rng))
}

// drawTwo takes two arithmetics for one form: in some layers, at least two, another than in the others, at least two too.
func drawTwo(g engine, list *order.List, rng *rand.Rand) func(*order.Entry, int) arith {
	first, second := style("strict", g, rng), style("strict", g, rng)
	switch rng.IntN(4) {
	case 0, 1:
		second = style("norms", g, rng)
		if list.Config.ModelType == "llama" || strings.HasPrefix(list.Config.ModelType, "qwen") { // theirs round there
			second.sites = sitesWithout(strictSites, "rms_norm.after")
		}
	case 2:
		second.sites, second.sigmoid = append(slices.Clone(strictSites), "gelu_tanh.*", "gelu.*"), true
	case 3:
		second.sites = sitesWithout(strictSites, "rope.cos", "rope.sin")
	}
	layers := list.Config.NumLayers
	odd := map[int]bool{}
	for _, i := range rng.Perm(layers)[:2+rng.IntN(layers-3)] {
		odd[i] = true
	}
	return func(e *order.Entry, _ int) arith {
		if odd[e.Layer] {
			return second
		}
		return first
	}
}
