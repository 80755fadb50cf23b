package redflag

// Margin is how far a limit is from the nearest golden: with the limit at Near no golden raises the flag, at Past one does.
type Margin struct {
	Kind       Kind
	What       string
	Near, Past float64
	Never      bool // no golden raises it at Past either: what stands before the limit holds in none
	at         func(l *limits) *float64
}

// Margins are those of every limit that a model could come near to.
var Margins = []Margin{
	{Kind: Magnitude, What: "half of the numbers", Near: 56, Past: 54, at: func(l *limits) *float64 { return &l.values.magnitude }},
	{Kind: Overflow, What: "largest number, of that of its dtype", Near: 1. / 600, Past: 1. / 1024, at: func(l *limits) *float64 { return &l.values.overflow }},
	{Kind: NarrowValues, What: "different numbers, neither 0 nor ±1", Near: 7, Past: 6, at: func(l *limits) *float64 { return &l.values.plain }},
	{Kind: ProbabilitySum, What: "distance of a sum from 1, of its tolerance", Near: 0.5, Past: 0.3, at: func(l *limits) *float64 { return &l.attention.sum }},
	{Kind: AttentionUniform, What: "distance of a weight from the mean, of the mean", Near: 1, Past: 1.5, at: func(l *limits) *float64 { return &l.attention.uniform }},
	{Kind: AttentionStuck, What: "least weight on the one key", Near: 0.5, Past: 0.1, Never: true, at: func(l *limits) *float64 { return &l.attention.stuck }},
	{Kind: AttentionRepeated, What: "difference of two weights", Near: 0.4, Past: 0.5, at: func(l *limits) *float64 { return &l.attention.repeated }},
	{Kind: ContextIgnored, What: "weight of all earlier keys", Near: 0.15, Past: 0.2, at: func(l *limits) *float64 { return &l.attention.ignored }},
	{Kind: RopeUnchanged, What: "relative change by the rotation", Near: 0.025, Past: 0.026, at: func(l *limits) *float64 { return &l.rotation.unturned }},
	{Kind: RotaryFrozen, What: "difference of two cosines or sines", Near: 0.05, Past: 0.1, at: func(l *limits) *float64 { return &l.rotation.angle }},
	{Kind: RotaryFrozen, What: "radians that the first angle goes back", Near: -0.12, Past: -0.13, at: func(l *limits) *float64 { return &l.rotation.backwards }},
	{Kind: HiddenStatic, What: "relative change by a layer", Near: 0.28, Past: 0.3, at: func(l *limits) *float64 { return &l.states.static }},
	{Kind: TokensIdentical, What: "relative difference of two states", Near: 1.04, Past: 1.05, at: func(l *limits) *float64 { return &l.states.identical }},
}

// Limit is the limit as it is.
func (m Margin) Limit() float64 {
	l := defaults
	return *m.at(&l)
}

// At returns options with the limits of some margins at their Near, or at their Past.
func At(past bool, margins ...Margin) Options {
	l := defaults
	for _, m := range margins {
		if *m.at(&l) = m.Near; past {
			*m.at(&l) = m.Past
		}
	}
	return Options{limits: &l}
}

// Checks are the checks by their names, with the kinds of the flags that they raise.
func Checks() map[string][]Kind {
	named := map[string][]Kind{}
	for _, c := range checks {
		if _, twice := named[c.name]; twice || c.name == "" || c.looks == "" {
			panic("a check without a name of its own, or without a sentence: " + c.name + c.looks)
		}
		named[c.name] = c.raises
	}
	return named
}
