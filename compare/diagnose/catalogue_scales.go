package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program/edit"
)

// scaleRows are mistakes in the scales and zero points of a matrix that is kept in few bits.
func scaleRows() []Row {
	pages := slices.Concat([]Page{{Anchor: "quantised-weight", Roles: projected}}, pagesWithNames(nil, nil))
	all := []Row{
		{Kind: "weight.scales-of-blocks", Words: "{of}: {scales}", Solved: eachRun},
		// Scales of other blocks.
		{Kind: "weight.scales-of-further", Words: "each {block} of {of} has the {noun} of the {further}"},
		{Kind: "weight.scales-by-columns", Words: "each {block} of {of} has its {noun} from the transposed table of {noun}s"},
		{Kind: "weight.scales-stored-by-columns", Words: "each {block} of {of} has its {noun} from a table that is stored by columns and read by rows"},
		{Kind: "weight.scales-reversed", Words: "each {block} of {of} has its {noun} from a table that is read from its end"},
		{Kind: "weight.scales-of-first", Words: "each {block} of {of} has the {noun} of the first one[ of its {axis}]"},
		{Kind: "weight.scales-of-other-size", Words: "the {noun} of each {block} of {of} is read as the {noun} of {n} {axis}s"},
		{Kind: "weight.scales-in-turn", Words: "each {block} of {of} has its {noun} in another order: the {noun}s of eight {axis}s are read as {n} interleaved parts"},
		{Kind: "weight.scales-of-neighbours", Words: "each {block} of {of} has the {noun} of its neighbour: each two {axis}s are exchanged"},
		{Kind: scalesOfAnother, Words: "{of} has the scale{of blocks} of {by}", Apply: withScalesOfAnother},
		// Other scales.
		{Kind: "weight.scales-unused", Words: "no {block} of {of} has its scale: the largest value of each is {n}"},
		{Kind: "weight.scales-squared", Words: "each {block} of {of} has its scale twice, with codes up to {n}"},
		{Kind: "weight.scales-inverted", Words: "each {block} of {of} is divided by its scale, not multiplied, with codes up to {n}"},
		{Kind: "weight.scales-rounded", Words: "the scale of each {block} of {of} is rounded to {dtype}, with codes up to {n}"},
		{Kind: "weight.scales-of-all", Words: "each {block} of {of} has the largest of all scales"},
		{Kind: cutScales, Words: "the scale of each {block} of {of} is cut off at {x} times the largest scale", Solved: oneSolved},
		{Kind: raisedScales, Words: "the scale of each {block} of {of} is at least {x} times the largest scale", Solved: oneSolved},
		{Kind: "weight.scales-as-codes", Words: "each {block} of {of} is multiplied by the code of its scale, the exponent and 127, not by the scale"},
		{Kind: "weight.zero-points-all", Words: "each {block} of {of} has the zero point {0+n}"},
		{Kind: "weight.zero-points-wrapped", Words: "each {block} of {of} with the zero point 0 has the largest zero point"},
	}
	for k := range all {
		if all[k].Pages, all[k].Class = pages, edit.Leaf; all[k].Apply == nil {
			all[k].Apply = changedWeight
		}
	}
	return all
}

// scaleNoun is what a block has: a scale, or a zero point of a coding.
func (m Mistake) scaleNoun() string {
	if m.Coding.Numbers != "" {
		return "zero point"
	}
	return "scale"
}

// ofBlocks follows the word scale: "s of rows", and nothing for one scale of the whole matrix.
func (m Mistake) ofBlocks() string {
	if m.M == 0 && m.K == 0 {
		return ""
	}
	return "s of " + m.block() + "s"
}

// block is a block of a matrix that has a scale of its own: M rows by K columns, and 0 is all.
func (m Mistake) block() string {
	switch {
	case m.K == 0 && m.M == 1:
		return "row"
	case m.K == 0:
		return fmt.Sprintf("block of %d rows", m.M)
	case m.M == 0 && m.K == 1:
		return "column"
	case m.M == 0:
		return fmt.Sprintf("block of %d columns", m.K)
	}
	return fmt.Sprintf("block of %d by %d", m.M, m.K)
}

// further is the block that is N further.
func (m Mistake) further() string {
	switch m.N {
	case 1:
		return "next one"
	case -1:
		return "one before"
	}
	if m.N < 0 {
		return fmt.Sprintf("one %d before", -m.N)
	}
	return fmt.Sprintf("one %d further", m.N)
}

// mostScales is the largest number of runs of rows that a sentence lists.
const mostScales = 3

// scales lists the rows of a quantised matrix that have a wrong scale: the scale of other rows, no scale, or their own scale twice.
func (r Runs) scales() string {
	var all []string
	for _, run := range r.list() {
		rows := spanWords("row", run.From, run.To)
		switch run.Of {
		case unscaledRows:
			rows += " have no scale"
		case scaledTwice:
			rows += " have their scale applied twice"
		default:
			rows += " have the scale of " + spanWords("row", run.Is, run.Is+run.To-run.From)
		}
		all = append(all, rows)
	}
	if more := len(all) - mostScales; more > 0 {
		all = append(all[:mostScales], "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(all, "; ")
}
