package isolate

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Outcome is the verdict of isolation on one entry.
type Outcome string

// The outcomes.
const (
	Exact    Outcome = "EXACT"    // every element is the rounded exact value
	Rounding Outcome = "ROUNDING" // every element is what correct arithmetic may make of the inputs
	// Unidentified: transformers' arithmetic does not give every element, and neither does a known definite
	// arithmetic, but some choice of roundings can give each element; or an unequal element has an infinite bound.
	// Neither right nor wrong.
	Unidentified Outcome = "UNIDENTIFIED"
	Bug          Outcome = "BUG" // some element is not
	// OtherLayout: some element is not, and the difference cancels further on: package chain decides it.
	OtherLayout Outcome = "LAYOUT"
	// NotCertified: an operation on the way has not reproduced transformers, so it may not accuse; see [Certified].
	NotCertified Outcome = "UNVERIFIED"
)

// Mistake is what a search found to be wrong with the entries of a form.
type Mistake interface {
	// Named reports whether it is known which change to the operation it is.
	Named() bool
	// Text is the mistake in a sentence.
	Text() string
}

// Describe says in the certificate what is wrong with the entry.
func (c *Certificate) Describe(m Mistake) {
	if c.Found = m; m.Named() {
		c.Mistake = m.Text()
	}
}

// Certificate is the verdict on one entry, isolated from the rest of the trace: the entry is recomputed from the
// trace's own inputs and compared, element by element, with the possible results of correct arithmetic. x is the
// exact value of an element on these inputs, δ the bound on the error of correct arithmetic before the last
// rounding R, y the element of the trace.
type Certificate struct {
	Outcome  Outcome `json:"outcome"`
	Elements int64   `json:"elements"`
	Unequal  int64   `json:"unequal"` // elements that are not R(x)
	Outside  int64   `json:"outside"` // elements y outside R([x − δ, x + δ]), in the arithmetic below
	// Unbounded counts elements with an infinite δ, and hence without a verdict: too many of their inputs were not
	// captured, or an input is not finite.
	Unbounded int64 `json:"unbounded,omitempty"`
	// Reach is ‖δ‖ / ‖R(x)‖, without the last rounding: how far off, as relative L2, an operation may be and pass. 0 where every
	// bound is 0; infinite for bounds around a tensor of zeros that is not equal to them.
	Reach measure.Number `json:"reach"`
	// Sampled is how many elements Reach, Power, Scale and ScaleError are those of, where that is a sample; 0 for all.
	Sampled int64 `json:"sampled,omitempty"`
	// Worst is the largest |y − R(x)| of these, in units of δ or of the dtype's last place at x, whichever is larger. Elements that are masked on a side, and
	// those that have to be 0 with a bound of 0, have no unit and are left out; 0 where no other is there.
	Worst measure.Number `json:"worst,omitempty"`
	RelL2 measure.Number `json:"rel_l2"` // ‖y − R(x)‖ / ‖R(x)‖, masked elements left out; in strict arithmetic

	// Arithmetic is the one in which the entry was judged: "strict", or how the engine rounds otherwise than transformers.
	Arithmetic string `json:"arithmetic,omitempty"`
	// Where says where it does, if not in the operation of the entry but on the way to it: "gelu_tanh in mlp".
	Where string `json:"where,omitempty"`
	// Mistake is the name of what is wrong, in a sentence.
	Mistake string `json:"mistake,omitempty"`
	// Found is the mistake, in the terms of the engine's form; nil if unknown.
	Found Mistake `json:"-"`
	// Summation is the order of summation that explains most of the elements outside every bound, or "several
	// orders together"; empty if no such element exists.
	Summation string `json:"summation,omitempty"`

	// Power is the smallest error of scale that would have been outside here: for y = R(x·(1+ε)) with |ε| that large, at
	// least one element is. NaN where no scale is seen: a tensor of zeros, or of infinities.
	Power measure.Number `json:"power"`
	// Scale is the s for which s·R(x) comes nearest to y, and ScaleError its standard error; see scaleFit. NaN where no element
	// has a scale.
	Scale      measure.Number `json:"scale"`
	ScaleError measure.Number `json:"scale_error"`

	// Nearer says why an entry is a BUG although no element is outside; nil in all other certificates.
	Nearer *Nearer `json:"nearer,omitempty"`

	// Set says where the elements outside lie, a phrase an axis: "tokens 3 and after", "channel 17", "44 of 64 channels".
	Set []string `json:"set,omitempty"`
	// FirstToken is, of a BUG, the first token of the pass with an element outside; −1 for an entry without tokens.
	FirstToken int      `json:"-"`
	From       []string `json:"from,omitempty"` // keys of the captured tensors that it was computed from
	Form       string   `json:"form"`           // of the entry's operation, see [op.Form]

	// Stopped is, of an UNIDENTIFIED entry, how the search for its arithmetic goes on, which stopped at its limit; empty where the search ended.
	Stopped string `json:"stopped,omitempty"`

	Unverified string `json:"-"` // the form that may not accuse; empty where all may
}

