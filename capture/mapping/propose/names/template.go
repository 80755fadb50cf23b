package names

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// Template is what the names of one tensor in all layers, and on all ranks, have in common: the pattern that a line of a map has.
type Template struct {
	Text        string
	Steps       bool // {S} is in it, the number of a pass
	First       int  // the least S
	From        int  // the number of the first layer: 0, or 1
	Forms       []*Form
	NeedsNoLine bool // it needs no line
	plain       []string
	Sources     []capture.Source // of the first pass, of all layers and ranks
	All         []*Occurrence    // of all passes
	passes      map[int]bool
}

// InPass reports whether there is one in a pass.
func (t *Template) InPass(pass int) bool {
	if t.passes == nil {
		t.passes = map[int]bool{} // once: there are many roles
		for _, x := range t.All {
			t.passes[t.PassOf(x)] = true
		}
	}
	return t.passes[pass]
}

func keysOf[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// has reports whether its name is that of a role, behind a prefix or not.
func (t *Template) has(role string) bool {
	if t.plain == nil {
		t.plain = plainNames(t.Text) // once: there are many roles
	}
	return slices.Contains(t.plain, role)
}

// Called reports whether its name is a known one of a role.
func (t *Template) Called(role string) bool { return t.Rank(role) >= 0 }

// Rank is the position of its name in the list of the known names of a role: 0 for the role's own name, −1 if the list does not have it.
func (t *Template) Rank(role string) int {
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
	NumberText = regexp.MustCompile(`[0-9]+`)
	layerText  = regexp.MustCompile(`(?i)(?:layers?|blocks?|blk)[-_./]?$`) // what stands before the number of a layer, in words of any writer: block_3
)

// Escape makes a name a pattern that matches it alone.
func Escape(name string) string { return escaped.Replace(name) }

var escaped = strings.NewReplacer("{", "{{", "}", "}}", "#", "##")

// Reading is one way to read a name.
type Reading struct {
	Text   string
	Front  string // what stands before the number
	Layer  int
	from   int    // the number of the first layer: 0, or 1
	Digits string // the number as it is written
	sure   bool   // a word, or a known name, says that the number is that of a layer
	// beyond: the model has no such layer. The pattern names no layers then: it would match this tensor, too.
	beyond bool
}

// MaxReadings bounds the numbers of a name that may be a layer's, and maxName the bytes of one that is looked at.
const (
	MaxReadings = 8
	maxName     = 256
)

// readings are the ways to read a name: each number in it may be that of a layer. The first is the name itself.
func readings(name string, layers int) []Reading {
	list := []Reading{{Text: Escape(name), Layer: -1}}
	if len(name) > maxName || layers == 0 {
		return list
	}
	for _, m := range NumberText.FindAllStringIndex(name, MaxReadings) {
		n, err := strconv.Atoi(name[m[0]:m[1]])
		if err == nil && m[1]-m[0] <= 9 {
			front := Escape(name[:m[0]])
			text := front + "{L}" + Escape(name[m[1]:])
			list = append(list, Reading{
				Text: text, Front: front, Layer: n, Digits: name[m[0]:m[1]],
				sure: layerText.MatchString(name[:m[0]]) || isAlias[text], beyond: n >= layers,
			})
		}
	}
	return list
}

// Occurrence is a tensor of a dump, and how its name is read.
type Occurrence struct {
	At           int // in the dump
	Record       capture.Record
	Source       capture.Source
	prefix, rest string // the part with the number of its pass, and what follows
	suffix       string // that part, where it stands at the end
	step         int    // −1 for none
	Rank         Rank
	Best         Reading
	known        bool // it needs no line
}

func (x *Occurrence) Tensor() tensors.Tensor { return tensors.OfSource(&x.Source) }

// text is the pattern of its name, in which a rank has no number yet.
func (x *Occurrence) text() string { return x.reading(x.Best.Text) }

// reading is the pattern of its name, of which the part without its pass is read so.
func (x *Occurrence) reading(text string) string { return x.prefix + text + x.suffix }

// namesOf reads the names of a dump, which is a list of passes where passes is true. known says which tensors need no line.
// layers is 0 where no number of a name is that of a layer.
func namesOf(t *capture.Trace, layers int, known func(int) bool, passes bool) []*Occurrence {
	var all []*Occurrence
	count := map[string]map[int]bool{} // the layers of each reading
	beyond := map[string]bool{}        // those that some tensor has with a number that is no layer's, or with one in two spellings
	written := map[string]string{}     // the number of each layer of a reading
	fronts := map[string]*front{}
	sources := t.Sources()
	for i, r := range t.Records() {
		x := &Occurrence{At: i, Record: r, Source: sources[i], step: -1, known: known(i)}
		x.rest, x.Rank = marked(r.Name)
		all = append(all, x)
	}
	unmark(all, layers)
	for _, x := range all {
		if m := ListText.FindStringSubmatch(x.rest); passes && m != nil {
			x.prefix, x.rest = "{S}.", m[2]
			x.step, _ = strconv.Atoi(m[1])
		} else if m := stepText.FindStringSubmatch(x.rest); m != nil {
			x.prefix, x.rest = Escape(m[1]+m[2]+m[3])+"{S}"+Escape(m[5]), x.rest[len(m[0]):]
			x.step, _ = strconv.Atoi(m[4])
		} else if m := stepEnd.FindStringSubmatch(x.rest); m != nil {
			x.rest, x.suffix = m[1], Escape(m[2])+"{S}"
			x.step, _ = strconv.Atoi(m[3])
		}
		for _, n := range readings(x.rest, layers) {
			key := x.reading(n.Text)
			if count[key] == nil {
				count[key] = map[int]bool{}
			}
			count[key][n.Layer] = true
			of := fmt.Sprintf("%s\x00%d", key, n.Layer)
			if before, ok := written[of]; ok && before != n.Digits {
				beyond[key] = true
			}
			written[of] = n.Digits
			beyond[key] = beyond[key] || n.beyond && n.Layer > layers
			if n.Layer >= 0 {
				if fronts[x.reading(n.Front)] == nil {
					fronts[x.reading(n.Front)] = &front{numbers: map[int]bool{}, readings: map[string]bool{}}
				}
				fronts[x.reading(n.Front)].add(n, x.known)
			}
		}
	}
	for _, x := range all {
		x.Best = Reading{Text: Escape(x.rest), Layer: -1}
		for _, n := range readings(x.rest, layers)[1:] {
			many, most := len(count[x.reading(n.Text)]), max(1, len(count[x.text()]))
			f := fronts[x.reading(n.Front)]
			if beyond[x.reading(n.Text)] || f.beyond(layers) && count[x.reading(n.Text)][layers] {
				continue
			}
			if !f.beyond(layers) && f.numbers[layers] {
				n.from, n.Layer, n.beyond = 1, n.Layer-1, false
			}
			if n.sure && !x.Best.sure || n.sure == x.Best.sure && many > most || layers == 1 && x.Best.Layer < 0 {
				x.Best = n
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

func (f *front) add(n Reading, known bool) {
	f.numbers[n.Layer], f.readings[n.Text] = true, true
	f.known, f.sure = f.known || known, f.sure || n.sure
}

// beyond reports whether the number of a layer that the model lacks does not mean that layers are counted from 1. It does where no number is 0 or
// larger, there are several, and a word or several tensors of one number say that it is a layer's.
func (f *front) beyond(layers int) bool {
	return f.numbers[layers] && (f.known || f.numbers[0] || len(f.numbers) < 2 || slices.Max(keysOf(f.numbers)) > layers || !f.sure && len(f.readings) < 2)
}

// Templates groups the tensors of a dump by what their names have in common. known says which of them need no line.
func Templates(ctx context.Context, t *capture.Trace, layers int, known func(int) bool, passes bool) ([]*Template, error) {
	twice := map[string]bool{}
	for _, r := range t.Records() {
		twice[r.Name] = twice[r.Name] || r.Firing > 0
	}
	found := map[string]*group{}
	var order []*group
	all := namesOf(t, layers, known, passes)
	for _, x := range all {
		text := x.text()
		if twice[x.Record.Name] {
			text += fmt.Sprintf("#%d", x.Record.Firing)
		}
		g := found[text]
		if g == nil {
			g = &group{Template: Template{Text: text, Steps: x.step >= 0, First: x.step, From: x.Best.from, NeedsNoLine: x.known}, at: map[cell]*Occurrence{}}
			found[text] = g
			order = append(order, g)
		}
		g.add(x)
	}
	numbering := numberings(all, layers)
	var list []*Template
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

// AddLastRows adds the forms of a tensor that is too small for all tokens and may be the row of the last.
func (t *Template) AddLastRows(tokens int) {
	for _, f := range t.Forms {
		for _, x := range f.Layers {
			if shape := tensors.WithoutOnes(x.Shape); tokens < 2 || len(shape) != 1 {
				return
			}
		}
	}
	for _, f := range slices.Clone(t.Forms) {
		t.Forms = append(t.Forms, f.lastRow())
	}
}

// Holds reports whether the name of t is the name of a module, and part the name of a tensor in it: attn and attn.wo.
func (t *Template) Holds(part *Template) bool {
	rest, ok := strings.CutPrefix(part.Text, t.Text)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && rest != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// ListText is the name of a tensor in an element of a list: "0.norm".
var ListText = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(.+)$`)

// PassOf is the pass of a tensor of a template.
func (t *Template) PassOf(x *Occurrence) int {
	if x.step >= 0 {
		return x.step - t.First
	}
	return x.Record.Pass
}
