package pattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A parser reads an expression from left to right.
type parser struct {
	rest  string
	fold  bool // inside of (?i:)
	depth int
}

// take reports whether the rest begins with prefix, and goes past it.
func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// next takes a character.
func (p *parser) next() rune {
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

// alternatives reads up to the end, or to a parenthesis that closes.
func (p *parser) alternatives() (node, error) {
	var parts []node
	for {
		part, err := p.sequence()
		if err != nil {
			return node{}, err
		}
		if parts = append(parts, part); !p.take("|") {
			break
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return node{kind: either, parts: parts}, nil
}

// sequence reads one alternative.
func (p *parser) sequence() (node, error) {
	n := node{kind: concat}
	before := rune(-1) // the character before, where case does not matter
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		if p.fold {
			letter, _ := utf8.DecodeRuneInString(p.rest)
			if before >= 0 {
				if err := foldsAlone(before, letter); err != nil {
					return node{}, err
				}
			}
			before = letter
		}
		atom, err := p.atom()
		if err != nil {
			return node{}, err
		}
		if atom, err = p.quantified(atom); err != nil {
			return node{}, err
		}
		n.parts = append(n.parts, atom)
	}
	if len(n.parts) == 1 {
		return n.parts[0], nil
	}
	return n, nil
}

// foldsAlone returns an error where two neighbours inside of (?i:) may be one character to Oniguruma, as ß is ss: of classes that is not
// looked into.
func foldsAlone(a, b rune) error {
	pair := strings.ToLower(string([]rune{a, b}))
	if strings.ContainsAny(pair, "[(") || pair == "ss" || pair == "st" || pair[0] == 'f' && strings.ContainsAny(pair[1:], "fil") {
		return fmt.Errorf("%q without regard to case", pair)
	}
	return nil
}

// atom reads the part before a quantifier.
func (p *parser) atom() (node, error) {
	switch c := p.next(); c {
	case '(':
		return p.group()
	case '[':
		s, err := p.class()
		return node{kind: one, set: s}, err
	case '.':
		return node{kind: one, set: NewSet([2]rune{'\n', '\n'}).complement()}, nil
	case '\\':
		s, r, err := p.escape()
		if err != nil || s != nil {
			return node{kind: one, set: s}, err
		}
		return p.character(r)
	case '*', '+', '?', '{', '^', '$':
		return node{}, fmt.Errorf("%q here", c)
	default:
		return p.character(c)
	}
}

// character is one that stands for itself.
func (p *parser) character(r rune) (node, error) {
	ranges, err := p.folded([][2]rune{{r, r}})
	return node{kind: one, set: NewSet(ranges...)}, err
}

// The characters beyond ASCII that are a letter of ASCII without regard to case.
const (
	longS  = '\u017f'
	kelvin = '\u212a'
)

// folded adds the other case of ASCII letters inside of (?i:).
func (p *parser) folded(ranges [][2]rune) ([][2]rune, error) {
	if !p.fold {
		return ranges, nil
	}
	all := ranges
	for _, r := range ranges {
		if r[1] >= utf8.RuneSelf {
			return nil, fmt.Errorf("%q without regard to case", r[1])
		}
		for c := r[0]; c <= r[1]; c++ {
			switch lower := c | 0x20; {
			case lower < 'a' || lower > 'z':
				continue
			case lower == 's':
				all = append(all, [2]rune{longS, longS})
			case lower == 'k':
				all = append(all, [2]rune{kelvin, kelvin})
			}
			all = append(all, [2]rune{c ^ 0x20, c ^ 0x20})
		}
	}
	return all, nil
}

// group reads a group after its opening parenthesis. No expression refers to groups by number, so capturing and other groups are the same.
func (p *parser) group() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return node{}, fmt.Errorf("groups more than %d deep", maxDepth)
	}
	defer func(fold bool) { p.depth, p.fold = p.depth-1, fold }(p.fold)
	wrap := concat
	switch {
	case p.take("?:"):
	case p.take("?i:"):
		p.fold = true
	case p.take("?="):
		wrap = ahead
	case p.take("?!"):
		wrap = nowhere
	case p.take("?>"):
		wrap = atomic
	case strings.HasPrefix(p.rest, "?") || strings.HasPrefix(p.rest, "*"):
		return node{}, fmt.Errorf("the group (%.3s", p.rest)
	}
	inner, err := p.alternatives()
	if err != nil {
		return node{}, err
	}
	if !p.take(")") {
		return node{}, errors.New("an unmatched (")
	}
	return node{kind: wrap, parts: []node{inner}}, nil
}

// quantified reads a quantifier, if one follows.
func (p *parser) quantified(n node) (node, error) {
	q := node{kind: repeat, parts: []node{n}, max: -1}
	counted, exact := false, false
	switch {
	case p.take("*"):
	case p.take("+"):
		q.min = 1
	case p.take("?"):
		q.max = 1
	case p.take("{"):
		var err error
		if q.min, q.max, exact, err = p.count(); err != nil {
			return node{}, err
		}
		counted = true
	default:
		return n, nil
	}
	switch {
	case p.rest != "" && p.rest[0] == '?' && !exact:
		p.rest, q.greed = p.rest[1:], lazy
	case p.rest != "" && p.rest[0] == '+' && !counted:
		p.rest, q.greed = p.rest[1:], possessive
	}
	if p.rest != "" && strings.IndexByte("*+?{", p.rest[0]) >= 0 {
		return node{}, errors.New("a quantifier after a quantifier")
	}
	if n.least() == 0 {
		return node{}, errors.New("a quantifier of what matches the empty text")
	}
	return q, nil
}

// count reads {n}, {n,}, {,m} or {n,m} after the opening brace. exact reports the form {n}.
func (p *parser) count() (least, most int, exact bool, err error) {
	inside, rest, closed := strings.Cut(p.rest, "}")
	p.rest = rest
	low, high, comma := strings.Cut(inside, ",")
	number := func(s string, empty int) int {
		if s == "" {
			return empty
		}
		n, e := strconv.ParseUint(s, 10, 16)
		if e != nil || n > maxRepeat {
			err = fmt.Errorf("the quantifier {%.20s}", inside)
		}
		return int(n)
	}
	least, most = number(low, 0), number(high, -1)
	if !comma {
		most = least
	}
	if !closed || low == "" && high == "" || most >= 0 && most < least || most == 0 {
		err = fmt.Errorf("the quantifier {%.20s}", inside)
	}
	return least, most, !comma, err
}
