package compare_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

func envInt(name string, d int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return d
}

func certsOf(t *testing.T, tr *capture.Trace, c ordertest.Case, d hooks.DType, only func(string) bool) map[string]*certify.Certificate {
	t.Helper()
	i, err := certify.NewIsolator(tr, c.List, reference.Weights(c.Checkpoint, d), certify.IsolateOptions{DType: d})
	if err != nil {
		t.Logf("isolator: %v", err)
		return nil
	}
	all := map[string]*certify.Certificate{}
	for _, r := range tr.Records() {
		if c.List.Index(r.Name) < 0 || only != nil && !only(capture.Key(r.Pass, r.Name, 0)) {
			continue
		}
		z, err := i.Certify(context.Background(), r.Name, r.Pass)
		if err != nil {
			continue
		}
		all[capture.Key(r.Pass, r.Name, 0)] = z
	}
	return all
}

func manifestOf(r *engineRun) capture.Manifest {
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

// (c) the order of the entries in the file.
func TestReviewOrderOfEntries(t *testing.T) {
	const from = 0
	for n := from; n < from+envInt("TRACEDIFF_REVIEW", 12); n++ {
		c := engineCaseOf(t, n)
		t.Run(fmt.Sprint(n, c.name), func(t *testing.T) {
			r := c.start(t, c.Case, c.strict, nil)
			local := r.run()
			a := certsOf(t, local, c.Case, c.dtype, nil)
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			ev := slices.Clone(r.events)
			rng.Shuffle(len(ev), func(i, j int) { ev[i], ev[j] = ev[j], ev[i] })
			slices.SortStableFunc(ev, func(a, b hooks.Event) int { return a.Pass - b.Pass })
			b := certsOf(t, build(t, manifestOf(r), ev...), c.Case, c.dtype, nil)
			bad := 0
			for k, x := range a {
				y := b[k]
				if y == nil || x.Outcome != y.Outcome || x.Arithmetic != y.Arithmetic || x.Outside != y.Outside {
					bad++
					if bad < 6 {
						t.Errorf("%s: %s %s %q | %+v", k, x.Form, x.Outcome, x.Arithmetic, y)
					}
				}
			}
		})
	}
}

// (d) hostile numbers.
func TestReviewHostile(t *testing.T) {
	const from = 0
	for n := from; n < from+envInt("TRACEDIFF_REVIEW", 12); n++ {
		c := engineCaseOf(t, n)
		t.Run(fmt.Sprint(n, c.name), func(t *testing.T) {
			r := c.start(t, c.Case, c.strict, nil)
			r.forward()
			rng := rand.New(rand.NewPCG(2, uint64(n)))
			var ev []hooks.Event
			mode := n % 6
			for _, e := range r.events {
				if e.Tensor.DType == hooks.I64 {
					ev = append(ev, e)
					continue
				}
				if rng.IntN(10) == 0 && mode != 0 {
					continue
				}
				x := e.Tensor
				x.Data = slices.Clone(x.Data)
				sz := len(x.Data) / max(elements(x.Shape), 1)
				put := func(i int, v float64) { copy(x.Data[i*sz:], appendValue(nil, x.DType, v)) }
				count := elements(x.Shape)
				switch mode {
				case 0, 1:
					for range 3 {
						put(rng.IntN(count), []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, 1e-40, 0}[rng.IntN(6)])
					}
				case 2:
					for i := range count {
						put(i, math.NaN())
					}
				case 3:
					for i := range count {
						put(i, math.MaxFloat32*(rng.Float64()-0.5)*2)
					}
				case 4:
					for i := range count {
						put(i, 1e-39*rng.NormFloat64())
					}
				case 5:
					for i := range count {
						put(i, rng.NormFloat64())
					}
				}
				e.Tensor = x
				ev = append(ev, e)
			}
			at := time.Now()
			z := certsOf(t, build(t, manifestOf(r), ev...), c.Case, c.dtype, nil)
			count := map[certify.Outcome]int{}
			for _, x := range z {
				count[x.Outcome]++
			}
			t.Logf("%s mode %d %s %d entries %v in %v", c.Family, mode, c.dtype, len(z), count, time.Since(at))
		})
	}
}

func elements(s []int) int { n, _ := hooks.Elements(s); return n }

