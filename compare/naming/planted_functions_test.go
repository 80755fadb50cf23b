package naming_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// normTimes is a norm with an epsilon of 0.01 that is multiplied by a function of each row.
func normTimes(of func(row []float64) float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		w := p.W[0].Data
		row := p.In[0].Data[i/len(w)*len(w):][:len(w)]
		return p.In[0].Data[i] / math.Sqrt(meanOf(row, func(x float64) float64 { return x * x })+1e-2*of(row)) * w[i%len(w)]
	})
}

func meanOf(row []float64, of func(x float64) float64) float64 {
	sum := 0.0
	for _, x := range row {
		sum += of(x)
	}
	return sum / float64(len(row))
}

// rationalTanh is a tanh by a quotient of two polynomials, and ±1 beyond 3.
func rationalTanh(x float64) float64 {
	return max(min(x*(27+x*x)/(27+9*x*x), 1), -1)
}

// fast is an exponential by a whole power of 2 and a polynomial of the rest.
func fast(coefs ...float64) func(x float64) float64 {
	return func(x float64) float64 {
		x *= math.Log2E
		whole, y := math.Floor(x), 0.0
		for _, c := range slices.Backward(coefs) {
			y = y*(x-whole) + c
		}
		return math.Exp2(whole) * y
	}
}

// Functions that a port approximates, and numbers that it multiplies by a number of each row, are named in float32 and in bfloat16. What depends on more than
// the value, and noise, is none of it.
func TestFunctionsInPlainLoopsAreNamed(t *testing.T) {
	clipped := ofEach(func(x float64) float64 { return x * max(min(0.2*x+0.5, 1), 0) })
	power := ofEach(func(x float64) float64 { return x / (1 + math.Pow(1-x/256, 256)) })
	rational := ofEach(func(x float64) float64 { return 2 * rationalTanh(x/2) })
	lines := ofEach(func(x float64) float64 {
		size := math.Abs(x / 2)
		return 2 * math.Copysign(min(0.924*size, 0.462+0.6*(size-0.5), 0.95), x)
	})
	squareOfLargest := normTimes(func(row []float64) float64 {
		most := 0.0
		for _, x := range row {
			most = max(most, math.Abs(x))
		}
		return most * most
	})
	line, cubic := fast(1, 1), fast(1, 0.6956, 0.2244, 0.08)
	const powersOf2 = "function.near-powers-of-2(of=function:silu"
	for _, c := range []struct {
		name, model, at string
		dtype           hooks.DType
		wrong           func(p *wrongPort) []float64
		key             string
	}{
		{"sigmoid of three lines", "llama", "act_fn", hooks.F32, clipped, "function.lines-times-input(of=function:silu,by=tensor:layers.*.mlp.gate_proj,n=3)"},
		{"sigmoid of three lines", "llama", "act_fn", hooks.BF16, clipped, "function.lines-times-input(of=function:silu,by=tensor:layers.*.mlp.gate_proj,n=3)"},
		{"exp by a power", "llama", "act_fn", hooks.F32, power, "function.near("},
		{"exp by a power", "llama", "act_fn", hooks.BF16, power, "function.near("},
		{"tanh by a quotient", "gemma2", "scores_softcap", hooks.F32, rational, "function.near("},
		{"tanh by a quotient", "gemma2", "scores_softcap", hooks.BF16, rational, "function.near("},
		{"tanh of five lines", "gemma2", "scores_softcap", hooks.F32, lines, "function.of-lines(of=the-result,by=tensor:layers.*.self_attn.scores,n=5)"},
		{"tanh of five lines", "gemma2", "scores_softcap", hooks.BF16, lines, "function.of-lines(of=the-result,by=tensor:layers.*.self_attn.scores,n=5)"},
		{"exp by lines", "llama", "act_fn", hooks.F32, ofEach(func(x float64) float64 { return x / (1 + line(-x)) }), powersOf2},
		{"exp by lines", "llama", "act_fn", hooks.BF16, ofEach(func(x float64) float64 { return x / (1 + line(-x)) }), powersOf2},
		{"exp by a cubic", "llama", "act_fn", hooks.F32, ofEach(func(x float64) float64 { return x / (1 + cubic(-x)) }), powersOf2},
		{"sigmoid by the other exp", "llama", "act_fn", hooks.F32, ofEach(func(x float64) float64 { return x * line(x) / (1 + line(x)) }), powersOf2},
		{"tanh by lines", "gemma2", "scores_softcap", hooks.F32, ofEach(func(x float64) float64 { return 2 * (line(x) - 1) / (line(x) + 1) }), "function.near-powers-of-2(of=step:softcap.tanh"},
		{"no tail", "llama", "act_fn", hooks.F32, ofEach(func(x float64) float64 {
			if x < -1.5 {
				return 0
			}
			return x * sigmoid(x)
		}), "activation.zero-below(place=silu,x=-1.5)"},
		{"epsilon behind a rescaling", "llama", norms, hooks.F32, squareOfLargest, "number.times-statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:largest-square)"},
		{"epsilon behind a rescaling", "llama", norms, hooks.BF16, squareOfLargest, "number.times-statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:largest-square)"},
	} {
		t.Run(c.name+" "+c.dtype.String(), func(t *testing.T) {
			if f := (plantedName{model: c.model, dtype: c.dtype, at: c.at, wrong: c.wrong}).named(t); f == nil || !strings.HasPrefix(f.Name.Key(), c.key) {
				t.Errorf("it is %v, not %s; %v %v %v", f, c.key, f.Description, f.Nearest, f.Left)
			}
		})
	}
}

