package names

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/internal/spelling"
)

var (
	stepText   = regexp.MustCompile(`(?i)^(.*?)\b(` + spelling.PassWords + `)([-_=.]?)([0-9]{1,9})([-_./])`)
	stepEnd    = regexp.MustCompile(`(?i)^(.+)([-_./](?:` + spelling.PassWords + `)[-_=.]?)([0-9]{1,9})$`)
	NumberText = regexp.MustCompile(`[0-9]+`)
	layerText  = regexp.MustCompile(`(?i)(?:` + spelling.LayerWords + `)[-_./]?$`) // what stands before the number of a layer, in words of any writer: block_3
)

// Escape returns the pattern that matches a name and no other name.
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

// Tensor returns the tensor in the dump, with the dump's key, shape, dtype and elements.
func (x *Occurrence) Tensor() tensors.Tensor { return tensors.OfSource(&x.Source) }

// text is the pattern of its name, in which a rank has no number yet.
func (x *Occurrence) text() string { return x.reading(x.Best.Text) }

// reading is the pattern of the name if text is the pattern of the name without its pass.
func (x *Occurrence) reading(text string) string { return x.prefix + text + x.suffix }

// numbersOf has the different numbers of each text.
type numbersOf map[string]map[int]bool

func (s numbersOf) add(text string, n int) {
	if s[text] == nil {
		s[text] = map[int]bool{}
	}
	s[text][n] = true
}

// census counts what the readings of all names have in common.
type census struct {
	layers  int               // of the model; 0 where no number of a name is that of a layer
	numbers numbersOf         // the layers of each reading
	beyond  map[string]bool   // the readings that some tensor has with a number that is no layer's, or with one in two spellings
	written map[string]string // the number of each layer of a reading
	fronts  map[string]*front
}

// namesOf reads the names of a dump, which is a list of passes where passes is true. known says which tensors need no line.
// layers is 0 where no number of a name is that of a layer.
func namesOf(t *capture.Trace, layers int, known func(int) bool, passes bool) []*Occurrence {
	var all []*Occurrence
	sources := t.Sources()
	for i, r := range t.Records() {
		x := &Occurrence{At: i, Record: r, Source: sources[i], step: -1, known: known(i)}
		x.rest, x.Rank = marked(r.Name)
		all = append(all, x)
	}
	unmark(all, layers)
	c := &census{layers: layers, numbers: numbersOf{}, beyond: map[string]bool{}, written: map[string]string{}, fronts: map[string]*front{}}
	for _, x := range all {
		x.readPass(passes)
		for _, n := range readings(x.rest, layers) {
			c.add(x, n)
		}
	}
	for _, x := range all {
		c.choose(x)
	}
	return all
}

// readPass finds the number of a pass in a name: of an element of a list, of a step at the beginning or at the end.
func (x *Occurrence) readPass(passes bool) {
	digits := "-1"
	if m := ListText.FindStringSubmatch(x.rest); passes && m != nil {
		x.prefix, x.rest, digits = "{S}.", m[2], m[1]
	} else if m := stepText.FindStringSubmatch(x.rest); m != nil {
		x.prefix, x.rest, digits = Escape(m[1]+m[2]+m[3])+"{S}"+Escape(m[5]), x.rest[len(m[0]):], m[4]
	} else if m := stepEnd.FindStringSubmatch(x.rest); m != nil {
		x.rest, x.suffix, digits = m[1], Escape(m[2])+"{S}", m[3]
	}
	x.step, _ = strconv.Atoi(digits)
}

// add counts a reading of a name.
func (c *census) add(x *Occurrence, n Reading) {
	key, front := x.reading(n.Text), x.reading(n.Front)
	c.numbers.add(key, n.Layer)
	of := fmt.Sprintf("%s\x00%d", key, n.Layer)
	before, twice := c.written[of]
	c.beyond[key] = c.beyond[key] || twice && before != n.Digits || n.beyond && n.Layer > c.layers
	c.written[of] = n.Digits
	if n.Layer >= 0 {
		c.frontOf(front).add(n, x.known)
	}
}

func (c *census) frontOf(text string) *front {
	if c.fronts[text] == nil {
		c.fronts[text] = &front{numbers: map[int]bool{}, readings: map[string]bool{}}
	}
	return c.fronts[text]
}

// choose finds the best reading of a name: a number that a word calls a layer's, or else the number that most layers have.
func (c *census) choose(x *Occurrence) {
	x.Best = Reading{Text: Escape(x.rest), Layer: -1}
	for _, n := range readings(x.rest, c.layers)[1:] {
		key := x.reading(n.Text)
		many, most := len(c.numbers[key]), max(1, len(c.numbers[x.text()]))
		f := c.fronts[x.reading(n.Front)]
		beyond := f.beyond(c.layers)
		if c.beyond[key] || beyond && c.numbers[key][c.layers] {
			continue
		}
		if !beyond && f.numbers[c.layers] {
			n.from, n.Layer, n.beyond = 1, n.Layer-1, false
		}
		if n.sure && !x.Best.sure || n.sure == x.Best.sure && many > most || c.layers == 1 && x.Best.Layer < 0 {
			x.Best = n
		}
	}
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

// ListText is the name of a tensor in an element of a list: "0.norm".
var ListText = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(.+)$`)
