package weights

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Finding is one thing that is wrong, in one tensor or alike in several.
type Finding struct {
	Class    Class    `json:"class"`
	Kind     Kind     `json:"kind"`
	Tensor   string   `json:"tensor"`       // the first of them; a * stands for their layers
	Also     []string `json:"also"`         // the others
	What     string   `json:"what"`         // in a sentence
	At       *Element `json:"at,omitempty"` // the first element that is wrong, in the first tensor
	Relative float64  `json:"relative_l2"`  // the largest of theirs
	Try      string   `json:"try"`          // what to do
}

// findings puts together what is the same in several layers, and sorts it: the worst first.
func findings(rows []Row) []Finding {
	swapped := otherLayers(rows)
	type key struct{ class, kind, what, pattern string }
	at := map[key]int{}
	all := []Finding{}
	for i := range rows {
		r := &rows[i]
		if r.Class.Right() {
			continue
		}
		_, pattern := layerOf(r.Name)
		k := key{string(r.Class), string(r.Kind), general(r.What), pattern}
		if r.Kind == FusedOrder || strings.HasSuffix(r.What, turnedParts) { // the sentence is of the whole tensor, and names it
			k.pattern = ""
		}
		if r.Class == Unidentified { // the numbers of each tensor are its own, and what is said is the same
			k.what = anyNumber.ReplaceAllString(k.what, "#")
		}
		what := r.What
		if r.Kind == OtherLayer {
			k = key{kind: string(r.Kind), what: swapped[r.Name]}
			what = swapped[r.Name]
		}
		if n, ok := at[k]; ok {
			f := &all[n]
			f.Also, f.Relative = append(f.Also, r.Name), max(f.Relative, r.Relative)
			continue
		}
		at[k] = len(all)
		all = append(all, Finding{Class: r.Class, Kind: r.Kind, Tensor: r.Name, Also: []string{}, What: what, At: r.At, Relative: r.Relative, Try: try(r)})
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(rank(a.Class)-rank(b.Class), cmp.Compare(b.Relative, a.Relative))
	})
	return all
}

// rank sorts classes: what is not there, then what nobody can explain, then mistakes.
func rank(c Class) int {
	return slices.Index([]Class{Missing, Different, Mistake, Extra, Unidentified}, c)
}

var layerWords = regexp.MustCompile(`\b(layers?\.)[0-9]+\b`)

var anyNumber = regexp.MustCompile(`[0-9][0-9.e+-]*`)

// general is a sentence without the numbers of layers.
func general(what string) string { return layerWords.ReplaceAllString(what, "${1}*") }

// otherLayers says for each tensor that is another layer's what its layer has. Where all tensors of a layer are from one other, and those
// of that one from this, the two were swapped.
func otherLayers(rows []Row) map[string]string {
	from := map[int]map[int]int{} // by layer: how many tensors are those of which
	total := map[int]int{}
	for i := range rows {
		mine, _ := layerOf(rows[i].Name)
		if mine >= 0 {
			total[mine]++
		}
		if rows[i].Kind != OtherLayer {
			continue
		}
		theirs, _ := layerOf(rows[i].Other)
		if from[mine] == nil {
			from[mine] = map[int]int{}
		}
		from[mine][theirs]++
	}
	said := map[string]string{}
	for i := range rows {
		r := &rows[i]
		if r.Kind != OtherLayer {
			continue
		}
		mine, _ := layerOf(r.Name)
		theirs, _ := layerOf(r.Other)
		n := from[mine][theirs]
		some := ""
		if n < total[mine] {
			some = fmt.Sprintf(" in %d of %d tensors", n, total[mine])
		}
		if back := from[theirs][mine]; back == n {
			a, b := min(mine, theirs), max(mine, theirs)
			said[r.Name] = fmt.Sprintf("layers %d and %d have changed places%s", a, b, some)
			continue
		}
		said[r.Name] = fmt.Sprintf("layer %d has the weights of layer %d%s", mine, theirs, some)
	}
	return said
}