var rvMistakes = []mistake{
	{"truncated", computes, func(c calc) []float64 {
		y := c.eval()
		for i := range y {
			b := math.Float32bits(float32(y[i]))
			switch c.dtype {
			case hooks.BF16:
				b &^= 0xffff
			case hooks.F16:
				b &^= 0x1fff
			}
			y[i] = float64(math.Float32frombits(b))
		}
		return y
	}},
	{"eps x10", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: o.Eps * 10, Gain: o.Gain} })},
	{"eps x100", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: o.Eps * 100, Gain: o.Gain} })},
	{"eps 0", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: 0, Gain: o.Gain} })},
	{"n-1", normMistakes[4].fits, normMistakes[4].compute},
	{"times 1.001", computes, after(func(c calc, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.001)
		}
	})},
	{"times 1.002", computes, after(func(c calc, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.002)
		}
	})},
	{"times 0.999", computes, after(func(c calc, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 0.999)
		}
	})},
	{"times 1.004", computes, after(func(c calc, y []float64) {
		for i := range y {
			y[i] = c.f(y[i] * 1.004)
		}
	})},
	{"scale a little", kindOf[op.Scores](nil), another(func(o op.Scores, _ *calc) op.Op { return op.Scores{Scale: o.Scale * 1.003} })},
	{"const 0.044", kindOf[op.GELUTanh](nil), another(func(op.GELUTanh, *calc) op.Op { return op.GELU{} })},
	{"const 0.044", kindOf[op.GELU](nil), another(func(op.GELU, *calc) op.Op { return op.GELUTanh{} })},
	{"a row off", computes, after(func(c calc, y []float64) {
		n := c.shape[len(c.shape)-1]
		for i := range y {
			if i/n%2 == 0 {
				y[i] = c.f(y[i] * 1.003)
			}
		}
	})},
}

func rvTimes(f float64, every int) mistake {
	return mistake{fmt.Sprint("times ", f, " each ", every), computes, after(func(c calc, y []float64) {
		for i := range y {
			if i%every == 0 {
				y[i] = c.f(y[i] * f)
			}
		}
	})}
}

var rvSmall = []mistake{
	rvTimes(1+3e-7, 1), rvTimes(1+1e-6, 1), rvTimes(1-1e-6, 3), rvTimes(1+2e-7, 2), rvTimes(1+1e-5, 1), rvTimes(1+6e-8, 1),
	{"eps x1.1", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: o.Eps * 1.1, Gain: o.Gain} })},
	{"eps x2", kindOf[op.RMSNorm](nil), another(func(o op.RMSNorm, _ *calc) op.Op { return op.RMSNorm{Eps: o.Eps * 2, Gain: o.Gain} })},
	{"truncated", computes, func(c calc) []float64 {
		y := c.eval()
		for i := range y {
			y[i] = float64(math.Float32frombits(math.Float32bits(float32(y[i])) &^ 7))
		}
		return y
	}},
}

// passing plants mistakes into engines of case n, and fails for each that spoils 8 elements of an entry and is called right in
// another arithmetic than transformers'. f32: in float32; drop: some runs have nothing captured inside attention and MLP.
func passing(t *testing.T, f32, drop bool, cases ...int) {
	t.Helper()
	tally := map[string]int{}
	for _, n := range cases {
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		families := slices.Concat(ordertest.Gemma, ordertest.Plain)
		d := []hooks.DType{hooks.BF16, hooks.BF16, hooks.F32, hooks.F16}[rng.IntN(4)]
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := ordertest.DrawWith(t, families[n%len(families)], n, ordertest.Acceptable)
			c.Passes = nil
			for pass := range 1 + rng.IntN(3) {
				ids := make([]int, 1)
				if pass == 0 {
					ids = make([]int, 1+rng.IntN(4))
				}
				for i := range ids {
					ids[i] = rng.IntN(c.List.Config.VocabSize)
				}
				c.Passes = append(c.Passes, ids)
			}
			name := []string{"strict", "strict", "mlx", "every", "wide", "keras"}[rng.IntN(6)]
			if f32 {
				d = hooks.F32
			}
			if d == hooks.F32 {
				name = []string{"strict", "fma", "double", "double-trace", "double-trace", "f16gelu"}[rng.IntN(6)]
			}
			g := drawNamed(name, d, c.List, rng)
			if drop && rng.IntN(2) == 0 {
				g.drop = []string{"self_attn.probs", "self_attn.context", "act_fn", "mlp.gate_sparse", "mlp.gated", "per_layer_gated"}
			}
			list := slices.Concat(rvMistakes, rvMistakes, mistakesOf)
			if f32 {
				list = slices.Concat(rvSmall, rvSmall, rvMistakes)
			}
			for range 6 {
				m := list[rng.IntN(len(list))]
				var fit []*order.Entry
				for i := range c.List.Entries {
					if e := &c.List.Entries[i]; m.fits(e) {
						fit = append(fit, e)
					}
				}
				if len(fit) == 0 {
					continue
				}
				e := fit[rng.IntN(len(fit))]
				dm := &damage{m, map[string]bool{e.Name: true}}
				if how := rng.IntN(3); how > 0 && e.Layer >= 0 {
					for _, o := range fit {
						if o.Layer >= 0 && inLayer(o) == inLayer(e) && (how == 1 || rng.IntN(2) == 0) {
							dm.at[o.Name] = true
						}
					}
				}
				r := g.start(t, c, g.choose, dm)
				tr := r.run()
				guilty := map[string]int{}
				for _, a := range r.apart {
					if a.elements >= 8 {
						guilty[capture.Key(a.pass, a.name, 0)] = a.elements
					}
				}
				z := certsOf(t, tr, c, d, func(k string) bool { return guilty[k] > 0 })
				for k, x := range z {
					tally[string(x.Outcome)+" "+boolWord(x.Arithmetic == "strict")]++
					if (x.Outcome == certify.Rounding || x.Outcome == certify.Exact) && x.Arithmetic != "strict" {
						t.Errorf("PASSES n=%d %s %s %s: %q at %s (%d of %d elements differ, %d unequal; at %d entries of %v): %s [%s] reach %.2g rel %.2g power %.2g", n, c.Family, name, d, m.name, k, guilty[k], x.Elements, x.Unequal, len(dm.at), len(c.Passes[0]), x.Arithmetic, x.Form, float64(x.Reach), float64(x.RelL2), float64(x.Power))
					}
				}
			}
		})
	}
	t.Log(tally)
}

