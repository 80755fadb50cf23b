package diagnose

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// said is a mistake with its sentence, and the page that explains it for an entry of a role.
type said struct {
	m          Mistake
	sentence   string
	role, page string
}

// saying holds mistakes to their sentences and pages, and each row of a table of the catalogue to have one.
func saying(t *testing.T, rows []Row, all []said) {
	t.Helper()
	shown := map[Kind]bool{}
	for _, c := range all {
		shown[c.m.Kind] = true
		if got := c.m.String(); got != c.sentence {
			t.Errorf("%s:\n got %s\nwant %s", c.m.Kind, got, c.sentence)
		}
		page := c.page
		if page != "" {
			page = mistakesPage + page
		}
		if got := c.m.page(c.role); got != page {
			t.Errorf("%s of %s: page %q, want %q", c.m.Kind, c.role, got, page)
		}
	}
	for _, row := range rows {
		if !shown[row.Kind] {
			t.Errorf("no sentence of %s", row.Kind)
		}
	}
}

func TestSentencesOfRotaryMistakes(t *testing.T) {
	theta := Mistake{Kind: "rope.theta", X: some(1e4)}
	left := func(m Mistake) Mistake { m.By = literal(8); return m }
	called := func(m Mistake, fields string) Mistake { m.Called = fields; return m }
	const cos, query = "rotary.full.cos", "layers.*.self_attn.q_rope"
	saying(t, rotaryRows(), []said{
		{theta, "theta is 10000", cos, "rotary-base"},
		{left(theta), "theta is 10000, and the scaling by 8 is missing", cos, "rotary-scaling"},
		{called(theta, "rope_local_base_freq"), "theta is 10000 (rope_local_base_freq)", query, "rotary-base"},
		{left(called(theta, "rope_local_base_freq")), "theta is 10000 (rope_local_base_freq), and the scaling by 8 is missing", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-of-kinds", Times: some(3)}, "theta is 3 times the right value, in layers of each kind", query, "rotary-base"},
		{Mistake{Kind: "rope.theta-exchanged", Of: literal(1e4), For: literal(1e6)}, "theta of sliding and full layers is exchanged: 10000 and 1e+06", cos, "rotary-base"},
		{Mistake{Kind: "rope.theta-unscaled", X: some(1e4)}, "theta is 10000, and RoPE scaling is missing", cos, "rotary-scaling"},
		{called(Mistake{Kind: "rope.theta-unscaled", X: some(1e4)}, "rope_theta"), "theta is 10000 (rope_theta), and RoPE scaling is missing", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-scaled", X: some(8e6)}, "theta is 8e+06 (theta times the scaling factor)", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.theta-scaled", X: some(8e6)}), "theta is 8e+06 (theta times the scaling factor), and the scaling by 8 is missing", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-ntk", X: some(71268.5), N: 4}, "theta is 71268.5 (NTK scaling for 4 times the length)", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.theta-ntk", X: some(71268.5), N: 4}), "theta is 71268.5 (NTK scaling for 4 times the length), and the scaling by 8 is missing", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-of-head", X: some(3162.28), N: 32, M: 16}, "theta is 3162.28 (exponents of a head_dim of 32, not 16)", cos, "rotary-base"},
		{left(Mistake{Kind: "rope.theta-of-head", X: some(3162.28), N: 32, M: 16}), "theta is 3162.28 (exponents of a head_dim of 32, not 16), and the scaling by 8 is missing", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.factor-left-out"}), "RoPE scaling by 8 is missing", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-left-out", Right: some(8)}, "RoPE scaling is missing: long wavelengths are not scaled", query, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-factor", X: some(4), Right: some(8)}, "RoPE scaling: the frequencies are scaled by 4", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-of-all", X: some(8)}, "RoPE scaling: all frequencies are scaled by 8, not only those of long wavelength", cos, "rotary-scaling"},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(sourceRun{0, 1, 0, "unscaled"}, sourceRun{2, 3, 2, "scaled"}, sourceRun{3, 4, 3, "unscaled"})},
			"RoPE scaling is wrong for some frequencies: 0, 3 of 8 is not scaled; 2 of 8 is divided by 4", cos, "rotary-scaling",
		},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(sourceRun{0, 1, 0, "ends-exchanged"}, sourceRun{2, 3, 2, "by-wavelength"})},
			"RoPE scaling is wrong for some frequencies: 0 of 8 is blended with the ends exchanged (1-smooth for smooth); 2 of 8 is blended by wavelength, not by frequency",
			query, "rotary-scaling",
		},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(sourceRun{0, 1, 0, "by-wavelength-everywhere"}, sourceRun{2, 3, 2, "by-frequency-everywhere"})},
			"RoPE scaling is wrong for some frequencies: 0 of 8 is blended by wavelength, also outside the bands; 2 of 8 is blended outside the bands", query, "rotary-scaling",
		},
		{Mistake{Kind: "rope.frequencies-multiplied", X: some(0.125)}, "the rotary frequencies are multiplied by 0.125", cos, "rotary-scaling"},
		{called(Mistake{Kind: "rope.frequencies-multiplied", X: some(0.125)}, "1/rope_scaling.factor"), "the rotary frequencies are multiplied by 0.125 (1/rope_scaling.factor)", query, "rotary-scaling"},
		{Mistake{Kind: "rope.frequencies-multiplied-not-divided", X: some(8)}, "the rotary frequencies are multiplied by 8; they should be divided by it", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.yarn", By: literal(4), For: literal(2048)}, "RoPE scaling is YaRN's, by 4 for a length of 2048", cos, "rotary-scaling"},
		{
			Mistake{Kind: "rope.yarn-multiplied", By: literal(4), For: literal(2048)},
			"RoPE scaling is YaRN's, by 4 for a length of 2048, with its factor on cosines and sines", cos, "rotary-scaling",
		},
		{Mistake{Kind: "rope.llama3", By: literal(8), For: literal(8192)}, "RoPE scaling is Llama 3's, by 8 for a length of 8192", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.bands-exchanged"}, "low_freq_factor and high_freq_factor of RoPE scaling are exchanged", cos, ""},
		{Mistake{Kind: "rope.bands-without-2pi"}, "the wavelengths of RoPE scaling lack 2π: its frequency bands are in the wrong place", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.bands-2pi-twice"}, "the wavelengths of RoPE scaling have 2π twice: its frequency bands are in the wrong place", query, "rotary-scaling"},
		{Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: "low_freq_factor"}, X: some(2), Right: some(1)}, "low_freq_factor of RoPE is 2", cos, ""},
		{called(Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: "theta"}, X: some(1e4)}, "rope_local_base_freq"), "theta of RoPE is 10000 (rope_local_base_freq)", cos, "rotary-base"},
		{Mistake{Kind: "rope.whole-head", N: 8, M: 2, K: 8}, "the whole head is rotated, not a part: none of the 8 rotary frequencies is 0, and the last 6 should be", cos, "partial-rotation"},
		{left(Mistake{Kind: "rope.whole-head", N: 8, M: 2, K: 8}), "the whole head is rotated, not a part: none of the 8 rotary frequencies is 0, and the last 6 should be; theta is 8 for the whole head", cos, "partial-rotation"},
		{Mistake{Kind: "rope.larger-part", N: 8, M: 2, K: 4}, "too large a part of the head is rotated: 4 of 8 rotary frequencies are not 0, instead of 2", query, "partial-rotation"},
		{left(Mistake{Kind: "rope.larger-part", N: 8, M: 2, K: 4}), "too large a part of the head is rotated: 4 of 8 rotary frequencies are not 0, instead of 2; theta is 8 for the whole head", query, "partial-rotation"},
		{Mistake{Kind: "rope.smaller-part", N: 8, K: 5}, "only a part of the head is rotated: the last 3 of 8 rotary frequencies are 0", cos, ""},
		{Mistake{Kind: "rope.exponents-of-part", N: 8, M: 3}, "the exponents of the rotary frequencies are divided by the rotated part (3), not by the whole head (8)", cos, "partial-rotation"},
		{Mistake{Kind: "rope.frequencies-inverted"}, "the rotary frequencies are inverted: positions are multiplied by powers of theta, not divided", cos, "rotary-base"},
		{Mistake{Kind: "rope.frequencies-reversed"}, "the rotary frequencies are in reverse order: the slowest pair comes first", cos, "rotary-pairs"},
		{Mistake{Kind: "rope.frequencies-factors", Axis: pairAxis, Numbers: "1,0.5,1,2"}, "the rotary frequencies are multiplied by a factor each: 0.5 at pair 1; 2 at pair 3", cos, "rotary-base"},
		{Mistake{Kind: "rope.frequencies-rounded", DType: hooks.BF16}, "the rotary frequencies are rounded to bfloat16", cos, "rotary-precision"},
		{Mistake{Kind: "rope.exponents-zero"}, "all rotary frequencies equal the first: the exponents are 0, as after an integer division", cos, "rotary-base"},
		{Mistake{Kind: "rope.exponents-from-one", X: some(3.16228)}, "the exponents of the rotary frequencies start at 1: all frequencies are divided by 3.16228", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.exponents-from-minus-one", X: some(3.16228)}, "the exponents of the rotary frequencies start at -1: all frequencies are multiplied by 3.16228", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.angles-in-turns", X: some(2 * math.Pi)}, "the angles are multiplied by 6.28319: turns and radians are confused", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.angles-in-half-turns", X: some(math.Pi)}, "the angles are multiplied by 3.14159: half turns and radians are confused", cos, "rotary-scaling"},
		{Mistake{Kind: "function.near-in-period", Of: function("cosine"), By: stepTerm("rotary.angle"), For: literal(2.37), X: some(0.056), N: 1}, "a function near the cosine takes its place: it is up to 0.056 off, where step rotary.angle is 2.37", cos, "rotary-precision"},
		{Mistake{Kind: "rope.angles-rounded", DType: hooks.F16}, "the angles are rounded to float16 before cosine and sine", cos, "rotary-precision"},
		{Mistake{Kind: "position.first-at", N: 2}, "positions are +2: the first token is at 2", "rotary.cos", "shifted-positions"},
		{Mistake{Kind: "position.behind-pass", N: -1}, "positions are -1: too small", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.from-zero"}, "positions restart at 0 in each pass: the offset of earlier tokens is missing", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.advanced"}, "positions are too large by the tokens of the pass: the cache offset is read after the update", "layers.*.self_attn.q_rope", "position-offset"},
		{Mistake{Kind: "position.multiplied", By: literal(0.125)}, "positions are multiplied by 0.125", "layers.*.self_attn.q_rope", "position-offset"},
		{Mistake{Kind: "position.behind-pass", N: -2}, "positions are -2: too small", cos, "shifted-positions"},
		{Mistake{Kind: "position.from-zero"}, "positions restart at 0 in each pass: the offset of earlier tokens is missing", query, "position-offset"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", query, "branch-of-zeros"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", "layers.*.self_attn.keys", "stale-cache-slot"},
		{Mistake{Kind: "position.all-zero", Tokens: Tokens{Some: true}}, "every position is 0, for some tokens only", query, ""},
		{Mistake{Kind: "position.rounded", DType: hooks.BF16}, "the positions are rounded to bfloat16", cos, "rotary-precision"},
		{Mistake{Kind: "position.multiples", By: literal(8)}, "the positions are rounded down to multiples of 8: an integer division", cos, "position-offset"},
		{Mistake{Kind: "position.chunks", N: 5}, "positions restart at every 5th token: they are counted within chunks of 5", cos, "position-offset"},
		{Mistake{Kind: "position.still", N: 3}, "every position is 3: it does not advance, as for a full cache", cos, ""},
		{Mistake{Kind: "position.offset", N: 7}, "positions are off by +7", cos, "shifted-positions"},
		{Mistake{Kind: "position.offset", N: -7}, "positions are off by -7", query, "position-offset"},
		{Mistake{Kind: "position.offset-from", N: 1, M: 4}, "positions are off by +1 from position 4 on", cos, "position-offset"},
		{Mistake{Kind: "position.last", N: 7}, "positions stop at 7: later tokens reuse its angles, as with a table that is too short", cos, "position-offset"},
		{Mistake{Kind: "position.padding", N: 2}, "positions are 2 too small, with a minimum of 0: tokens are counted as padding", cos, "position-offset"},
		{Mistake{Kind: "position.reversed"}, "positions count down: the last token of the prompt has position 0", cos, "position-offset"},
		{Mistake{Kind: "position.ahead", For: literal(9), X: some(12), By: literal(3)}, "position 9 has the angle of 12: 3 too far", cos, "positions-of-decode-steps"},
		{Mistake{Kind: "position.behind", For: literal(9), X: some(0), By: literal(9)}, "position 9 has the angle of 0: 9 too small", cos, "positions-of-decode-steps"},
	})
}
