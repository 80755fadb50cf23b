package propose

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// template is what the names of one tensor in all layers, and on all ranks, have in common: the pattern that a line of a map has.
type template struct {
	text     string
	steps    bool // {S} is in it, the number of a pass
	first    int  // the least S
	from     int  // the number of the first layer: 0, or 1
	forms    []*form
	isKnown  bool      // it needs no line
	settled  bool      // it has a line or a choice, or is a copy
	entitled bool      // it has the name of an entry, in another layout
	unit     *bool     // see [proposer.unitRows]; nil where nobody has asked
	of       *template // that it was a part of before [proposer.alone]; nil for none
	plain    []string
	sources  []capture.Source // of the first pass, of all layers and ranks
	all      []*spelled       // of all passes
	passes   map[int]bool
}

// inPass reports whether there is one in a pass.
func (t *template) inPass(pass int) bool {
	if t.passes == nil {
		t.passes = map[int]bool{} // once: there are many roles
		for _, x := range t.all {
			t.passes[t.passOf(x)] = true
		}
	}
	return t.passes[pass]
}

func keysOf[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// has reports whether its name is that of a role, behind a prefix or not.
func (t *template) has(role string) bool {
	if t.plain == nil {
		t.plain = plainNames(t.text) // once: there are many roles
	}
	return slices.Contains(t.plain, role)
}

// called reports whether its name is a known one of a role.
func (t *template) called(role string) bool { return t.rank(role) >= 0 }

// rank is the position of its name in the list of the known names of a role: 0 for the role's own name, −1 if the list does not have it.
func (t *template) rank(role string) int {
	if t.has(role) {
		return 0
	}
	for i, alias := range aliases[role] {
		if slices.Contains(t.plain, alias) {
			return i + 1
		}
	}
	return -1
}

var (
	stepText   = regexp.MustCompile(`(?i)^(.*?)\b(step|iter|iteration|round|decode|pass)([-_=.]?)([0-9]{1,9})([-_./])`)
	stepEnd    = regexp.MustCompile(`(?i)^(.+)([-_./](?:step|iter|iteration|round|decode|pass)[-_=.]?)([0-9]{1,9})$`)
	numberText = regexp.MustCompile(`[0-9]+`)
	layerText  = regexp.MustCompile(`(?i)(?:layers?|blocks?|blk)[-_./]?$`) // what stands before the number of a layer, in words of any writer: block_3
)

// escape makes a name a pattern that matches it alone.
func escape(name string) string { return escaped.Replace(name) }

var escaped = strings.NewReplacer("{", "{{", "}", "}}", "#", "##")

// named is one way to read a name.
type named struct {
	text   string
	front  string // what stands before the number
	layer  int
	from   int    // the number of the first layer: 0, or 1
	digits string // the number as it is written
	sure   bool   // a word, or a known name, says that the number is that of a layer
	// beyond: the model has no such layer. The pattern names no layers then: it would match this tensor, too.
	beyond bool
}

// maxReadings bounds the numbers of a name that may be a layer's, and maxName the bytes of one that is looked at.
const (
	maxReadings = 8
	maxName     = 256
)

// readings are the ways to read a name: each number in it may be that of a layer. The first is the name itself.
func readings(name string, layers int) []named {
	list := []named{{text: escape(name), layer: -1}}
	if len(name) > maxName || layers == 0 {
		return list
	}
	for _, m := range numberText.FindAllStringIndex(name, maxReadings) {
		n, err := strconv.Atoi(name[m[0]:m[1]])
		if err == nil && m[1]-m[0] <= 9 {
			front := escape(name[:m[0]])
			text := front + "{L}" + escape(name[m[1]:])
			list = append(list, named{
				text: text, front: front, layer: n, digits: name[m[0]:m[1]],
				sure: layerText.MatchString(name[:m[0]]) || isAlias[text], beyond: n >= layers,
			})
		}
	}
	return list
}

// spelled is a tensor of a dump, and how its name is read.
type spelled struct {
	at           int // in the dump
	r            capture.Record
	source       capture.Source
	prefix, rest string // the part with the number of its pass, and what follows
	suffix       string // that part, where it stands at the end
	step         int    // −1 for none
	mark         mark
	best         named
	known        bool // it needs no line
}

// text is the pattern of its name, in which a rank has no number yet.
func (x *spelled) text() string { return x.reading(x.best.text) }

// reading is the pattern of its name, of which the part without its pass is read so.
func (x *spelled) reading(text string) string { return x.prefix + text + x.suffix }

// namesOf reads the names of a dump, which is a list of passes where passes is true. known says which tensors need no line.
// layers is 0 where no number of a name is that of a layer.
func namesOf(t *capture.Trace, layers int, known func(int) bool, passes bool) []*spelled {
	var all []*spelled
	count := map[string]map[int]bool{} // the layers of each reading
	beyond := map[string]bool{}        // those that some tensor has with a number that is no layer's, or with one in two spellings
	written := map[string]string{}     // the number of each layer of a reading
	fronts := map[string]*front{}
	sources := t.Sources()
	for i, r := range t.Records() {
		x := &spelled{at: i, r: r, source: sources[i], step: -1, known: known(i)}
		x.rest, x.mark = marked(r.Name)
		all = append(all, x)
	}
	unmark(all, layers)
	for _, x := range all {
		if m := listText.FindStringSubmatch(x.rest); passes && m != nil {
			x.prefix, x.rest = "{S}.", m[2]
			x.step, _ = strconv.Atoi(m[1])
		} else if m := stepText.FindStringSubmatch(x.rest); m != nil {
			x.prefix, x.rest = escape(m[1]+m[2]+m[3])+"{S}"+escape(m[5]), x.rest[len(m[0]):]
			x.step, _ = strconv.Atoi(m[4])
		} else if m := stepEnd.FindStringSubmatch(x.rest); m != nil {
			x.rest, x.suffix = m[1], escape(m[2])+"{S}"
			x.step, _ = strconv.Atoi(m[3])
		}
		for _, n := range readings(x.rest, layers) {
			key := x.reading(n.text)
			if count[key] == nil {
				count[key] = map[int]bool{}
			}
			count[key][n.layer] = true
			of := fmt.Sprintf("%s\x00%d", key, n.layer)
			if before, ok := written[of]; ok && before != n.digits {
				beyond[key] = true
			}
			written[of] = n.digits
			beyond[key] = beyond[key] || n.beyond && n.layer > layers
			if n.layer >= 0 {
				if fronts[x.reading(n.front)] == nil {
					fronts[x.reading(n.front)] = &front{numbers: map[int]bool{}, readings: map[string]bool{}}
				}
				fronts[x.reading(n.front)].add(n, x.known)
			}
		}
	}
	for _, x := range all {
		x.best = named{text: escape(x.rest), layer: -1}
		for _, n := range readings(x.rest, layers)[1:] {
			many, most := len(count[x.reading(n.text)]), max(1, len(count[x.text()]))
			f := fronts[x.reading(n.front)]
			if beyond[x.reading(n.text)] || f.beyond(layers) && count[x.reading(n.text)][layers] {
				continue
			}
			if !f.beyond(layers) && f.numbers[layers] {
				n.from, n.layer, n.beyond = 1, n.layer-1, false
			}
			if n.sure && !x.best.sure || n.sure == x.best.sure && many > most || layers == 1 && x.best.layer < 0 {
				x.best = n
			}
		}
	}
	return all
}

// front is what the names have that are the same before the number of a layer.
type front struct {
	numbers  map[int]bool
	readings map[string]bool
	known    bool // one of them needs no line, so that its number is the layer's
	sure     bool
}

func (f *front) add(n named, known bool) {
	f.numbers[n.layer], f.readings[n.text] = true, true
	f.known, f.sure = f.known || known, f.sure || n.sure
}

// beyond reports whether the number of a layer that the model lacks does not mean that layers are counted from 1. It does where no number is 0 or
// larger, there are several, and a word or several tensors of one number say that it is a layer's.
func (f *front) beyond(layers int) bool {
	return f.numbers[layers] && (f.known || f.numbers[0] || len(f.numbers) < 2 || slices.Max(keysOf(f.numbers)) > layers || !f.sure && len(f.readings) < 2)
}

// templates groups the tensors of a dump by what their names have in common. known says which of them need no line.
func templates(ctx context.Context, t *capture.Trace, layers int, known func(int) bool, passes bool) ([]*template, error) {
	twice := map[string]bool{}
	for _, r := range t.Records() {
		twice[r.Name] = twice[r.Name] || r.Firing > 0
	}
	found := map[string]*gathered{}
	var order []*gathered
	all := namesOf(t, layers, known, passes)
	for _, x := range all {
		text := x.text()
		if twice[x.r.Name] {
			text += fmt.Sprintf("#%d", x.r.Firing)
		}
		g := found[text]
		if g == nil {
			g = &gathered{template: template{text: text, steps: x.step >= 0, first: x.step, from: x.best.from, isKnown: x.known}, at: map[cell]*spelled{}}
			found[text] = g
			order = append(order, g)
		}
		g.add(x)
	}
	numbering := numberings(all, layers)
	var list []*template
	for _, g := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := g.forms(numbering)
		if err != nil {
			return nil, err
		}
		list = append(list, made...)
	}
	return list, nil
}

// sizesWithoutOnes is a shape without its axes of 1.
func sizesWithoutOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

func elementsOf(shape []int) int {
	n, _ := hooks.Elements(shape)
	return n
}