func boolWord(b bool) string {
	if b {
		return "strict"
	}
	return "other"
}

// accused fails for each entry of a healthy engine that is called BUG: engines that round at steps drawn at random, everywhere, in
// full layers, or in passes of one token.
func accused(t *testing.T, cases ...int) {
	t.Helper()
	total, bugs, un := 0, 0, 0
	for _, n := range cases {
		rng := rand.New(rand.NewPCG(5, uint64(n)))
		families := slices.Concat(ordertest.Gemma, ordertest.Plain)
		d := []hooks.DType{hooks.BF16, hooks.BF16, hooks.F16}[rng.IntN(3)]
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := ordertest.DrawWith(t, families[n%len(families)], n, ordertest.Acceptable)
			c.Passes = nil
			for pass := range 1 + rng.IntN(5) {
				ids := make([]int, 1)
				if pass == 0 {
					ids = make([]int, 1+rng.IntN(8))
				}
				for i := range ids {
					ids[i] = rng.IntN(c.List.Config.VocabSize)
				}
				c.Passes = append(c.Passes, ids)
			}
			g := drawNamed("strict", d, c.List, rng)
			base := style("strict", drawEngine(rng, d), rng)
			base.reciprocal = false
			steps := []string{"rms_norm.square", "rms_norm.mean", "rms_norm.eps", "rms_norm.rsqrt", "rms_norm.product", "rms_norm.gain", "rms_norm.after", "gelu_tanh.*", "gelu.*", "silu.exp", "silu.*", "softmax.*", "linear.product", "scores.product", "rope.cos", "rope.sin", "softcap.quotient", "softcap.tanh", "add_scale.sum", "altup_predict.mixed", "altup_correct.product", "altup_correct.coefficient", "cutoff.product", "magnitude.square", "magnitude.mean", "std.*", "mean.*"}
			other := base
			other.sites = nil
			for _, s := range steps {
				if rng.IntN(2) == 0 {
					other.sites = append(other.sites, s)
				}
			}
			other.cast, other.inverse, other.queries, other.power, other.root, other.absolute, other.sigmoid, other.divides, other.ratio = rng.IntN(3) == 0, rng.IntN(4) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
			how := rng.IntN(4)
			kinds := c.List.Config.LayerTypes
			g.choose = func(e *order.Entry, tokens int) arith {
				switch how {
				case 0, 1:
					return other
				case 2: // full layers have another kernel
					if e.Layer >= 0 && e.Layer < len(kinds) && strings.HasPrefix(string(kinds[e.Layer]), "full") {
						return other
					}
				case 3: // single tokens
					if tokens == 1 {
						return other
					}
				}
				return base
			}
			if rng.IntN(2) == 0 {
				g.drop = []string{"self_attn.probs", "self_attn.context", "act_fn", "mlp.gate_sparse", "mlp.gated", "per_layer_gated"}
			}
			r := g.start(t, c, always(base), nil)
			tr := r.run()
			z := certsOf(t, tr, c, d, nil)
			shown := 0
			for k, x := range z {
				total++
				switch x.Outcome {
				case certify.Bug:
					bugs++
					if shown++; shown < 40 {
						t.Errorf("BUG n=%d %s %s how %d, tokens %d passes %d: %s %s outside %d of %d, arithmetic %q mistake %q (sites %v; cast %v inverse %v queries %v power %v root %v; %v)", n, c.Family, d, how, len(c.Passes[0]), len(c.Passes), k, x.Form, x.Outside, x.Elements, x.Arithmetic, x.Mistake, other.sites, other.cast, other.inverse, other.queries, other.power, other.root, kinds)
					}
				case certify.Unidentified:
					un++
				}
			}
		})
	}
	t.Logf("%d entries, %d BUG, %d UNIDENTIFIED", total, bugs, un)
}

