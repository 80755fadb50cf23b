package mapping

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// template is what the names of one tensor in all layers have in common: the pattern that a line of a map has.
type template struct {
	text    string
	steps   bool                   // {S} is in it, the number of a pass
	first   int                    // the least S
	layers  map[int]capture.Record // of the first pass; −1 for one outside of layers
	isKnown bool                   // it needs no line
	settled bool                   // it has a line, or a choice
	plain   []string               // see plainNames
}

// any is the tensor of its first layer.
func (t *template) any() capture.Record { return t.layers[slices.Min(keysOf(t.layers))] }

func keysOf(m map[int]capture.Record) []int {
	var list []int
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// called reports whether its name is a known one of a role.
func (t *template) called(role string) bool {
	if t.plain == nil {
		t.plain = plainNames(t.text)
	}
	for _, name := range t.plain {
		if name == role || slices.Contains(aliases[role], name) {
			return true
		}
	}
	return false
}

var (
	stepText   = regexp.MustCompile(`(?i)^(.*?)\b(step|iter|iteration|round|decode|pass)([-_=.]?)([0-9]{1,9})([-_./])`)
	numberText = regexp.MustCompile(`[0-9]+`)
	layerText  = regexp.MustCompile(`(?i)(?:layers?|blocks?|blk)[-_./]?$`) // what stands before the number of a layer
)

// escape makes a name a pattern that matches it alone.
func escape(name string) string {
	return strings.NewReplacer("{", "{{", "}", "}}", "#", "##").Replace(name)
}

// named is one way to read a name.
type named struct {
	text  string
	layer int
	sure  bool // a word, or a known name, says that the number is that of a layer
}

// maxReadings bounds the numbers of a name that may be a layer's, and maxName the bytes of one that is looked at.
const (
	maxReadings = 8
	maxName     = 256
)

// readings are the ways to read a name: each number in it may be that of a layer.
func readings(name string, layers int) []named {
	list := []named{{text: escape(name), layer: -1}}
	if len(name) > maxName {
		return list
	}
	for _, m := range numberText.FindAllStringIndex(name, maxReadings) {
		n, err := strconv.Atoi(name[m[0]:m[1]])
		if err == nil && n < layers && strconv.Itoa(n) == name[m[0]:m[1]] {
			text := escape(name[:m[0]]) + "{L}" + escape(name[m[1]:])
			list = append(list, named{text, n, layerText.MatchString(name[:m[0]]) || isAlias[text]})
		}
	}
	return list
}

// templates groups the tensors of a dump by what their names have in common. known says which of them need no line.
func templates(t *capture.Trace, layers int, known func(int) bool) []*template {
	type tensor struct {
		r            capture.Record
		prefix, rest string
		step         int
		known        bool
	}
	var all []tensor
	twice := map[string]bool{}
	for _, r := range t.Records() {
		twice[r.Name] = twice[r.Name] || r.Firing > 0
	}
	count := map[string]map[int]bool{} // the layers of each reading
	for i, r := range t.Records() {
		x := tensor{r: r, rest: r.Name, step: -1, known: known(i)}
		if m := stepText.FindStringSubmatch(r.Name); m != nil {
			x.prefix, x.rest = escape(m[1]+m[2]+m[3])+"{S}"+escape(m[5]), r.Name[len(m[0]):]
			x.step, _ = strconv.Atoi(m[4])
		}
		for _, n := range readings(x.rest, layers) {
			key := x.prefix + n.text
			if count[key] == nil {
				count[key] = map[int]bool{}
			}
			count[key][n.layer] = true
		}
		all = append(all, x)
	}
	found := map[string]*template{}
	var list []*template
	for _, x := range all {
		best := named{text: escape(x.rest), layer: -1}
		for _, n := range readings(x.rest, layers)[1:] {
			many, most := len(count[x.prefix+n.text]), max(1, len(count[x.prefix+best.text]))
			if n.sure && !best.sure || n.sure == best.sure && many > most || layers == 1 && best.layer < 0 {
				best = n
			}
		}
		text := x.prefix + best.text
		if twice[x.r.Name] {
			text += fmt.Sprintf("#%d", x.r.Firing)
		}
		p := found[text]
		if p == nil {
			p = &template{text: text, steps: x.step >= 0, first: x.step, layers: map[int]capture.Record{}, isKnown: x.known}
			found[text] = p
			list = append(list, p)
		}
		p.isKnown = p.isKnown && x.known
		before, has := p.layers[best.layer]
		earlier := x.r.Pass < before.Pass
		if x.step >= 0 {
			earlier = x.step < p.first
			p.first = min(p.first, x.step)
		}
		if !has || earlier {
			p.layers[best.layer] = x.r
		}
	}
	return list
}

// sizesWithoutOnes is a shape without its axes of 1.
func sizesWithoutOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

func elementsOf(shape []int) int {
	n, _ := hooks.Elements(shape)
	return n
}
