package weights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one kind of mistake, in one tensor or in several.
type Finding struct {
	Class    Class    `json:"class"`
	Kind     Kind     `json:"kind"`
	Tensor   string   `json:"tensor"`       // the first of them; a * stands for their layers
	Also     []string `json:"also"`         // the others
	What     string   `json:"what"`         // in a sentence, or one for each of several that differ in more than numbers
	At       *Element `json:"at,omitempty"` // the first element that is wrong, in the first tensor
	Relative float64  `json:"relative_l2"`  // the largest of theirs
	Try      string   `json:"try"`          // what to do; of several lines of a map one a line
}

// findings groups the wrong tensors by what is wrong and what to do about it. In a finding each group of phrases that differ in numbers at most is
// said once.
func findings(rows []Row) []Finding {
	type kind struct {
		class Class
		kind  Kind
		line  bool // a line of a map is missing: each tensor has its own
		codes bool // of what is cut off
	}
	at, exchanged := map[kind]int{}, exchanges(rows)
	var groups [][]*alike // by finding
	all := []Finding{}
	for i := range rows {
		r := &rows[i]
		if r.Class.Right() {
			continue
		}
		said, do := r.said, try(r)
		if p, ok := exchanged[r.Name]; ok {
			said = p
		}
		k := kind{r.Class, r.Kind, r.line() != "", r.cutCodes()}
		n, known := at[k]
		if !known {
			n = len(all)
			at[k] = n
			all = append(all, Finding{Class: r.Class, Kind: r.Kind, Tensor: r.Name, Also: []string{}, At: r.At, Relative: r.Relative, Try: do})
			groups = append(groups, nil)
		} else {
			f := &all[n]
			f.Also, f.Relative = append(f.Also, r.Name), max(f.Relative, r.Relative)
			if !slices.Contains(f.Steps(), do) {
				f.Try += "\n" + do
			}
		}
		groups[n] = put(groups[n], r.Name, said)
	}
	for n := range all {
		all[n].What = together(groups[n])
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(rank(a.Class)-rank(b.Class), cmp.Compare(b.Relative, a.Relative))
	})
	return all
}

// rank sorts classes: missing tensors, then unexplained ones, then mistakes.
func rank(c Class) int {
	return slices.Index([]Class{Missing, Different, Mistake, Extra, Unidentified}, c)
}

// tries say what to do, by kind.
var tries = map[Kind]string{
	Transposed:   "transpose it in the conversion; if the port means [in, out], say so in a line of the map: axes = \"a b -> b a\"",
	RowOrder:     "look for the reshape or the concatenation that makes this order in the conversion",
	ColumnOrder:  "look for the reshape or the concatenation that makes this order in the conversion",
	Interleaved:  "leave the permutation for interleaved rotary pairs out, or make the port rotate neighbours and say so in a line of the map: axes = \"(h p r:2) c -> (h r p) c\"",
	Halves:       "permute it for interleaved rotary pairs, or make the port rotate halves",
	HeadOrder:    "look for the reshape of heads in the conversion: [heads, head_dim] and [head_dim, heads] are easily confused",
	FusedOrder:   "concatenate the parts in the conversion; if the port means this order, say so in a line of the map: axes and split",
	ShiftedRows:  "look for an index that is off by one, or a special token that was inserted or left out",
	Shifted:      "look for a wrong offset in the reader or the writer of the file",
	Folded:       "add the 1 in one place only, the conversion or the port; if the port does not add it, say so in a line of the map: folded = \"1+w\"",
	FoldedTwice:  "add 1 in one place: the conversion or the port",
	Unfolded:     "add 1 in the conversion, or leave folded out of the map if the port adds it",
	Scaled:       "look for a scale in the conversion that the port applies as well",
	ScaledRows:   "look at the scales of the rows: do they belong to other rows, or are they applied twice?",
	ScaledBlock:  "look at the scale of this block in the writer of the file",
	ScaledStep:   "look at the scale of this block in the writer of the file",
	ScaledOffset: "look at the offset of this block in the writer of the file",
	ScaledColumn: "was a norm multiplied into the weight? Then the port must not apply it again",
	Negated:      "look for a sign in the conversion",
	OtherTensor:  "look at the names in the conversion: two are exchanged",
	OtherLayer:   "look at how layers are numbered in the conversion: sorted as text, 10 comes before 2",
	Untied:       "write the embedding as the head, or leave the head out",
	Tied:         "write the original's head: its config.json says that it is not tied",
	Zero:         "look for a tensor that was allocated and never written",
	ZeroRows:     "look for rows that were never written: a loop that ends early, or padding",
	ZeroBlock:    "look for a block that was never written",
	Constant:     "look for a name that was not found when the weights were loaded",
	NotFinite:    "look for an overflow, or for memory that was never written",
	OtherBlock:   "look for a wrong index or offset in the writer of the file",
	WrongBlock:   "convert the tensor again; if the same block is wrong, look at its place in the writer",
	WrongRows:    "convert the tensor again, and compare the rows",
	Unrelated:    "look for a name that was not found when the weights were loaded",
	CutOff:       "round to nearest even: take the format's own conversion, not the upper half of the bits",
	Rounded:      "convert from the original in one step, to nearest even",
	ZeroPoint:    "the format gptq stores zero points less one and gptq_v2 stores them as they are: config.json and the file have to mean the same",
	LargeErrors:  "compare it with a checkpoint that the same writer makes of the original, or run the port: tracediff compare --weights LOCAL",
	Coarse:       "look at the scales in the writer of the file: they do not fit the numbers",
	Overflow:     "keep this tensor in bfloat16 or float32",
	Misread:      "read the file in the format in which it was written",
	Shape:        "reshape it in the conversion; if the port means this shape, say so in a line of the map with axes",
	Truncated:    "convert all rows",
	Padded:       "fill padding with zeros",
	Unread:       "write it as float32, bfloat16 or float16",
	Absent:       "if it has another name, give that name in a line of the map",
	Unknown:      "say what it is in a line of the map, or leave it out: { to = [] }",
}