// normsOf is a trace of input norms alone, of random inputs, each by the arithmetic of its layer.
func normsOf(t *testing.T, layers, hidden, tokens int, of func(layer int) string) (ordertest.Case, map[string]*certify.Certificate) {
	t.Helper()
	c := ordertest.DrawWith(t, "gemma2", 3, func(config map[string]any) {
		ordertest.Acceptable(config)
		config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"] = layers, hidden, 4
		types := make([]string, layers)
		for i := range types {
			types[i] = order.Sliding
		}
		config["layer_types"], config["max_position_embeddings"] = types, 1<<20
	})
	rng := rand.New(rand.NewPCG(1, 2))
	prompt := make([]float64, tokens)
	for i := range prompt {
		prompt[i] = float64(rng.IntN(c.List.Config.VocabSize))
	}
	m := manifest("local", hooks.BF16)
	m.Config = c.List.Config.Canonical()
	events := []hooks.Event{ids(prompt...)}
	g := engine{adder: adder{block: 1, lanes: 8}, dtype: hooks.BF16}
	r := &engineRun{namedEngine: &namedEngine{dtype: hooks.BF16}, t: t, c: c, weight: map[string]dense{}}
	for i := range c.List.Entries {
		e := &c.List.Entries[i]
		if !strings.HasSuffix(e.Name, "input_layernorm") {
			continue
		}
		shape := []int{1, tokens, hidden}
		x := dense{shape, make([]float64, tokens*hidden)}
		for k := range x.data {
			x.data[k] = floats.Round(hooks.BF16, rng.NormFloat64())
		}
		y := r.compute(e, style(of(e.Layer), g, rng), shape, map[string]dense{e.Inputs[0].Name: x}, nil, nil)
		events = append(events, fire(e.Inputs[0].Name, hooks.BF16, shape, x.data...), fire(e.Name, hooks.BF16, shape, y.data...))
	}
	tr := build(t, m, events...)
	return c, certsOf(t, tr, c, hooks.BF16, func(k string) bool { return strings.HasSuffix(k, "input_layernorm") })
}

// An engine has another kernel in every third layer, as engines have for full attention. What is found does not depend on how
// large the tensors are.
func TestOpenOutsideOfTheSample(t *testing.T) {
	for _, tokens := range []int{64, 8192} {
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			_, z := normsOf(t, 10, 32, tokens, func(layer int) string {
				if layer%3 == 2 {
					return "norms"
				}
				return "strict"
			})
			for k, c := range z {
				t.Logf("%s: %s %q outside %d of %d", k, c.Outcome, c.Arithmetic, c.Outside, c.Elements)
				if !c.Good() {
					t.Errorf("%s of a healthy engine is %s: %d of %d elements, arithmetic %q", k, c.Outcome, c.Outside, c.Elements, c.Arithmetic)
				}
			}
		})
	}
}

// Mended.
func TestReviewMistakesAreNoArithmetic(t *testing.T) {
	passing(t, false, false, 350)               // one row of one norm of 24 with eps times 100, called a second arithmetic
	passing(t, true, false, 103, 177, 213, 242) // a residual sum off by a unit, which alone showed that inputs are wider
}

// Mended: layers of one arithmetic, the final norm of another.
func TestReviewFinalNormOfAnotherKernel(t *testing.T) { accused(t, 123) }

// Open: mistakes that pass as an arithmetic.
func TestOpenMistakesThatPass(t *testing.T) {
	passing(t, false, false, 368)             // a norm with eps times 100: 15 elements in 2 rows, which have one number each
	passing(t, false, true, 5006, 5082, 5158) // scores scaled by 1.003 of their scale, in a cut from q_rope to o_proj
}

// Open: healthy engines that are accused, by entries of one to four elements.
func TestOpenHealthyAccused(t *testing.T) { accused(t, 28, 42, 80, 91, 308) }

// TRACEDIFF_REVIEW draws as many more.
func TestReviewSample(t *testing.T) {
	var all []int
	for n := range envInt("TRACEDIFF_REVIEW", 0) {
		all = append(all, n)
	}
	passing(t, false, false, all...)
	passing(t, true, false, all...)
	passing(t, false, true, all...)
	accused(t, all...)
}
