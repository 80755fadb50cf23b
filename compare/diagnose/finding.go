package diagnose

import "strings"

// Field is a number of a configuration.
type Field struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Name says what is wrong with a step, and what is right.
type Name struct {
	// What is what the engine does: "epsilon is 1e-05".
	What string `json:"name"`
	// Site is the step: "rms_norm.eps".
	Site string `json:"site,omitempty"`
	// Value and Right are the engine's number and the model's.
	Value *float64 `json:"value,omitempty"`
	Right *float64 `json:"right,omitempty"`
	// Fields are those of the configuration that have the right number, and Equal those that have the engine's.
	Fields []Field `json:"config,omitempty"`
	Equal  []Field `json:"equal,omitempty"`
}

// Text is the name for a sentence: "epsilon is 1e-05; config.json: rms_norm_eps 1e-06".
func (n Name) Text() string {
	text := n.What
	if n.Right == nil {
		return text
	}
	if len(n.Fields) == 0 {
		return text + ", not " + short(*n.Right)
	}
	var fields []string
	for _, f := range n.Fields {
		fields = append(fields, f.Name+" "+short(f.Value))
	}
	return text + "; config.json: " + strings.Join(fields, ", ")
}

// Finding is the edit with which the programs of some entries give every element of them.
type Finding struct {
	Name
	Class string `json:"class"`
	// The proof: the edit gives all Elements of all Entries, of which Shown are apart from what the right operation gives.
	Entries  int `json:"entries"`
	Elements int `json:"elements"`
	Shown    int `json:"shown"`
	// Aliases are other names of the same elements.
	Aliases []string `json:"aliases,omitempty"`
	Tried   int      `json:"tried"`             // hypotheses
	Stopped bool     `json:"stopped,omitempty"` // the search came to its end before its last hypothesis
}
