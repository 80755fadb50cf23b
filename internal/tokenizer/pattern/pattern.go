// Package pattern matches the regular expressions of tokenizer.json files as the `tokenizers` package does with Oniguruma: the
// alternative that is listed first wins, whatever its length. It also has the classes of characters of the engines in that package.
//
// It reads the part of Oniguruma's syntax that published files have: characters and their escapes, classes, \s, \d and general
// categories, groups, (?i:), alternatives, quantifiers (greedy, lazy and possessive), atomic groups and lookaheads. Everything else is
// an error that names it, and so is an expression that matches the empty text: no expression is matched nearly right.
//
// Expressions and texts are untrusted. A backtracking engine can take time without bound on them, so each search spends from a [Budget],
// and ends with an error where it is used up.
package pattern

import (
	"errors"
	"fmt"
)

const (
	maxExpression = 1 << 14 // bytes of an expression
	maxProgram    = 1 << 14 // instructions, after repetitions were written out
	maxDepth      = 64      // of groups
	maxRepeat     = 1000    // of a counted repetition
)

// A Pattern is a compiled expression. It does not change and may be used by several goroutines at once.
type Pattern struct {
	program []instruction
}

// Compile reads an expression. The error names what of it is not implemented.
func Compile(expression string) (*Pattern, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("an expression of %d bytes, more than %d", len(expression), maxExpression)
	}
	p := &parser{rest: expression}
	tree, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.rest != "" {
		return nil, errors.New("an unmatched )")
	}
	if tree.least() == 0 {
		return nil, errors.New("an expression that matches the empty text")
	}
	c := &compiler{}
	c.add(tree)
	c.emit(instruction{op: opEnd})
	if len(c.program) > maxProgram {
		return nil, fmt.Errorf("an expression of more than %d steps", maxProgram)
	}
	return &Pattern{c.program}, nil
}

// The kinds of nodes.
type kind uint8

const (
	one     kind = iota // a character of set
	concat              // parts, one after the other
	either              // one of parts, the first that leads to a match
	repeat              // parts[0], from min to max times
	atomic              // parts[0], which is not tried otherwise once it has matched
	ahead               // a lookahead: parts[0] matches here, and takes nothing
	nowhere             // a negative lookahead
)

// The ways to repeat.
type greed uint8

const (
	greedy greed = iota
	lazy
	possessive
)

// A node is a part of an expression.
type node struct {
	kind     kind
	set      *Set
	parts    []node
	min, max int // max −1: without end
	greed    greed
}

// least is the smallest number of characters that a node matches, at most 1.
func (n node) least() int {
	switch n.kind {
	case one:
		return 1
	case concat:
		for _, p := range n.parts {
			if p.least() > 0 {
				return 1
			}
		}
		return 0
	case either:
		for _, p := range n.parts {
			if p.least() == 0 {
				return 0
			}
		}
		return 1
	case repeat:
		return min(n.min, n.parts[0].least())
	case atomic:
		return n.parts[0].least()
	}
	return 0
}

// The instructions.
type opcode uint8

const (
	opSet    opcode = iota // a character of set
	opLoop                 // min to max characters of set: as many as possible, then fewer if the rest of the expression fails
	opTake                 // min to max characters of set: as many as possible, never fewer
	opSplit                // go on at x, and where that fails at y
	opJump                 // go on at x
	opAhead                // what begins with the next instruction matches here; go on at x
	opNot                  // it does not
	opAtomic               // what begins with the next instruction; go on at x after the match
	opEnd
)

type instruction struct {
	op       opcode
	set      *Set
	min, max int
	x, y     int
}

// A compiler writes the program of a tree. Where it grows beyond maxProgram, writing ends early and the program is refused.
type compiler struct {
	program []instruction
}

func (c *compiler) emit(i instruction) int {
	c.program = append(c.program, i)
	return len(c.program) - 1
}

func (c *compiler) add(n node) {
	if len(c.program) > maxProgram {
		return
	}
	switch n.kind {
	case one:
		c.emit(instruction{op: opSet, set: n.set})
	case concat:
		for _, p := range n.parts {
			c.add(p)
		}
	case either:
		c.either(n.parts)
	case repeat:
		c.repeat(n)
	case atomic:
		c.group(opAtomic, n.parts[0])
	case ahead:
		c.group(opAhead, n.parts[0])
	case nowhere:
		c.group(opNot, n.parts[0])
	}
}

// group writes a part with a match of its own.
func (c *compiler) group(op opcode, n node) {
	at := c.emit(instruction{op: op})
	c.add(n)
	c.emit(instruction{op: opEnd})
	c.program[at].x = len(c.program)
}

func (c *compiler) either(parts []node) {
	var ends []int
	for i, p := range parts {
		if i == len(parts)-1 {
			c.add(p)
			break
		}
		split := c.emit(instruction{op: opSplit, x: len(c.program) + 1})
		c.add(p)
		ends = append(ends, c.emit(instruction{op: opJump}))
		c.program[split].y = len(c.program)
	}
	for _, at := range ends {
		c.program[at].x = len(c.program)
	}
}

func (c *compiler) repeat(n node) {
	body := n.parts[0]
	switch {
	case body.kind == one && n.greed == greedy:
		c.emit(instruction{op: opLoop, set: body.set, min: n.min, max: n.max})
		return
	case body.kind == one && n.greed == possessive:
		c.emit(instruction{op: opTake, set: body.set, min: n.min, max: n.max})
		return
	case n.greed == possessive:
		n.greed = greedy
		c.group(opAtomic, n)
		return
	}
	for range n.min {
		c.add(body)
	}
	if n.max < 0 {
		split := c.emit(instruction{op: opSplit})
		c.add(body)
		c.emit(instruction{op: opJump, x: split})
		c.choose(split, n.greed)
		return
	}
	var splits []int
	for range n.max - n.min {
		if len(c.program) > maxProgram {
			return
		}
		splits = append(splits, c.emit(instruction{op: opSplit}))
		c.add(body)
	}
	for _, at := range splits {
		c.choose(at, n.greed)
	}
}

// choose sets the two ways of a split: into the body, which follows the split, and past the code written so far. A greedy split tries the
// body first, a lazy one last.
func (c *compiler) choose(split int, g greed) {
	in, out := split+1, len(c.program)
	if g == lazy {
		in, out = out, in
	}
	c.program[split].x, c.program[split].y = in, out
}