// notIdentified says what UNIDENTIFIED means.
const notIdentified = "rounding could explain it, but no known arithmetic reproduces all entries of this operation"

// Unidentified says why an UNIDENTIFIED entry has no known arithmetic.
func (c *Certificate) Unidentified() string {
	if c.Stopped == "" {
		return notIdentified
	}
	return notIdentified + "; the search for one stopped at its limit, " + c.Stopped
}

// Good reports whether the entry is right on its own inputs.
func (c *Certificate) Good() bool { return c.Outcome == Exact || c.Outcome == Rounding }

// Judgement is a trace's tensor against an expected value with its bounds.
type Judgement struct {
	X, Y  program.Value
	DType hooks.DType // of y
	saved hooks.DType // that y was saved in, where it lost digits; else 0
	Model hooks.DType
	Rule  order.Rule
	run   int // how many elements a token has, see runOf
}

// masked reports whether element i is masked on both sides: which number says so, every engine chooses for itself.
func (j *Judgement) masked(i int) bool {
	limit := measure.MaskLimit(j.DType, j.Model)
	return j.Rule != order.All && j.Y.Data[i] < limit && floats.Round(j.DType, j.X.Data[i]) < limit
}

// Round is what y has of a number.
func (j *Judgement) Round(x float64) float64 {
	r := floats.Round(j.DType, x)
	if j.saved != 0 {
		return floats.Round(j.saved, r)
	}
	return r
}

// Consistent reports whether element i may be what correct arithmetic makes of the inputs.
func (j *Judgement) Consistent(i int) bool { return j.holds(i, j.Round(j.X.Data[i])) || j.masked(i) }

// holds is consistent for an element that is not masked. Want is R(x).
func (j *Judgement) holds(i int, want float64) bool {
	y, x, e := j.Y.Data[i], j.X.Data[i], j.X.Bound[i]
	if e >= 0 && y == want { // nearly every element is R(x), which no bound takes from it
		return true
	}
	if x != x || y != y {
		return x != x && y != y
	}
	if math.IsInf(x, 0) && x == y {
		return true
	}
	if math.Abs(y-x) <= e*within && !math.IsInf(e, 1) && y == j.Round(y) { // a number of d is between the ends, rounded or not
		return true
	}
	return y >= j.Round(x-e) && y <= j.Round(x+e)
}

// guessed reports whether an element is not R(x) and has no bound: any number is consistent with it.
func (j *Judgement) guessed(i int) bool {
	y, x := j.Y.Data[i], j.X.Data[i]
	return math.IsInf(j.X.Bound[i], 1) && y != j.Round(x) && (y == y || x == x) && !j.masked(i)
}

// Guesses reports whether an element is guessed.
func (j *Judgement) Guesses() bool {
	for i := range j.Y.Data {
		if j.guessed(i) {
			return true
		}
	}
	return false
}