// mapLine is the line of a map for a tensor of the port: for all layers, where both names have the same number of one.
func mapLine(local, original string) string {
	mine, a := layerOf(local)
	theirs, b := layerOf(original)
	if mine >= 0 && mine == theirs {
		local, original = strings.Replace(a, "*", "{L}", 1), strings.Replace(b, "*", "{L}", 1)
	}
	return fmt.Sprintf("a line of the map: %q = %q", local, original)
}

// line is the line of a map for a tensor that has another name in the port; "" for others.
func (r *Row) line() string {
	switch {
	case r.Class == Extra && r.Other != "":
		return mapLine(r.Name, r.Other)
	case r.Class == Missing && r.Other != "":
		return mapLine(r.Other, r.Name)
	}
	return ""
}

// cutCodes reports codes that are cut off, whose scales are to be looked at.
func (r *Row) cutCodes() bool { return r.Kind == CutOff && r.Rounding == "" }

// try is what to do about a row.
func try(r *Row) string {
	if line := r.line(); line != "" {
		return line
	}
	if r.Class == Different && r.Kind == Shape {
		return "are both checkpoints of one model? If the port means another layout, say so in a line of the map with axes"
	}
	if r.cutCodes() {
		return "round each number over its scale to the nearest code: a plain conversion to integers truncates"
	}
	if t := tries[r.Kind]; t != "" {
		return t
	}
	return "convert the tensor again from the original, and compare it after each step of the conversion"
}

// alike are the phrases of a finding that differ in numbers at most.
type alike struct {
	first phrase
	by    look // the closest by which all are the first
	names []string
}

// ofFirst ends a sentence about several tensors whose numbers differ.
const ofFirst = "; the numbers are from the first tensor, and each tensor has its own"

func (a *alike) String() string {
	switch a.by {
	case exact:
		return a.first.String()
	case layers:
		return a.first.inLayers().String()
	}
	return a.first.String() + ofFirst
}

// maxSentences is how many sentences a finding has that differ in more than numbers.
const maxSentences = 3

// put adds the phrase of a tensor to the group of phrases that differ in numbers only.
func put(groups []*alike, name string, said phrase) []*alike {
	at := slices.IndexFunc(groups, func(a *alike) bool { return a.first.seen(numbers) == said.seen(numbers) })
	if at < 0 {
		return append(groups, &alike{first: said, names: []string{name}})
	}
	a := groups[at]
	for a.by < numbers && a.first.seen(a.by) != said.seen(a.by) {
		a.by++
	}
	a.names = append(a.names, name)
	return groups
}

// together makes one text of the sentences of several tensors.
func together(groups []*alike) string {
	if len(groups) == 1 {
		return groups[0].String()
	}
	var list []string
	for _, a := range groups[:min(len(groups), maxSentences)] {
		list = append(list, "in "+called(a.names)+": "+a.String())
	}
	if n := len(groups) - maxSentences; n > 0 {
		list = append(list, fmt.Sprintf("and %s: --format json has the sentence of each tensor", count(n, "other sentence", "other sentences")))
	}
	return strings.Join(list, "; ")
}

// layer is the number of a layer that is told apart from others, and not only a number.
type layer int

// exchanges says what the layer of a tensor has that belongs to another layer, and which two tensors have each other's values. If layer a has the
// tensors of layer b, and layer b those of layer a, the two were swapped.
func exchanges(rows []Row) map[string]phrase {
	from := map[both]int{} // layers: how many tensors of the first belong to the second
	total, other := map[int]int{}, map[string]string{}
	layersOf := func(r *Row) (mine, theirs int) {
		mine, _ = layerOf(r.Name)
		theirs, _ = layerOf(r.Other)
		return mine, theirs
	}
	for i := range rows {
		mine, theirs := layersOf(&rows[i])
		total[mine]++
		switch rows[i].Kind {
		case OtherLayer:
			from[both{mine, theirs}]++
		case OtherTensor:
			other[rows[i].Name] = rows[i].Other
		}
	}
	said := map[string]phrase{}
	for i := range rows {
		r := &rows[i]
		mine, theirs := layersOf(r)
		switch n := from[both{mine, theirs}]; {
		case r.Kind == OtherLayer:
			some := phrase{}
			if n < total[mine] {
				some = say("", " in %d of %d tensors", layer(n), layer(total[mine]))
			}
			if from[both{theirs, mine}] == n {
				said[r.Name] = say(r.Kind, "layers %d and %d have changed places%s", layer(min(mine, theirs)), layer(max(mine, theirs)), some)
			} else {
				said[r.Name] = say(r.Kind, "layer %d has the weights of layer %d%s", layer(mine), layer(theirs), some)
			}
		case r.Kind == OtherTensor && other[r.Other] == r.Name:
			a, b := r.Name, r.Other
			if mine == theirs && lastWord(a) != lastWord(b) {
				a, b = lastWord(a), lastWord(b)
			}
			said[r.Name] = say(r.Kind, "%s and %s have changed places", min(a, b), max(a, b))
		}
	}
	return said
}

// Name is the tensors of a finding in one line.
func (f *Finding) Name() string { return called(append([]string{f.Tensor}, f.Also...)) }

// Steps are the lines of [Finding.Try].
func (f *Finding) Steps() []string { return strings.Split(f.Try, "\n") }
