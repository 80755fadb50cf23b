package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// turning are the roles of rotary tables and of what is rotated.
const turning = tables + "|" + rotated

// Pages of rotary mistakes. An entry of another role has a rotary mistake if the program between its captured inputs and itself computes the tables.
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

// withScaling reports whether a mistake of the base leaves the scaling out too. ofScaling reports that as well, and whether its number is a field of the scaling.
func withScaling(m Mistake) bool { return m.By != Term{} }

func ofScaling(m Mistake) bool { return withScaling(m) || strings.Contains(m.Called, "scaling") }

// ofTheta reports whether the wrong setting is the base. ofFactor reports whether the wrong setting, or a field with its number, is a factor.
func ofTheta(m Mistake) bool { return m.Of.Name == "theta" }

func ofFactor(m Mistake) bool { return strings.Contains(m.Of.Name+m.Called, "factor") }

// oneNumber is the count of the numbers of a mistake with one that is solved.
func oneNumber(Mistake) int { return 1 }

// rotaryRows are mistakes in rotary tables and positions.
func rotaryRows() []Row {
	return []Row{
		// The base.
		{Kind: "rope.theta", Words: "theta is {x}[ ({called})][ and the scaling by {by} is left out]", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-of-kinds", Words: "theta is {times} times what it should be, in layers of each kind", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.theta-exchanged", Words: "theta is that of the other kind of layer: {of} and {for} are exchanged", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.theta-unscaled", Words: "theta is {x}[ ({called})], and the frequencies are not scaled", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-scaled", Words: "theta is {x} (theta times the factor of the scaling)[ and the scaling by {by} is left out]", Pages: slices.Concat([]Page{{Anchor: "attention-scale", Roles: "probs|context|scores"}}, scalingPages, scalingLeftOut), Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-ntk", Words: "theta is {x} (raised for {n} times the length, as NTK scaling does)[ and the scaling by {by} is left out]", Pages: slices.Concat(scalingPages, scalingLeftOut), Apply: otherFrequencies, Class: edit.Known, Field: Theta},
		{Kind: "rope.theta-of-head", Words: "theta is {x} (the exponents are those of a head of {n}, not {m})[ and the scaling by {by} is left out]", Pages: thetaPages, Apply: otherFrequencies, Class: edit.Known, Field: Theta},

		// The scaling.
		{Kind: "rope.factor-left-out", Words: "the scaling by {by} of the rotary frequencies is left out", Pages: slices.Concat([]Page{{Anchor: "missing-residual", Roles: stream}}, scalingPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.scaling-left-out", Words: "the rotary frequencies are not scaled: the scaling of long waves is left out", Pages: slices.Concat([]Page{{Anchor: "missing-residual", Roles: stream}}, scalingPages), Apply: otherFrequencies, Class: edit.Known, Field: Scaling},
		{Kind: "rope.scaling-factor", Words: "the rotary frequencies are scaled by {x}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Field: Scaling},
		{Kind: "rope.scaling-of-all", Words: "all rotary frequencies are scaled by {x}, not those of long waves alone", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.scaling-of-some", Words: "the scaling is another for some rotary frequencies: {scalings}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known, Weak: true, Solved: func(m Mistake) int { return len(m.Runs.list()) }},
		{Kind: "rope.frequencies-multiplied", Words: "the rotary frequencies are multiplied by {x}[ ({called})]", Pages: slices.Concat(scoresPages, scalingPages), Apply: otherFrequencies, Class: edit.Known, WeakIf: func(m Mistake) bool { return m.Called == "" }},
		{Kind: "rope.frequencies-multiplied-not-divided", Words: "the rotary frequencies are multiplied by {x}, where they are to be divided by it", Pages: slices.Concat(scoresPages, scalingPages), Apply: otherFrequencies, Class: edit.Known, Weak: true},
		{Kind: "rope.yarn", Words: "the rotary frequencies are scaled as YaRN does, by {by} for a length of {for}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.yarn-multiplied", Words: "the rotary frequencies are scaled as YaRN does, by {by} for a length of {for}, with its factor of cosines and sines", Pages: slices.Concat(scoresPages, scalingPages), Apply: yarnMultiplied, Class: edit.Known},
		{Kind: "rope.llama3", Words: "the rotary frequencies are scaled as Llama 3's are, by {by} for a length of {for}", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-exchanged", Words: "low_freq_factor and high_freq_factor of the rotary embedding are exchanged", Pages: scoresPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-without-2pi", Words: "wavelengths lack 2π: the bands of the scaling of rotary frequencies lie elsewhere", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.bands-2pi-twice", Words: "wavelengths have 2π twice: the bands of the scaling of rotary frequencies lie elsewhere", Pages: scalingPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.setting", Words: "{of} of the rotary embedding is {x}[ ({called})]", Pages: settingPages, Apply: otherFrequencies, Class: edit.Known, Field: AName, WeakIf: func(m Mistake) bool { return m.Of.Name == "theta" }},

		// The part of a head that is rotated.
		{Kind: "rope.whole-head", Words: "none of the {n} rotary frequencies is 0, where the last {n-m} are to be: the whole head is rotated, not a part of it[; theta is {by} for the whole head]", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.larger-part", Words: "{k} of {n} rotary frequencies are not 0, where {m} are to be[; theta is {by} for the whole head]", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.smaller-part", Words: "the last {n-k} of {n} rotary frequencies are 0: a part of the head alone is rotated", Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-of-part", Words: "the exponents of the rotary frequencies count the {m} that are not 0, not all {n}", Pages: partPages, Apply: otherFrequencies, Class: edit.Known},

		// The frequencies.
		{Kind: "rope.frequencies-inverted", Words: "the rotary frequencies are inverted: positions are multiplied by the powers of theta, not divided by them", Pages: slices.Concat([]Page{{Anchor: "rotary-base", Roles: turning}}, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.frequencies-reversed", Words: "the rotary frequencies are in reverse order: the slowest pair is the first", Pages: []Page{{Anchor: "rotary-pairs", Roles: tables}, {Anchor: "head-layout", Roles: rotated}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.frequencies-rounded", Words: "the rotary frequencies are rounded to {dtype}", Pages: []Page{{Anchor: "rotary-precision", Roles: turning}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-zero", Words: "every rotary frequency is the first: their exponents are all 0, as where they are divided as whole numbers", Pages: []Page{{Anchor: "rotary-base", Roles: tables}, {Anchor: "stale-cache-slot", Roles: caches}, {Anchor: "branch-of-zeros"}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-from-one", Words: "the exponents of the rotary frequencies are counted from 1: all are divided by {x}", Pages: []Page{{Anchor: "rotary-scaling", Roles: tables}}, Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.exponents-from-minus-one", Words: "the exponents of the rotary frequencies are counted from -1: all are multiplied by {x}", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},

		// The angles.
		{Kind: "rope.angles-in-turns", Words: "the angles are multiplied by {x}: turns are taken for radians, or radians for turns", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.angles-in-half-turns", Words: "the angles are multiplied by {x}: half turns are taken for radians, or radians for half turns", Pages: slices.Concat(anglePages, scoresPages), Apply: otherFrequencies, Class: edit.Known},
		{Kind: "rope.angles-rounded", Words: "the angles are rounded to {dtype} before their cosines and sines are taken", Pages: []Page{{Anchor: "rotary-precision", Roles: tables}, {Anchor: "direction-of-rotation", Roles: rotated}}, Apply: otherAngles, Class: edit.Known},

		// Positions.
		{Kind: "position.first-at", Words: "positions are {+n}: the first is at {n}", Pages: pagesOf("shifted-positions", tables, "position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.behind-pass", Words: "positions are {+n}: behind where they should be", Pages: passOffsetPages, Apply: otherPositions, Class: edit.Known},
		{Kind: "position.all-zero", Words: "every position is 0", Pages: zeroPositions, Apply: otherPositions, Class: edit.Known},
		{Kind: "position.from-zero", Words: "positions of a pass count from 0: those of the tokens before are missing", Pages: pagesOf("positions-of-decode-steps", tables, "position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.advanced", Words: "positions are advanced by the tokens of the pass: the offset is that after it", Pages: pagesOf("position-offset", rotated), Apply: otherPositions, Class: edit.Known},
		{Kind: "position.multiplied", Words: "positions are multiplied by {by}", Pages: pagesOf("position-offset", rotated, "attention-scale", scored, "logit-scale", heads), Apply: otherPositions, Class: edit.Known, Weak: true},
		{Kind: "position.rounded", Words: "the positions are rounded to {dtype}", Pages: []Page{{Anchor: "rotary-precision", Roles: tables}}, Apply: otherAngles, Class: edit.Known},
		{Kind: "position.multiples", Words: "the positions are rounded down to multiples of {by}: they are divided as whole numbers", Pages: positionPages, Apply: otherAngles, Class: edit.Known},
		{Kind: "position.chunks", Words: "the positions start again at every {n}th token: they are counted in chunks of {n}", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.still", Words: "every position is {n}: it stands still, as that of a slot of a full cache", Pages: []Page{{Anchor: "unwritten-cache-slots", Roles: "probs"}}, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.offset", Words: "positions are {+n}: all are off by as much", Pages: offsetPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.offset-from", Words: "the positions are {+n} from the token at {m} on", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: func(Mistake) int { return 2 }},
		{Kind: "position.last", Words: "the positions end at {n}: those behind it have its angles, as where a table is too short", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.padding", Words: "the positions are {n} less and not below 0: tokens are counted as padding", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.reversed", Words: "the positions count down: the last token of the prompt has that of the first", Pages: positionPages, Apply: otherAngles, Class: edit.Known, Solved: oneNumber},
		{Kind: "position.ahead", Words: "position {for} is taken for {x}: {by} too far", Pages: decodePages, Apply: otherAngles, Class: edit.Known, Solved: farPlace},
		{Kind: "position.behind", Words: "position {for} is taken for {x}: {by} behind", Pages: decodePages, Apply: otherAngles, Class: edit.Known, Solved: farPlace},
	}
}

// scalingWords are wrong ways to scale one rotary frequency, by their names in a mistake.
var scalingWords = map[string]string{
	"unscaled":                 "not scaled",
	"scaled":                   "divided by {by}",
	"ends-exchanged":           "between the bands with its ends exchanged (1-smooth for smooth)",
	"by-wavelength":            "between the bands by its wavelength, not by its frequency",
	"by-wavelength-everywhere": "blended by its wavelength, and beyond the bands",
	"by-frequency-everywhere":  "blended beyond the bands",
	"waves":                    "between the bands with its wavelength blended, not its frequency",
	"waves-ends-exchanged":     "between the bands with its wavelength blended, not its frequency, from the wrong end (1-smooth for smooth)",
}

// scalings lists the frequencies of each wrong way, of N frequencies: "0, 1 of 8 is not scaled; 5 of 8 is divided by 4".
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
