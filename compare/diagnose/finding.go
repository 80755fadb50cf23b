package diagnose

import (
	"cmp"
	"slices"
)

// Field is a number of a configuration.
type Field struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Name says what is wrong with a step, and what is right.
type Name struct {
	// Mistake is what is wrong, as data.
	Mistake Mistake `json:"mistake,omitzero"`
	// Relation is a statement about the port's tensor alone. A name has either a mistake or a relation.
	Relation Relation `json:"relation,omitzero"`
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
	// Where are the layers and passes that have it, where others of the role are right: "layers.2, pass 1".
	Where string `json:"where,omitempty"`
}

// OtherName is a name beside that of a finding. A document has its words.
type OtherName struct{ Name }

// MarshalText is the name in words.
func (n OtherName) MarshalText() ([]byte, error) { return []byte(n.Text()), nil }

// UnmarshalText makes a name of its words. The name has no mistake.
func (n *OtherName) UnmarshalText(text []byte) error {
	*n = OtherName{Name{What: string(text)}}
	return nil
}

// Finding is the edit with which the programs of some entries give every element of them: what is wrong, where there is one. Where
// there is none it says what was tried.
type Finding struct {
	Name
	Class string `json:"class,omitempty"`
	// Likely is what many entries look like together, where that is known and no proof: a sentence. No edit was then tried.
	Likely string `json:"likely,omitempty"`
	// The proof: the edit gives all Elements of all Entries. For Shown of them it allows one number only, and the right operation
	// another.
	Entries  int `json:"entries"`
	Elements int `json:"elements"`
	Shown    int `json:"shown"`
	// RightIn are the layers and passes in which the same step is right, where the mistake would show too: "layers 0, 3 to 25". Empty
	// where no entry of the role shows it.
	RightIn string `json:"right_in,omitempty"`
	// Aliases are other names of the same values.
	Aliases []OtherName `json:"aliases,omitempty"`
	// Undecided are names that give every element with different values: none of them is the name.
	Undecided []OtherName `json:"undecided,omitempty"`
	Tried     int         `json:"tried"`                    // edits
	Looked    []string    `json:"looked,omitempty"`         // kinds of edits that were tried
	Nearest   string      `json:"nearest,omitempty"`        // the edit that comes nearest, where none gives all
	Left      *Left       `json:"nearest_leaves,omitempty"` // what the nearest edit leaves; nil where that was not measured
	Stopped   bool        `json:"stopped,omitempty"`        // the search came to its end before its last edit
	// NotReached are the kinds of edits that a search which came to its end has not begun, or not ended; the first is where it stopped.
	NotReached []string `json:"not_reached,omitempty"`
	// Description is how the entries differ, where no edit gives all elements and something simple is true of the difference.
	Description *Description `json:"description,omitempty"`
	Times       int          `json:"times,omitempty"` // how often the search had the work that it has where nothing is asked for; 0 for once
	// DumpOnly are the roles that read the entries, if each of them is right with the right values: the port has computed the right values, and the dump has
	// others.
	DumpOnly []string `json:"dump_only,omitempty"`
	// Page is where the mistake is explained, with its fix; empty where it is not one of those.
	Page string `json:"page,omitempty"`
}

// InDumpOnly says that some roles read the entries, and that each of them is right with the right values.
func (f *Finding) InDumpOnly(readers []string) {
	if len(readers) > 0 {
		f.DumpOnly, f.Page = readers, Relation{Kind: notAsDumpedKind}.Page("")
	}
}

// Edit is the mistake of the name for [Model.Apply]; nil where there is no name. That of a relation is the zero value, which goes with no entry.
func (f *Finding) Edit() *Mistake {
	if !f.Named() {
		return nil
	}
	return &f.Mistake
}

// Same reports whether two findings are one to whoever reads them: one mistake in the same layers and passes, be it at one step or at several of one kind, or for
// want of a name the same that is known.
func (f *Finding) Same(other *Finding) bool {
	if f.Named() != other.Named() {
		return false
	}
	if f.Named() {
		return f.Where == other.Where && f.reads(other.Name)
	}
	return f.Likely == other.Likely && slices.EqualFunc(f.Undecided, other.Undecided, func(a, b OtherName) bool { return a.reads(b.Name) }) && f.Stopped == other.Stopped && f.Description.like(other.Description)
}

// reads reports whether two names are one to whoever reads them: the same step may stand in a formula twice.
func (n Name) reads(other Name) bool {
	for _, of := range []*Name{&n, &other} {
		of.Mistake.Place, of.Relation.Place = "", ""
	}
	return n.Key() == other.Key()
}

// Unnamed is a finding whose name does not give all elements: the name is the nearest one.
func (f *Finding) Unnamed() *Finding {
	return &Finding{Tried: f.Tried, Looked: f.Looked, Nearest: f.Name.Text(), Left: f.Left, Stopped: f.Stopped, NotReached: f.NotReached, Times: f.Times}
}

// Positions reports whether the name is that of other positions.
func (f *Finding) Positions() bool { return f.Named() && f.Site == positionsSite }

// Named reports whether what is wrong is known.
func (f *Finding) Named() bool { return f != nil && f.What != "" }

// Explains reports whether some edit gives all elements, be it known which or not.
func (f *Finding) Explains() bool { return f.Named() || f != nil && len(f.Undecided) > 0 }

// With adds what another search of the same entries, before this one, has tried: neither found a name.
func (f *Finding) With(before *Finding) *Finding {
	if f == nil || before == nil {
		return cmp.Or(f, before)
	}
	all := *f
	all.Stopped = f.Stopped || before.Stopped
	all.NotReached = slices.Clone(before.NotReached)
	all.stoppedIn(f.NotReached...)
	all.Looked = slices.Clone(before.Looked)
	for _, w := range f.Looked {
		if !slices.Contains(all.Looked, w) {
			all.Looked = append(all.Looked, w)
		}
	}
	all.Nearest, all.Left = nearer(before, f)
	all.Description = before.Description.or(f.Description)
	if all.Undecided == nil {
		all.Undecided = before.Undecided
	}
	return &all
}

// stoppedIn adds kinds that were not reached. Without any, the search has not stopped.
func (f *Finding) stoppedIn(kinds ...string) {
	for _, k := range kinds {
		if f.Stopped = true; !slices.Contains(f.NotReached, k) {
			f.NotReached = append(f.NotReached, k)
		}
	}
}

// maxAliases is how many names of the same values are said beside the first.
const maxAliases = 3