// What is no function of the value alone is not called one, nor is noise a statistic of rows.
func TestOtherMistakesAreNoFunctions(t *testing.T) {
	for _, c := range []struct {
		name, model, at string
		wrong           func(p *wrongPort) []float64
	}{
		{"a factor of the place", "llama", "act_fn", gives(func(p *wrongPort, i int) float64 {
			return p.In[0].Data[i] * sigmoid(p.In[0].Data[i]) * (1 + math.Sin(float64(i*i))/100)
		})},
		{"another operand", "llama", "act_fn", gives(func(p *wrongPort, i int) float64 {
			x := p.In[0].Data[(i+64*3)%len(p.In[0].Data)]
			return x * sigmoid(x+p.In[0].Data[i]/8)
		})},
		{"a staircase", "llama", "act_fn", ofEach(func(x float64) float64 { x = math.Round(37*x) / 37; return x * sigmoid(x) })},
		{"a saturated function", "gemma2", "scores_softcap", ofEach(func(x float64) float64 { return 2 * math.Tanh(40*x*(1+math.Sin(1e3*x)/3)) })},
		{"noise of rows", "llama", norms, normTimes(func(row []float64) float64 { return 2 + math.Sin(1e3*row[0]) })},
	} {
		for _, d := range []hooks.DType{hooks.F32, hooks.BF16} {
			t.Run(c.name+" "+d.String(), func(t *testing.T) {
				f := plantedName{model: c.model, dtype: d, at: c.at, wrong: c.wrong}.named(t)
				for _, kind := range []string{"function.", "number."} {
					if f != nil && strings.HasPrefix(string(f.Mistake.Kind), kind) {
						t.Errorf("it is %s", f.What)
					}
				}
			})
		}
	}
}

// An exponential within an operation that depends on more than the fraction of its exponent is no power of 2 times a polynomial.
func TestOtherExponentialsAreNoPowersOf2(t *testing.T) {
	swish := func(exp func(x float64) float64) func(p *wrongPort) []float64 {
		return ofEach(func(x float64) float64 { return x / (1 + exp(-x)) })
	}
	line := fast(1, 1)
	for _, c := range []struct {
		name  string
		wrong func(p *wrongPort) []float64
	}{
		{"noise", swish(func(x float64) float64 { return math.Exp(x) * (1 + math.Sin(1e4*x)/50) })},
		{"another scale", swish(func(x float64) float64 { return math.Exp(1.03 * x) })},
		{"a table", swish(func(x float64) float64 { return math.Exp(math.Round(16*x) / 16) })},
		{"lines, and a scale of each power", swish(func(x float64) float64 { return line(x) * (1 + math.Floor(x*math.Log2E)/100) })},
	} {
		for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
			if f := (plantedName{model: "llama", dtype: dtype, at: "act_fn", wrong: c.wrong}).named(t); f != nil && strings.HasPrefix(f.Name.Key(), "function.near-powers-of-2") {
				t.Errorf("%s in %s: %v", c.name, dtype, f)
			}
		}
	}
}