// tries say what to do, by kind.
var tries = map[Kind]string{
	Transposed:   "transpose it in the conversion; if the port means [in, out], a line of the map says so: axes = \"a b -> b a\"",
	RowOrder:     "look for the reshape or the concatenation that makes this order in the conversion",
	ColumnOrder:  "look for the reshape or the concatenation that makes this order in the conversion",
	Interleaved:  "leave the permutation for interleaved rotary pairs out, or make the port rotate neighbours; a line of the map says that it does: axes = \"(h p r:2) c -> (h r p) c\"",
	Halves:       "permute it for interleaved rotary pairs, or make the port rotate halves",
	HeadOrder:    "look for the reshape of heads in the conversion: [heads, head_dim] and [head_dim, heads] are easily taken for one another",
	FusedOrder:   "put the parts behind each other in the conversion; if the port means them as they are, a line of the map says so: axes and split",
	ShiftedRows:  "look for an index that is off by one, or a special token that was put in or left out",
	Shifted:      "look for an offset that is off in the reader or the writer of the file",
	Folded:       "leave the 1 to one of the two, conversion or port; if the port multiplies by what the file has, a line of the map says so: folded = \"1+w\"",
	FoldedTwice:  "add 1 in one place: the conversion or the port",
	Unfolded:     "add 1 in the conversion, or leave folded out of the map if the port adds it",
	Scaled:       "look for a scale in the conversion that the port applies, too",
	ScaledRows:   "look at the scales of the rows: are they those of other rows, or multiplied in twice?",
	ScaledBlock:  "look at the scale of this block in the writer of the file",
	ScaledStep:   "look at the scale of this block in the writer of the file",
	ScaledOffset: "look at the offset of this block in the writer of the file",
	ScaledColumn: "was a norm multiplied into the weight? Then the port must not apply it again",
	Negated:      "look for a sign in the conversion",
	OtherTensor:  "look at the names in the conversion: two are crossed",
	OtherLayer:   "look at how layers are numbered in the conversion: sorted as text, 10 comes before 2",
	Untied:       "write the embedding for the head, or leave the head out",
	Tied:         "write the original's head: its config.json says that it is not tied",
	Zero:         "look for a tensor that was allocated and never written",
	ZeroRows:     "look for rows that were never written: a loop that ends early, or padding",
	ZeroBlock:    "look for a block that was never written",
	Constant:     "look for a name that was not found when the weights were loaded",
	NotFinite:    "look for an overflow, or for memory that was never written",
	OtherBlock:   "look for an index or an offset that is off in the writer of the file",
	WrongBlock:   "convert the tensor again; if the same block is wrong, look at its place in the writer",
	WrongRows:    "convert the tensor again, and compare the rows",
	Unrelated:    "look for a name that was not found when the weights were loaded",
	CutOff:       "round to nearest even: take the format's own conversion, not the upper half of the bits",
	Rounded:      "convert from the original in one step, to nearest even",
	ZeroPoint:    "the format gptq stores zero points less one and gptq_v2 stores them as they are: config.json and the file have to mean the same",
	LargeErrors:  "hold it to a checkpoint that the same writer makes of the original, or run the port: tracediff compare --weights LOCAL",
	Coarse:       "look at the scales in the writer of the file: they do not fit the numbers",
	Overflow:     "keep this tensor in bfloat16 or float32",
	Misread:      "read the file in the format in which it was written",
	Shape:        "reshape it in the conversion; a line of the map with axes says where the port means it",
	Truncated:    "convert all rows",
	Padded:       "fill padding with zeros",
	Unread:       "write it as float32, bfloat16 or float16",
	Absent:       "is it under another name? A line of the map says so",
	Unknown:      "a line of the map says what it is, or leaves it out: { to = [] }",
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

// try is what to do about a row.
func try(r *Row) string {
	if r.Class == Extra && r.Other != "" {
		return mapLine(r.Name, r.Other)
	}
	if r.Class == Missing && r.Other != "" {
		return mapLine(r.Other, r.Name)
	}
	if r.Class == Different && r.Kind == Shape {
		return "are both checkpoints of one model? Where the port means another layout, a line of the map with axes says so"
	}
	if r.Kind == CutOff && r.Rounding == "" { // codes
		return "round each number over its scale to the nearest code: a conversion to integers alone cuts it off"
	}
	if t := tries[r.Kind]; t != "" {
		return t
	}
	return "convert the tensor again from the original, and compare what each step of the conversion makes of it"
}

// Name is the tensors of a finding in one line: where these are one of several layers, their numbers as ranges.
func (f *Finding) Name() string {
	if len(f.Also) == 0 {
		return f.Tensor
	}
	_, pattern := layerOf(f.Tensor)
	var layers []int
	for _, name := range append([]string{f.Tensor}, f.Also...) {
		n, p := layerOf(name)
		if p != pattern || n < 0 {
			return fmt.Sprintf("%s and %d more", f.Tensor, len(f.Also))
		}
		layers = append(layers, n)
	}
	return strings.Replace(pattern, "*", "{"+Ranges(layers)+"}", 1)
}

// Ranges are numbers for people: 0-3,7.
func Ranges(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	var words []string
	for i := 0; i < len(list); {
		n := i
		for n+1 < len(list) && list[n+1] == list[n]+1 {
			n++
		}
		if words = append(words, strconv.Itoa(list[i])); n > i {
			words[len(words)-1] += "-" + strconv.Itoa(list[n])
		}
		i = n + 1
	}
	return strings.Join(words, ",")
}
