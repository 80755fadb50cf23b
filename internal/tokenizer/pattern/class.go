package pattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape reads a class of characters, or one character, after a backslash.
func (p *parser) escape() (*Set, rune, error) {
	if p.rest == "" {
		return nil, 0, errors.New("a \\ at the end")
	}
	switch c := p.next(); c {
	case 's':
		return Class("space"), 0, nil
	case 'S':
		return Class("space").complement(), 0, nil
	case 'd':
		return category("Nd"), 0, nil
	case 'D':
		return category("Nd").complement(), 0, nil
	case 'p', 'P':
		s, err := p.property(c == 'P')
		return s, 0, err
	case 'n', 'r', 't', 'f', 'v', 'a', 'e':
		return nil, rune("\n\r\t\f\v\a\x1b"[strings.IndexRune("nrtfvae", c)]), nil
	case 'u':
		r, err := p.hex(4)
		return nil, r, err
	case 'x':
		r, err := p.hexadecimal()
		return nil, r, err
	default:
		if c >= utf8.RuneSelf || c < '!' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
			return nil, 0, fmt.Errorf("the escape \\%c", c)
		}
		return nil, c, nil
	}
}

// property reads {L}, {^L} and the like.
func (p *parser) property(not bool) (*Set, error) {
	inside, rest, closed := strings.Cut(p.rest, "}")
	name, ok := strings.CutPrefix(inside, "{")
	if strings.HasPrefix(name, "^") {
		name, not = name[1:], !not
	}
	s := category(name)
	if !closed || !ok || s == nil {
		return nil, fmt.Errorf("the property \\p%.20s}", inside)
	}
	if p.fold {
		return nil, fmt.Errorf("the property %s without regard to case", name)
	}
	if p.rest = rest; not {
		return s.complement(), nil
	}
	return s, nil
}

// hexadecimal reads the character of \x: two digits, or any number of them in braces.
func (p *parser) hexadecimal() (rune, error) {
	if !p.take("{") {
		r, err := p.hex(2)
		if r >= utf8.RuneSelf { // a byte, not a character
			err = fmt.Errorf("the escape \\x%X", r)
		}
		return r, err
	}
	end := strings.IndexByte(p.rest, '}')
	if end < 1 || end > 6 {
		return 0, errors.New("the escape \\x{")
	}
	r, err := p.hex(end)
	p.rest = p.rest[1:]
	return r, err
}

// hex reads a number of hexadecimal digits.
func (p *parser) hex(digits int) (rune, error) {
	if len(p.rest) < digits {
		return 0, errors.New("an escape that is cut short")
	}
	n, err := strconv.ParseUint(p.rest[:digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) || n > utf8.MaxRune {
		return 0, fmt.Errorf("the character %q", p.rest[:digits])
	}
	p.rest = p.rest[digits:]
	return rune(n), nil
}

// class reads a class in brackets after the opening bracket.
func (p *parser) class() (*Set, error) {
	not := p.take("^")
	var ranges [][2]rune
	var sets []*Set
	for first := true; ; first = false {
		switch {
		case p.rest == "":
			return nil, errors.New("an unmatched [")
		case p.rest[0] == ']' && !first:
			p.rest = p.rest[1:]
			ranges, err := p.folded(ranges)
			if err != nil {
				return nil, err
			}
			all := union(append(sets, NewSet(ranges...))...)
			switch {
			case not && p.fold:
				return nil, errors.New("[^ without regard to case")
			case not:
				all = all.complement()
			}
			return all, nil
		}
		set, low, err := p.member(first)
		if err != nil {
			return nil, err
		}
		switch {
		case set != nil:
			sets = append(sets, set)
			if strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") {
				return nil, errors.New("a range that begins with a class")
			}
		default:
			high := low
			if strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") {
				p.rest = p.rest[1:]
				if set, high, err = p.member(false); err != nil {
					return nil, err
				}
				if set != nil || high < low || strings.HasPrefix(p.rest, "-") {
					return nil, errors.New("not a range")
				}
			}
			ranges = append(ranges, [2]rune{low, high})
		}
	}
}

// member reads a character or a class inside of brackets. Syntax with a further meaning in some engine is refused.
func (p *parser) member(first bool) (*Set, rune, error) {
	switch c := p.next(); {
	case c == '\\':
		return p.escape()
	case c == '[' || c == ']' || c == '&' && strings.HasPrefix(p.rest, "&"):
		return nil, 0, fmt.Errorf("%q in a class", c)
	case c == '-' && !first && !strings.HasPrefix(p.rest, "]"):
		return nil, 0, errors.New("a - in the middle of a class")
	default:
		return nil, c, nil
	}
}
