package testengine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Always is one arithmetic for everything.
func Always(a Arithmetic) func(*order.Entry, int) Arithmetic {
	return func(*order.Entry, int) Arithmetic { return a }
}

// Names are the engines to draw from. The first, strict, tests the verdict on an engine with transformers' own
// arithmetic.
var Names = []string{"strict", "mlx", "keras", "every", "wide", "f16gelu", "fma", "double", "double-trace", "split", "kernels", "two"}

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

// Kinds are the kinds of operations that have inner steps.
var Kinds = []string{
	"add_scale", "altup_correct", "altup_init", "altup_predict", "context", "cutoff", "gelu", "gelu_tanh", "linear", "magnitude", "mean", "rescale", "rms_norm", "rope",
	"scores", "silu", "softcap", "softmax", "std", "stream_mean",
}

// Style returns an arithmetic by its name.
func Style(name string, g Kernels, rng *rand.Rand) Arithmetic {
	a := Arithmetic{Kernels: g, sites: strictSites}
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
		for _, kind := range Kinds {
			a.sites = append(a.sites, kind+".*")
		}
	case "wide":
		a.sites = nil
	case "f16gelu":
		a.table = true
	case "fma":
		a.sites = sitesWithout(strictSites, "altup_predict.mixed", "altup_correct.product", "cutoff.product", "rope.cos", "rope.sin")
		a.fused, a.Kernels.Fused = true, true
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

// Draw draws an engine with a given name: the order of sums, the library, and everything else not fixed by the
// name.
func Draw(name string, d hooks.DType, list *order.List, rng *rand.Rand) *Engine {
	g := DrawKernels(rng, d)
	g.Reciprocal = false
	p := &Engine{Name: name, DType: d}
	switch name {
	case "keras":
		p.Drop = []string{"self_attn.probs", "self_attn.context", "act_fn", "mlp.gate_sparse", "mlp.gated", "per_layer_gated"}
		p.Choose = KerasOf(list, g, rng)
	case "kernels":
		pairs := [][2]string{{"strict", "wide"}, {"wide", "strict"}, {"every", "norms"}, {"norms", "every"}, {"strict", "split"}, {"mlx", "strict"}}
		pair := pairs[rng.IntN(len(pairs))]
		prefill, step := Style(pair[0], g, rng), Style(pair[1], DrawKernels(rng, d), rng)
		step.Reciprocal = false
		p.Choose = func(_ *order.Entry, tokens int) Arithmetic {
			if tokens > 1 {
				return prefill
			}
			return step
		}
	case "two":
		p.Choose = drawTwo(g, list, rng)
	default:
		a := Style(name, g, rng)
		p.exact, p.Choose = a.exact, Always(a)
	}
	return p
}

// KerasOf returns keras-hub's arithmetic for a family. keras-hub implements each family separately.
func KerasOf(list *order.List, g Kernels, rng *rand.Rand) func(*order.Entry, int) Arithmetic {
	switch kind := list.Config.ModelType; {
	case kind == "llama" || strings.HasPrefix(kind, "qwen"):
		return Always(Style("keras of Qwen", g, rng))
	case kind == "gemma3n_text":
		all, mlp := Style("keras of Gemma 3n", g, rng), Style("keras of Gemma 3n's MLP", g, rng)
		return func(e *order.Entry, _ int) Arithmetic {
			if strings.Contains(e.Name, ".mlp.") {
				return mlp
			}
			return all
		}
	}
	return Always(Style("keras", g, rng))
}

// habitSteps are the sites that habits are drawn of.
var habitSteps = []string{
	"rms_norm.square", "rms_norm.mean", "rms_norm.eps", "rms_norm.rsqrt", "rms_norm.product", "rms_norm.gain", "rms_norm.after", "gelu_tanh.*", "gelu.*", "silu.exp",
	"silu.*", "softmax.*", "linear.product", "scores.product", "rope.cos", "rope.sin", "softcap.quotient", "softcap.tanh", "add_scale.sum", "altup_predict.mixed",
	"altup_correct.product", "altup_correct.coefficient", "cutoff.product", "magnitude.square", "magnitude.mean", "std.*", "mean.*",
}

// DrawHabits takes an arithmetic at random that no engine is known to have: base with sites of its own, and formulas.
func DrawHabits(base Arithmetic, rng *rand.Rand) Arithmetic {
	a := base
	a.sites = nil
	for _, s := range habitSteps {
		if rng.IntN(2) == 0 {
			a.sites = append(a.sites, s)
		}
	}
	a.cast, a.inverse, a.queries, a.power, a.root = rng.IntN(3) == 0, rng.IntN(4) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
	a.absolute, a.sigmoid, a.divides, a.ratio = rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
	return a
}

// Habits names an arithmetic that was drawn.
func (a Arithmetic) Habits() string {
	return fmt.Sprintf("sites %v; cast %v inverse %v queries %v power %v root %v", a.sites, a.cast, a.inverse, a.queries, a.power, a.root)
}

// drawTwo draws two arithmetics for one form, each for at least two layers.
func drawTwo(g Kernels, list *order.List, rng *rand.Rand) func(*order.Entry, int) Arithmetic {
	first, second := Style("strict", g, rng), Style("strict", g, rng)
	switch rng.IntN(4) {
	case 0, 1:
		second = Style("norms", g, rng)
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
	return func(e *order.Entry, _ int) Arithmetic {
		if odd[e.Layer] {
			return second
		}
		return first
	}
}
