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
		if got := c.m.Page(c.role); got != page {
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
		{left(theta), "theta is 10000 and the scaling by 8 is left out", cos, "rotary-scaling"},
		{called(theta, "rope_local_base_freq"), "theta is 10000 (rope_local_base_freq)", query, "rotary-base"},
		{left(called(theta, "rope_local_base_freq")), "theta is 10000 (rope_local_base_freq) and the scaling by 8 is left out", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-of-kinds", Times: some(3)}, "theta is 3 times what it should be, in layers of each kind", query, "rotary-base"},
		{Mistake{Kind: "rope.theta-exchanged", Of: literal(1e4), For: literal(1e6)}, "theta is that of the other kind of layer: 10000 and 1e+06 are exchanged", cos, "rotary-base"},
		{Mistake{Kind: "rope.theta-unscaled", X: some(1e4)}, "theta is 10000, and the frequencies are not scaled", cos, "rotary-scaling"},
		{called(Mistake{Kind: "rope.theta-unscaled", X: some(1e4)}, "rope_theta"), "theta is 10000 (rope_theta), and the frequencies are not scaled", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-scaled", X: some(8e6)}, "theta is 8e+06 (theta times the factor of the scaling)", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.theta-scaled", X: some(8e6)}), "theta is 8e+06 (theta times the factor of the scaling) and the scaling by 8 is left out", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-ntk", X: some(71268.5), N: 4}, "theta is 71268.5 (raised for 4 times the length, as NTK scaling does)", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.theta-ntk", X: some(71268.5), N: 4}), "theta is 71268.5 (raised for 4 times the length, as NTK scaling does) and the scaling by 8 is left out", query, "rotary-scaling"},
		{Mistake{Kind: "rope.theta-of-head", X: some(3162.28), N: 32, M: 16}, "theta is 3162.28 (the exponents are those of a head of 32, not 16)", cos, "rotary-base"},
		{left(Mistake{Kind: "rope.theta-of-head", X: some(3162.28), N: 32, M: 16}), "theta is 3162.28 (the exponents are those of a head of 32, not 16) and the scaling by 8 is left out", cos, "rotary-scaling"},
		{left(Mistake{Kind: "rope.factor-left-out"}), "the scaling by 8 of the rotary frequencies is left out", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-left-out", Right: some(8)}, "the rotary frequencies are not scaled: the scaling of long waves is left out", query, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-factor", X: some(4), Right: some(8)}, "the rotary frequencies are scaled by 4", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.scaling-of-all", X: some(8)}, "all rotary frequencies are scaled by 8, not those of long waves alone", cos, "rotary-scaling"},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(Run{0, 1, 0, "unscaled"}, Run{2, 3, 2, "scaled"}, Run{3, 4, 3, "unscaled"})},
			"the scaling is another for some rotary frequencies: 0, 3 of 8 is not scaled; 2 of 8 is divided by 4", cos, "rotary-scaling",
		},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(Run{0, 1, 0, "ends-exchanged"}, Run{2, 3, 2, "by-wavelength"})},
			"the scaling is another for some rotary frequencies: 0 of 8 is between the bands with its ends exchanged (1-smooth for smooth); 2 of 8 is between the bands by its wavelength, not by its frequency",
			query, "rotary-scaling",
		},
		{
			Mistake{Kind: "rope.scaling-of-some", N: 8, By: literal(4), Runs: makeRuns(Run{0, 1, 0, "by-wavelength-everywhere"}, Run{2, 3, 2, "by-frequency-everywhere"})},
			"the scaling is another for some rotary frequencies: 0 of 8 is blended by its wavelength, and beyond the bands; 2 of 8 is blended beyond the bands", query, "rotary-scaling",
		},
		{Mistake{Kind: "rope.frequencies-multiplied", X: some(0.125)}, "the rotary frequencies are multiplied by 0.125", cos, "rotary-scaling"},
		{called(Mistake{Kind: "rope.frequencies-multiplied", X: some(0.125)}, "1/rope_scaling.factor"), "the rotary frequencies are multiplied by 0.125 (1/rope_scaling.factor)", query, "rotary-scaling"},
		{Mistake{Kind: "rope.frequencies-multiplied-not-divided", X: some(8)}, "the rotary frequencies are multiplied by 8, where they are to be divided by it", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.yarn", By: literal(4), For: literal(2048)}, "the rotary frequencies are scaled as YaRN does, by 4 for a length of 2048", cos, "rotary-scaling"},
		{
			Mistake{Kind: "rope.yarn-multiplied", By: literal(4), For: literal(2048)},
			"the rotary frequencies are scaled as YaRN does, by 4 for a length of 2048, with its factor of cosines and sines", cos, "rotary-scaling",
		},
		{Mistake{Kind: "rope.llama3", By: literal(8), For: literal(8192)}, "the rotary frequencies are scaled as Llama 3's are, by 8 for a length of 8192", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.bands-exchanged"}, "low_freq_factor and high_freq_factor of the rotary embedding are exchanged", cos, ""},
		{Mistake{Kind: "rope.bands-without-2pi"}, "wavelengths lack 2π: the bands of the scaling of rotary frequencies lie elsewhere", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.bands-2pi-twice"}, "wavelengths have 2π twice: the bands of the scaling of rotary frequencies lie elsewhere", query, "rotary-scaling"},
		{Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: "low_freq_factor"}, X: some(2), Right: some(1)}, "low_freq_factor of the rotary embedding is 2", cos, ""},
		{called(Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: "theta"}, X: some(1e4)}, "rope_local_base_freq"), "theta of the rotary embedding is 10000 (rope_local_base_freq)", cos, "rotary-base"},
		{Mistake{Kind: "rope.whole-head", N: 8, M: 2, K: 8}, "none of the 8 rotary frequencies is 0, where the last 6 are to be: the whole head is rotated, not a part of it", cos, "partial-rotation"},
		{left(Mistake{Kind: "rope.whole-head", N: 8, M: 2, K: 8}), "none of the 8 rotary frequencies is 0, where the last 6 are to be: the whole head is rotated, not a part of it; theta is 8 for the whole head", cos, "partial-rotation"},
		{Mistake{Kind: "rope.larger-part", N: 8, M: 2, K: 4}, "4 of 8 rotary frequencies are not 0, where 2 are to be", query, "partial-rotation"},
		{left(Mistake{Kind: "rope.larger-part", N: 8, M: 2, K: 4}), "4 of 8 rotary frequencies are not 0, where 2 are to be; theta is 8 for the whole head", query, "partial-rotation"},
		{Mistake{Kind: "rope.smaller-part", N: 8, K: 5}, "the last 3 of 8 rotary frequencies are 0: a part of the head alone is rotated", cos, ""},
		{Mistake{Kind: "rope.exponents-of-part", N: 8, M: 3}, "the exponents of the rotary frequencies count the 3 that are not 0, not all 8", cos, "partial-rotation"},
		{Mistake{Kind: "rope.frequencies-inverted"}, "the rotary frequencies are inverted: positions are multiplied by the powers of theta, not divided by them", cos, "rotary-base"},
		{Mistake{Kind: "rope.frequencies-reversed"}, "the rotary frequencies are in reverse order: the slowest pair is the first", cos, "rotary-pairs"},
		{Mistake{Kind: "rope.frequencies-rounded", DType: hooks.BF16}, "the rotary frequencies are rounded to bfloat16", cos, "rotary-precision"},
		{Mistake{Kind: "rope.exponents-zero"}, "every rotary frequency is the first: their exponents are all 0, as where they are divided as whole numbers", cos, "rotary-base"},
		{Mistake{Kind: "rope.exponents-from-one", X: some(3.16228)}, "the exponents of the rotary frequencies are counted from 1: all are divided by 3.16228", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.exponents-from-minus-one", X: some(3.16228)}, "the exponents of the rotary frequencies are counted from -1: all are multiplied by 3.16228", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.angles-in-turns", X: some(2 * math.Pi)}, "the angles are multiplied by 6.28319: turns are taken for radians, or radians for turns", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.angles-in-half-turns", X: some(math.Pi)}, "the angles are multiplied by 3.14159: half turns are taken for radians, or radians for half turns", cos, "rotary-scaling"},
		{Mistake{Kind: "rope.angles-rounded", DType: hooks.F16}, "the angles are rounded to float16 before their cosines and sines are taken", cos, "rotary-precision"},
		{Mistake{Kind: "position.first-at", N: 2}, "positions are +2: the first is at 2", "rotary.cos", "shifted-positions"},
		{Mistake{Kind: "position.behind-pass", N: -1}, "positions are -1: behind where they should be", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.from-zero"}, "positions of a pass count from 0: those of the tokens before are missing", "rotary.cos", "positions-of-decode-steps"},
		{Mistake{Kind: "position.advanced"}, "positions are advanced by the tokens of the pass: the offset is that after it", "layers.*.self_attn.q_rope", "position-offset"},
		{Mistake{Kind: "position.multiplied", By: literal(0.125)}, "positions are multiplied by 0.125", "layers.*.self_attn.q_rope", "position-offset"},
		{Mistake{Kind: "position.behind-pass", N: -2}, "positions are -2: behind where they should be", cos, "shifted-positions"},
		{Mistake{Kind: "position.from-zero"}, "positions of a pass count from 0: those of the tokens before are missing", query, "position-offset"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", query, "branch-of-zeros"},
		{Mistake{Kind: "position.all-zero"}, "every position is 0", "layers.*.self_attn.keys", "stale-cache-slot"},
		{Mistake{Kind: "position.all-zero", Tokens: Tokens{Some: true}}, "every position is 0, for some tokens alone", query, ""},
		{Mistake{Kind: "position.rounded", DType: hooks.BF16}, "the positions are rounded to bfloat16", cos, "rotary-precision"},
		{Mistake{Kind: "position.multiples", By: literal(8)}, "the positions are rounded down to multiples of 8: they are divided as whole numbers", cos, "position-offset"},
		{Mistake{Kind: "position.chunks", N: 5}, "the positions start again at every 5th token: they are counted in chunks of 5", cos, "position-offset"},
		{Mistake{Kind: "position.still", N: 3}, "every position is 3: it stands still, as that of a slot of a full cache", cos, ""},
		{Mistake{Kind: "position.offset", N: 7}, "positions are +7: all are off by as much", cos, "shifted-positions"},
		{Mistake{Kind: "position.offset", N: -7}, "positions are -7: all are off by as much", query, "position-offset"},
		{Mistake{Kind: "position.offset-from", N: 1, M: 4}, "the positions are +1 from the token at 4 on", cos, "position-offset"},
		{Mistake{Kind: "position.last", N: 7}, "the positions end at 7: those behind it have its angles, as where a table is too short", cos, "position-offset"},
		{Mistake{Kind: "position.padding", N: 2}, "the positions are 2 less and not below 0: tokens are counted as padding", cos, "position-offset"},
		{Mistake{Kind: "position.reversed"}, "the positions count down: the last token of the prompt has that of the first", cos, "position-offset"},
		{Mistake{Kind: "position.ahead", For: literal(9), X: some(12), By: literal(3)}, "position 9 is taken for 12: 3 too far", cos, "positions-of-decode-steps"},
		{Mistake{Kind: "position.behind", For: literal(9), X: some(0), By: literal(9)}, "position 9 is taken for 0: 9 behind", cos, "positions-of-decode-steps"},
	})
}
