package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// turning are the roles of rotary tables and of what is rotated.
const turning = tables + "|" + rotated

// Pages of rotary mistakes. An entry of another role has a rotary mistake if the program from its captured inputs computes the tables.
var (
	scoresPages    = []Page{{Anchor: "attention-scale", Roles: "scores"}}
	scalingPages   = []Page{{Anchor: "rotary-scaling", Roles: turning}}
	scalingLeftOut = []Page{{Anchor: "missing-residual", Roles: stream, If: withScaling}}
	thetaPages     = slices.Concat([]Page{{Anchor: "rotary-scaling", Roles: turning, If: ofScaling}, {Anchor: "rotary-base", Roles: turning}}, scalingLeftOut)
	partPages      = []Page{{Anchor: "partial-rotation", Roles: turning}}
	anglePages     = []Page{{Anchor: "rotary-scaling", Roles: tables}, {Anchor: "scale-moved-to-the-queries", Roles: rotated}}
	settingPages   = slices.Concat([]Page{
		{Anchor: "rotary-scaling", Roles: turning, If: ofScaling}, {Anchor: "rotary-base", Roles: turning, If: ofTheta}, {Anchor: "attention-scale", Roles: "scores", If: ofFactor},
	})
	offsetPages     = pagesOf("shifted-positions", tables, "position-offset", rotated)
	positionPages   = []Page{{Anchor: "position-offset", Roles: tables}}
	decodePages     = []Page{{Anchor: "positions-of-decode-steps", Roles: tables}}
	passOffsetPages = slices.Concat(
		[]Page{{Anchor: "positions-of-decode-steps", Roles: tables, If: func(m Mistake) bool { return m.N == -1 }}},
		pagesOf("shifted-positions", tables, "position-offset", rotated),
	)
	zeroPositions = slices.Concat([]Page{
		{Anchor: "positions-of-decode-steps", Roles: tables},
		{Anchor: "stale-cache-slot", Roles: caches},
		{Anchor: "branch-of-zeros", If: func(m Mistake) bool { return !m.Tokens.Some }},
	})
)

// withScaling reports whether a mistake of the base also leaves out the scaling. ofScaling reports this too, and whether the wrong number is a field of
// the scaling.
func withScaling(m Mistake) bool { return m.By != Term{} }

func ofScaling(m Mistake) bool { return withScaling(m) || strings.Contains(m.Called, "scaling") }

// ofTheta reports whether the wrong setting is the base. ofFactor reports whether the wrong setting, or a field with its number, is a factor.
func ofTheta(m Mistake) bool { return m.Of.Name == "theta" }

func ofFactor(m Mistake) bool { return strings.Contains(m.Of.Name+m.Called, "factor") }

// oneNumber is the count of solved numbers of a mistake that has one.
func oneNumber(Mistake) int { return 1 }