// without returns the outcome of an entry without an element outside. guessed: an element has no finite bound; see
// Looked.
func (c *Certificate) without(guessed bool) Outcome {
	switch {
	case guessed:
		return Unidentified
	case c.Unequal > 0:
		return Rounding
	}
	return Exact
}

// measured holds the sums of a certificate against x in strict arithmetic, without the verdict.
type measured struct {
	Certificate
	sampled                        bool // the bounds of some elements are ceilings
	dd, rr, ee, sampledR, sampledE float64
}

// certificate returns the certificate of the sums, and an upper bound on the reach of all elements.
func (m *measured) certificate() (c *Certificate, ceiling float64) {
	all := m.Certificate
	c = &all
	c.RelL2 = measure.Number(measure.Ratio(math.Sqrt(m.dd), math.Sqrt(m.rr)))
	ceiling = measure.Ratio(math.Sqrt(m.ee), math.Sqrt(m.rr))
	ee, rr := m.ee, m.rr
	if m.sampled {
		ee, rr = m.sampledE, m.sampledR
	}
	if c.Reach = measure.Number(measure.Ratio(math.Sqrt(ee), math.Sqrt(rr))); rr == 0 && c.Unequal == 0 {
		c.Reach = 0
	}
	return c, ceiling
}

// power is the smallest |ε| with which R(x·(1+ε)) leaves R([x−δ, x+δ]) in some element, in the direction that is
// harder to see. Rounding is monotone, so an element leaves when |x|·(1+ε) passes the midpoint beyond R(|x|+δ), or the one
// below R(|x|−δ).
type power struct{ up, down float64 }

func newPower() power { return power{math.Inf(1), math.Inf(1)} }

// see takes in an element of d with its bound: a is |x|.
func (p *power) see(d hooks.DType, a, e float64) {
	// The midpoint beyond R(a + e) is not below a + e, so that an element leaves at ε ≥ e/a, less what float64 rounds.
	const above, off = 1 + 0x1p-40, 0x1p-50
	if a == 0 || math.IsInf(a, 0) || a != a || e >= (max(p.up, p.down)*above+off)*a {
		return
	}
	hi := floats.Round(d, a+e)
	place := LastPlace(d, hi)
	p.up = min(p.up, (hi+place/2)/a-1)
	lo := hi
	if e != 0 {
		lo = floats.Round(d, a-e)
		place = LastPlace(d, lo)
	}
	if lo > 0 {
		p.down = min(p.down, 1-(lo-place/2)/a)
	}
}

// number is NaN where no element shows a scale.
func (p *power) number() measure.Number {
	if worst := max(p.up, p.down); !math.IsInf(worst, 0) {
		return measure.Number(worst)
	}
	return measure.Nan
}

// LastPlace is the distance of d's numbers at x: at 0 the smallest subnormal, and 0 at those that are not finite.
func LastPlace(d hooks.DType, x float64) float64 {
	const bias, digits = 1023, 52 // of a float64
	exponent := int(math.Float64bits(x) >> digits & (2*bias + 1))
	if exponent > 2*bias {
		return 0
	}
	// The distance between two numbers of any dtype is a normal float64.
	at := max(exponent-bias, floats.MinExponent(d)) - floats.Precision(d) + 1
	return math.Float64frombits(uint64(at+bias) << digits)
}

// Nearer counts rows of an entry. Other entries of the form prove a mistake. In With rows the mistake gives more elements to the bit than the right operation
// does, and in Without rows fewer.
type Nearer struct {
	With    int `json:"with"`
	Without int `json:"without"`
}

// words say why an entry is wrong although no element is outside of its bounds.
func (n Nearer) words() string {
	return fmt.Sprintf("wrong on its own inputs: rounding could explain every element, but the mistake that other entries prove reproduces more elements to the bit in %d rows, and fewer in %d",
		n.With, n.Without)
}
