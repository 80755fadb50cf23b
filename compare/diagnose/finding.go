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
	// Mistake is the mistake as data.
	Mistake Mistake `json:"mistake,omitzero"`
	// Relation is a statement about the port's tensor only. A name has either a mistake or a relation.
	Relation Relation `json:"relation,omitzero"`
	// What says what the port does: "epsilon is 1e-05".
	What string `json:"name"`
	// Site is the step: "rms_norm.eps".
	Site string `json:"site,omitempty"`
	// Value is the port's number, and Right is the model's number.
	Value *float64 `json:"value,omitempty"`
	Right *float64 `json:"right,omitempty"`
	// Fields are the fields of the configuration with the right number, and Equal the fields with the port's number.
	Fields []Field `json:"config,omitempty"`
	Equal  []Field `json:"equal,omitempty"`
	// Where are the layers and passes with the mistake, if other entries of the role are right: "layers.2, pass 1".
	Where string `json:"where,omitempty"`
}

// OtherName is a further name of a finding. A document has only the words of the name.
type OtherName struct{ Name }

// MarshalText is the name in words.
func (n OtherName) MarshalText() ([]byte, error) { return []byte(n.Text()), nil }

// UnmarshalText makes a name from its words. The name has no mistake.
func (n *OtherName) UnmarshalText(text []byte) error {
	*n = OtherName{Name{What: string(text)}}
	return nil
}

// Finding is the outcome of a search: the edit with which the programs of some entries give every element, or a list of the edits that were tried.
type Finding struct {
	Name
	Class string `json:"class,omitempty"`
	// Likely is a sentence about the likely cause in many entries together, without a proof. No edit was tried in this case.
	Likely string `json:"likely,omitempty"`
	// The proof: the edit gives all Elements of all Entries. For Shown elements the edit allows only one number, and the right operation only a different
	// number.
	Entries  int `json:"entries"`
	Elements int `json:"elements"`
	Shown    int `json:"shown"`
	// RightIn are the layers and passes in which the same step is right and the mistake would show: "layers 0, 3 to 25". It is empty if no entry of the
	// role shows this.
	RightIn string `json:"right_in,omitempty"`
	// Aliases are other names with the same values.
	Aliases []OtherName `json:"aliases,omitempty"`
	// Undecided are names that give every element with different values. No name is chosen.
	Undecided []OtherName `json:"undecided,omitempty"`
	Tried     int         `json:"tried"`                    // edits
	Looked    []string    `json:"looked,omitempty"`         // kinds of edits that were tried
	Nearest   string      `json:"nearest,omitempty"`        // the nearest edit, if no edit gives all elements
	Left      *Left       `json:"nearest_leaves,omitempty"` // what the nearest edit leaves; nil if not measured
	Stopped   bool        `json:"stopped,omitempty"`        // the search used up its work before the last edit
	// NotReached are the kinds of edits that a stopped search has not begun or not finished. The search stopped in the first kind.
	NotReached []string `json:"not_reached,omitempty"`
	// Description says how the entries differ, if no edit gives all elements and a simple description fits.
	Description *Description `json:"description,omitempty"`
	Times       int          `json:"times,omitempty"` // work of the search in multiples of the default; 0 for once
	// DumpOnly are the roles that read the entries, if each of them is right with the right values: the port has computed the right values, and the dump has
	// others.
	DumpOnly []string `json:"dump_only,omitempty"`
	// Page explains the mistake and its fix; empty if no page does.
	Page string `json:"page,omitempty"`
}

// InDumpOnly returns the finding with the roles that read the entries and are right with the right values. It returns the finding itself for no roles.
func (f *Finding) InDumpOnly(readers []string) *Finding {
	if len(readers) == 0 {
		return f
	}
	g := *f
	g.DumpOnly, g.Page = readers, Relation{Kind: notAsDumpedKind}.page("")
	return &g
}

// NotAsDumped reports whether the finding is one of [NotAsDumped].
func (f *Finding) NotAsDumped() bool { return f.Named() && f.Relation.Kind == notAsDumpedKind }

// OnlyInDump reports whether the port has computed the right values, and the dump has others.
func (f *Finding) OnlyInDump() bool { return f != nil && len(f.DumpOnly) > 0 }

// Edit is the mistake of the name for [Model.Apply]; nil without a name. A relation has the zero value, which fits no entry.
func (f *Finding) Edit() *Mistake {
	if !f.Named() {
		return nil
	}
	return &f.Mistake
}

// Same reports whether two findings mean the same to a reader: the same mistake in the same layers and passes, even at different steps of one kind.
// Findings without a name are the same if they report the same.
func (f *Finding) Same(other *Finding) bool {
	if f.Named() != other.Named() {
		return false
	}
	if f.Named() {
		return f.Where == other.Where && f.reads(other.Name)
	}
	return f.Likely == other.Likely && slices.EqualFunc(f.Undecided, other.Undecided, func(a, b OtherName) bool { return a.reads(b.Name) }) && f.Stopped == other.Stopped && f.Description.like(other.Description)
}

// reads reports whether two names mean the same to a reader, even at different places: a step may occur twice in a formula.
func (n Name) reads(other Name) bool {
	for _, of := range []*Name{&n, &other} {
		of.Mistake.Place, of.Relation.Place = "", ""
	}
	return n.Key() == other.Key()
}

// Unnamed is the finding without its name, for a name that does not give all elements. The name becomes the nearest mistake.
func (f *Finding) Unnamed() *Finding {
	return &Finding{Tried: f.Tried, Looked: f.Looked, Nearest: f.Name.Text(), Left: f.Left, Stopped: f.Stopped, NotReached: f.NotReached, Times: f.Times}
}

// Positions reports whether the name is a mistake of positions.
func (f *Finding) Positions() bool { return f.Named() && f.Site == positionsSite }

// Named reports whether the finding has a name.
func (f *Finding) Named() bool { return f != nil && f.What != "" }

// Explains reports whether some edit gives all elements, even if the right edit is undecided.
func (f *Finding) Explains() bool { return f.Named() || f != nil && len(f.Undecided) > 0 }

// With adds the results of an earlier search of the same entries. Neither search found a name.
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

// stoppedIn adds kinds that the search did not reach, and marks the finding as stopped if there is a kind.
func (f *Finding) stoppedIn(kinds ...string) {
	for _, k := range kinds {
		if f.Stopped = true; !slices.Contains(f.NotReached, k) {
			f.NotReached = append(f.NotReached, k)
		}
	}
}

// maxAliases is the largest number of further names with the same values in a finding.
const maxAliases = 3
