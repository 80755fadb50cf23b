package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// captures are the texts that a pattern has found in a name, by the names of the captures. Numbers are in decimal.
type captures map[string]string

// pattern is a name with captures: {L}, with a capital letter first, is a number; {name} is a part without dots and slashes. At the end of
// a pattern, "#n" is firing n of the name, "#last" the last firing, and "#last-1" the firing before the last. "##" is a # in the name.
type pattern struct {
	text   string
	names  []string // of the captures, in order of appearance; a name that stands twice has to match the same text
	start  string   // the text before the first capture
	match  *regexp.Regexp
	firing int // a number of a firing, or one of the two constants below; lastFiring−n is the firing n before the last
}

const (
	anyFiring  = -1
	lastFiring = -2
	mostBefore = 99 // limit of n in "#last-n"
)

// fires reports whether the pattern matches one firing of a name. last is the number of the name's last firing.
func (p *pattern) fires(firing, last int) bool {
	switch {
	case p.firing == anyFiring:
		return true
	case p.firing <= lastFiring:
		return firing == last-(lastFiring-p.firing)
	}
	return firing == p.firing
}

// maxCaptures bounds the captures of a pattern: the time of a regular expression grows with their number.
const maxCaptures = 16

// hole is a capture, or an escaped character of the name: "{{", "}}" or "##".
var hole = regexp.MustCompile(`\{\{|\}\}|##|\{([^{}]*)\}|[{}]`)

// ofLayer is the capture of a layer's number.
const ofLayer = "{L}"

// InLayer is a pattern, or a target, with the number of a layer in place of {L}.
func InLayer(pattern, number string) string {
	return hole.ReplaceAllStringFunc(pattern, func(found string) string {
		if found == ofLayer {
			return number
		}
		return found
	})
}

// OfLayers reports whether a pattern has the number of a layer.
func OfLayers(pattern string) bool { return slices.Contains(hole.FindAllString(pattern, -1), ofLayer) }

// newPattern reads a pattern.
func newPattern(text string) (*pattern, error) {
	p := &pattern{text: text, firing: anyFiring}
	name := text
	if base, n, ok := cutFiring(text); ok {
		name = base
		var err error
		if p.firing, err = newFiring(n); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return nil, errors.New("the pattern is empty")
	}
	var re strings.Builder
	err := pieces(name, func(literal string) {
		re.WriteString(regexp.QuoteMeta(literal))
		if len(p.names) == 0 {
			p.start += literal
		}
	}, func(inside string) error {
		if !layout.IsName(inside) {
			return fmt.Errorf("{%s} is not a capture: want a name, such as {L}", inside)
		}
		if p.names = append(p.names, inside); len(p.names) > maxCaptures {
			return fmt.Errorf("it has more than %d captures", maxCaptures)
		}
		if isNumber(inside) {
			re.WriteString(`([0-9]{1,9})`)
		} else {
			re.WriteString(`([^./]+)`)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.match, err = regexp.Compile("^" + re.String() + "$")
	return p, err
}

// newFiring reads the text after the # of a pattern.
func newFiring(text string) (int, error) {
	if text == "last" {
		return lastFiring, nil
	}
	digits, before := strings.CutPrefix(text, "last-")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || before && (n == 0 || n > mostBefore) {
		return 0, fmt.Errorf("%q after #: want a number, last, or last-1 for the one before the last", text)
	}
	if before {
		return lastFiring - n, nil
	}
	return n, nil
}

// cutFiring cuts a pattern at the first # that is not doubled.
func cutFiring(text string) (name, firing string, ok bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '#' {
			continue
		}
		if i+1 == len(text) || text[i+1] != '#' {
			return text[:i], text[i+1:], true
		}
		i++
	}
	return text, "", false
}

// isNumber reports whether a capture of this name takes digits only.
func isNumber(name string) bool { return unicode.IsUpper(rune(name[0])) }

// pieces hands out the literal parts of a text and the parts in braces.
func pieces(text string, literal func(string), inside func(string) error) error {
	at := 0
	for _, m := range hole.FindAllStringSubmatchIndex(text, -1) {
		literal(text[at:m[0]])
		at = m[1]
		switch found := text[m[0]:m[1]]; {
		case found == "{{" || found == "}}" || found == "##":
			literal(found[:1])
		case m[2] < 0:
			return fmt.Errorf("%q has a brace without its counterpart", text)
		default:
			if err := inside(text[m[2]:m[3]]); err != nil {
				return err
			}
		}
	}
	literal(text[at:])
	return nil
}

// of returns the captures of a name; false if the pattern does not match.
func (p *pattern) of(name string) (captures, bool) {
	if !strings.HasPrefix(name, p.start) {
		return nil, false
	}
	found := p.match.FindStringSubmatch(name)
	if found == nil {
		return nil, false
	}
	c := captures{}
	for i, n := range p.names {
		value := found[i+1]
		if isNumber(n) { // 01 and 1 are one layer
			if value = strings.TrimLeft(value, "0"); value == "" {
				value = "0"
			}
		}
		if before, twice := c[n]; twice && before != value {
			return nil, false
		}
		c[n] = value
	}
	return c, true
}

// target is a new name: its braces hold captures, or sums and products of numbers, such as {L+16*P}.
type target struct {
	text string
	uses []string // the captures in the target
}

// newTarget reads a target. Its captures have to be in the pattern.
func newTarget(text string, from *pattern) (target, error) {
	t := target{text: text}
	if text == "" {
		return t, errors.New("a target is empty")
	}
	err := pieces(text, func(string) {}, func(inside string) error {
		e, err := newExpression(inside)
		if err != nil {
			return err
		}
		for _, n := range e.names() {
			if !slices.Contains(from.names, n) {
				return fmt.Errorf("{%s} is in the target, and the pattern has no {%s}", inside, n)
			}
			if !isNumber(n) && !e.plain() {
				return fmt.Errorf("{%s}: %s is not a number: captures of numbers begin with a capital letter", inside, n)
			}
			t.uses = append(t.uses, n)
		}
		return nil
	})
	return t, err
}

// name is the target with the texts of the captures.
func (t target) name(c captures) (string, error) {
	var b strings.Builder
	err := pieces(t.text, func(literal string) { b.WriteString(literal) }, func(inside string) error {
		if value, ok := c[inside]; ok {
			b.WriteString(value)
			return nil
		}
		e, err := newExpression(inside)
		if err != nil {
			return err
		}
		n, err := e.value(c.number)
		b.WriteString(strconv.Itoa(n))
		return err
	})
	return b.String(), err
}

// number is a capture as a number.
func (c captures) number(name string) (int, bool) {
	n, err := strconv.Atoi(c[name])
	return n, err == nil
}

// shape is the pattern without the names of its captures. Two patterns with the same shape match the same names. A pattern that has one
// capture twice keeps its text.
func (p *pattern) shape() string {
	seen := map[string]bool{}
	twice := false
	text := hole.ReplaceAllStringFunc(p.text, func(found string) string {
		name := strings.Trim(found, "{}#")
		if name == "" { // a brace or # in the name
			return found
		}
		twice, seen[name] = twice || seen[name], true
		if isNumber(name) {
			return "{A}"
		}
		return "{a}"
	})
	if twice {
		return p.text
	}
	return text
}