// rotaryRows are mistakes in rotary tables and positions.
func rotaryRows() []Row {
	return []Row{
		// The base.
		{Kind: "rope.theta", Words: "theta is {x}[ ({called})][, and the scaling by {by} is missing]", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-of-kinds", Words: "theta is {times} times the right value, in layers of each kind", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.theta-exchanged", Words: "theta of sliding and full layers is exchanged: {of} and {for}", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.theta-unscaled", Words: "theta is {x}[ ({called})], and RoPE scaling is missing", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-scaled", Words: "theta is {x} (theta times the scaling factor)[, and the scaling by {by} is missing]", Pages: slices.Concat([]Page{{Anchor: "attention-scale", Roles: "probs|context|scores"}}, scalingPages, scalingLeftOut), Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-ntk", Words: "theta is {x} (NTK scaling for {n} times the length)[, and the scaling by {by} is missing]", Pages: slices.Concat(scalingPages, scalingLeftOut), Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-of-head", Words: "theta is {x} (exponents of a head_dim of {n}, not {m})[, and the scaling by {by} is missing]", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},

		// The scaling.
		{Kind: "rope.factor-left-out", Words: "RoPE scaling by {by} is missing", Pages: slices.Concat([]Page{{Anchor: "missing-residual", Roles: stream}}, scalingPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.scaling-left-out", Words: "RoPE scaling is missing: long wavelengths are not scaled", Pages: slices.Concat([]Page{{Anchor: "missing-residual", Roles: stream}}, scalingPages), Apply: otherFrequencies, Class: edit.Known, Field: Scaling},
		{Kind: "rope.scaling-factor", Words: "RoPE scaling: the frequencies are scaled by {x}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Field: Scaling},
		{Kind: "rope.scaling-of-all", Words: "RoPE scaling: all frequencies are scaled by {x}, not only those of long wavelength", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.scaling-of-some", Words: "RoPE scaling is wrong for some frequencies: {scalings}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Weak: true, Solved: func(m Mistake) int { return len(m.Runs.list()) }},
		{Kind: "rope.frequencies-multiplied", Words: "the rotary frequencies are multiplied by {x}[ ({called})]", Pages: slices.Concat(scoresPages, scalingPages), Apply: otherFrequencies, Class: edit.Known, WeakIf: func(m Mistake) bool { return m.Called == "" }},
		{Kind: "rope.frequencies-multiplied-not-divided", Words: "the rotary frequencies are multiplied by {x}; they should be divided by it", Pages: slices.Concat(scoresPages, scalingPages), Apply: otherFrequencies, Class: edit.Known, Weak: true},
		{Kind: "rope.yarn", Words: "RoPE scaling is YaRN's, by {by} for a length of {for}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.yarn-multiplied", Words: "RoPE scaling is YaRN's, by {by} for a length of {for}, with its factor on cosines and sines", Pages: slices.Concat(scoresPages, scalingPages), Apply: yarnMultiplied, Class: edit.Known},
		{Kind: "rope.llama3", Words: "RoPE scaling is Llama 3's, by {by} for a length of {for}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-exchanged", Words: "low_freq_factor and high_freq_factor of RoPE scaling are exchanged", Pages: scoresPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-without-2pi", Words: "the wavelengths of RoPE scaling lack 2π: its frequency bands are in the wrong place", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-2pi-twice", Words: "the wavelengths of RoPE scaling have 2π twice: its frequency bands are in the wrong place", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.setting", Words: "{of} of RoPE is {x}[ ({called})]", Pages: settingPages, Apply: otherFrequencies, Class: edit.Known, Field: AName, WeakIf: func(m Mistake) bool { return m.Of.Name == "theta" }},

		// The part of a head that is rotated.
		{Kind: "rope.whole-head", Words: "the whole head is rotated, not a part: none of the {n} rotary frequencies is 0, and the last {n-m} should be[; theta is {by} for the whole head]", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.larger-part", Words: "too large a part of the head is rotated: {k} of {n} rotary frequencies are not 0, instead of {m}[; theta is {by} for the whole head]", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.smaller-part", Words: "only a part of the head is rotated: the last {n-k} of {n} rotary frequencies are 0", Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-of-part", Words: "the exponents of the rotary frequencies are divided by the rotated part ({m}), not by the whole head ({n})", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},

		// The frequencies.
		{Kind: "rope.frequencies-inverted", Words: "the rotary frequencies are inverted: positions are multiplied by powers of theta, not divided", Pages: slices.Concat([]Page{{Anchor: "rotary-base", Roles: turning}}, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.frequencies-reversed", Words: "the rotary frequencies are in reverse order: the slowest pair comes first", Pages: []Page{{Anchor: "rotary-pairs", Roles: tables}, {Anchor: "head-layout", Roles: rotated}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.frequencies-factors", Words: "the rotary frequencies are multiplied by a factor each: {numbers}", Pages: slices.Concat([]Page{{Anchor: "rotary-base", Roles: tables}}, scalingPages), Apply: otherFrequencies, Class: edit.Known, Solved: fittedOf},
		{Kind: "rope.frequencies-rounded", Words: "the rotary frequencies are rounded to {dtype}", Pages: []Page{{Anchor: "rotary-precision", Roles: turning}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-zero", Words: "all rotary frequencies equal the first: the exponents are 0, as after an integer division", Pages: []Page{{Anchor: "rotary-base", Roles: tables}, {Anchor: "stale-cache-slot", Roles: caches}, {Anchor: "branch-of-zeros"}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-from-one", Words: "the exponents of the rotary frequencies start at 1: all frequencies are divided by {x}", Pages: []Page{{Anchor: "rotary-scaling", Roles: tables}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-from-minus-one", Words: "the exponents of the rotary frequencies start at -1: all frequencies are multiplied by {x}", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},

		// The angles.
		{Kind: "rope.angles-in-turns", Words: "the angles are multiplied by {x}: turns and radians are confused", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.angles-in-half-turns", Words: "the angles are multiplied by {x}: half turns and radians are confused", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "function.near-in-period", Words: "a function near the {of} takes its place: it is up to {x} off, where {by} is {for}", Pages: []Page{{Anchor: "rotary-precision", Roles: turning}}, Apply: byReducedAngle, Class: edit.Exchanged, Curve: true, Solved: numbersOfCurve},
		{Kind: "rope.angles-rounded", Words: "the angles are rounded to {dtype} before cosine and sine", Pages: []Page{{Anchor: "rotary-precision", Roles: tables}, {Anchor: "direction-of-rotation", Roles: rotated}}, Apply: otherAngles, Class: edit.Known},

		// Positions.
		{Kind: "position.first-at", Words: "positions are {+n}: the first token is at {n}", Pages: pagesOf("shifted-positions", tables, "position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.behind-pass", Words: "positions are {+n}: too small", Pages: passOffsetPages, Apply: otherPositions, Class: edit.Known},
		{Kind: "position.all-zero", Words: "every position is 0", Pages: zeroPositions, Apply: otherPositions, Class: edit.Known},
		{Kind: "position.from-zero", Words: "positions restart at 0 in each pass: the offset of earlier tokens is missing", Pages: pagesOf("positions-of-decode-steps", tables, "position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.advanced", Words: "positions are too large by the tokens of the pass: the cache offset is read after the update", Pages: pagesOf("position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.multiplied", Words: "positions are multiplied by {by}", Pages: pagesOf("position-offset", rotated, "attention-scale", scored, "logit-scale", heads), Apply: otherPositions, Class: edit.Known, Weak: true},
		{Kind: "position.rounded", Words: "the positions are rounded to {dtype}", Pages: []Page{{Anchor: "rotary-precision", Roles: tables}}, Apply: otherAngles, Class: edit.Known},
		{Kind: "position.multiples", Words: "the positions are rounded down to multiples of {by}: an integer division", Pages: positionPages, Apply: otherAngles, Class: edit.Known},
		{Kind: "position.chunks", Words: "positions restart at every {n}th token: they are counted within chunks of {n}", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.still", Words: "every position is {n}: it does not advance, as for a full cache", Pages: []Page{{Anchor: "unwritten-cache-slots", Roles: "probs"}}, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.offset", Words: "positions are off by {+n}", Pages: offsetPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.offset-from", Words: "positions are off by {+n} from position {m} on", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: func(Mistake) int { return 2 }},
		{Kind: "position.last", Words: "positions stop at {n}: later tokens reuse its angles, as with a table that is too short", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.padding", Words: "positions are {n} too small, with a minimum of 0: tokens are counted as padding", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.reversed", Words: "positions count down: the last token of the prompt has position 0", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.ahead", Words: "position {for} has the angle of {x}: {by} too far", Pages: decodePages, Apply: otherAngles, Class: edit.Known, Solved: farPlace},
		{Kind: "position.behind", Words: "position {for} has the angle of {x}: {by} too small", Pages: decodePages, Apply: otherAngles, Class: edit.Known, Solved: farPlace},
	}
}

// scalingWords are wrong ways to scale one rotary frequency, by their names in a mistake.
var scalingWords = map[string]string{
	"unscaled":                 "not scaled",
	"scaled":                   "divided by {by}",
	"ends-exchanged":           "blended with the ends exchanged (1-smooth for smooth)",
	"by-wavelength":            "blended by wavelength, not by frequency",
	"by-wavelength-everywhere": "blended by wavelength, also outside the bands",
	"by-frequency-everywhere":  "blended outside the bands",
	"waves":                    "blended in wavelength, not in frequency",
	"waves-ends-exchanged":     "blended in wavelength, not in frequency, with the ends exchanged (1-smooth for smooth)",
}

// scalings lists the frequencies of each wrong way, out of N frequencies: "0, 1 of 8 is not scaled; 5 of 8 is divided by 4".
func (m Mistake) scalings() string {
	of := map[string][]string{}
	var ways, all []string
	for _, run := range m.Runs.list() {
		if of[run.Of] == nil {
			ways = append(ways, run.Of)
		}
		for j := run.From; j < run.To; j++ {
			of[run.Of] = append(of[run.Of], strconv.Itoa(j))
		}
	}
	for _, way := range ways {
		words := strings.ReplaceAll(scalingWords[way], "{by}", m.By.String())
		all = append(all, strings.Join(of[way], ", ")+" of "+strconv.Itoa(m.N)+" is "+words)
	}
	return strings.Join(all, "; ")
}
