package compare

// Name is what a comparison calls one of its two sides, in the forms in which its sentences need it, so that a rendering
// chooses no words.
type Name struct {
	Label  string `json:"label"`  // "local", "reference"; "A", "B"
	Side   string `json:"side"`   // in a sentence: "the local side", "the reference", "A"
	Trace  string `json:"trace"`  // its trace in a sentence: "the local trace", "trace A"
	Tensor string `json:"tensor"` // one of its tensors in a sentence: "the local tensor", "A"
}

// names are what the sides are called. Where neither is the one that is right, as in an A/B comparison, they have names
// that say so, and where both are one trace they have one name.
func (o *Options) names() sideNames {
	switch {
	case o.AB:
		return sideNames{{"A", "A", "trace A", "A"}, {"B", "B", "trace B", "B"}}
	case o.Alone:
		one := Name{"trace", "the trace", "the trace", "the tensor"}
		return sideNames{one, one}
	}
	return sideNames{
		{"local", "the local side", "the local trace", "the local tensor"}, {"reference", "the reference", "the reference trace", "the reference"},
	}
}

// sideNames are what a part of the program calls the sides.
type sideNames [2]Name

// alone reports whether both are one.
func (n sideNames) alone() bool { return n[local] == n[reference] }

// both says that something is so on both sides, where there are two.
func (n sideNames) both() string {
	if n.alone() {
		return ""
	}
	return " on both sides"
}

// pair is two values, one of each side, in words.
func (n sideNames) pair(l, r string) string {
	return n[local].Label + " " + l + ", " + n[reference].Label + " " + r
}
