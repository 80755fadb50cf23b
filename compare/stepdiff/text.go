package stepdiff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// number is the shortest text that reads back as the same number.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// context is the number of common steps shown around a step of one side.
const context = 2

// signs are the operations that are written between their operands.
var signs = map[string]string{"add": "+", "sub": "-", "mul": "*", "div": "/"}

// diff is the diff of two slices that are not the same.
func diff(a, b root) []string {
	x, y := a.lines(false), b.lines(false)
	if slices.Equal(x, y) { // the same words over other elements, or wired otherwise
		x, y = a.lines(true), b.lines(true)
	}
	return shorten(merge(x, y))
}

// lines are the steps of a slice for a person: a step that reads the step above does not name it. In full, each step names all operands, by
// numbers, with their elements.
func (r root) lines(full bool) []string {
	steps := r.all()
	place := map[*node]int{}
	var out []string
	for i, n := range steps {
		place[n] = i + 1
		var before *node
		if i > 0 {
			before = steps[i-1]
		}
		line := n.line(before, place, full)
		if full {
			line = fmt.Sprintf("#%d %s -> %s", i+1, line, n.result)
		}
		out = append(out, line)
	}
	last := r.operand
	if !last.step || last.view != "" || full {
		text := "the result is " + last.show(nil, place, full)
		out = append(out, text)
	}
	return out
}

// line is a step.
func (n *node) line(before *node, place map[*node]int, full bool) string {
	var words []string
	for _, o := range n.operands {
		words = append(words, o.show(before, place, full))
	}
	text := ""
	sign, infix := signs[n.op]
	switch {
	case infix && len(words) == 2 && words[0] == "":
		text = sign + " " + words[1] + n.text
	case infix && len(words) == 2 && words[1] == "" && (n.op == "add" || n.op == "mul"):
		text = sign + " " + words[0] + n.text
	case infix && len(words) == 2:
		text = either(words[0]) + " " + sign + " " + either(words[1]) + n.text
	case n.op == "to":
		text = strings.TrimSpace("to " + n.result[:strings.IndexByte(n.result, '[')] + n.text + " " + words[0])
		if n.operands[0].view != "" || n.operands[0].id == "" {
			text += " as " + fmt.Sprint(n.shape)
		}
		return text
	default:
		var rest []string
		for i, w := range words {
			if i > 0 || w != "" || slices.ContainsFunc(n.operands[1:], func(o operand) bool { return !strings.HasPrefix(o.id, "number ") }) {
				rest = append(rest, either(w))
			}
		}
		text = strings.TrimSpace(n.op + n.text + " " + strings.Join(rest, ", "))
	}
	if before == nil || n.result[:strings.IndexByte(n.result, '[')] != before.dtypeOf() {
		text += " in " + n.result[:strings.IndexByte(n.result, '[')]
	}
	return text
}

func (n *node) dtypeOf() string { return n.result[:strings.IndexByte(n.result, '[')] }

// either is a word, or what stands for the step above.
func either(word string) string {
	if word == "" {
		return "it"
	}
	return word
}

// show is an operand; empty for all of the step above.
func (o operand) show(before *node, place map[*node]int, full bool) string {
	text := o.text
	if o.step {
		text = "(" + o.op + ")"
		if full {
			text = fmt.Sprintf("#%d", place[o.node])
		} else if o.node == before {
			text = ""
		}
	}
	switch {
	case o.view == "":
		return text
	case full:
		return text + " as " + o.view
	case text == "":
		return "it as " + o.sees
	}
	return text + " as " + o.sees
}

// maxCells bounds the table by which two slices are merged.
const maxCells = 1 << 24

// merge is the shortest edit of lines x to lines y, by their longest common subsequence. Of slices that are too long for that, all that
// is between a common beginning and a common end is taken for different.
func merge(x, y []string) []string {
	var head, tail []string
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		head, x, y = append(head, "  "+x[0]), x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		tail, x, y = append(tail, "  "+x[len(x)-1]), x[:len(x)-1], y[:len(y)-1]
	}
	slices.Reverse(tail)
	return slices.Concat(head, between(x, y), tail)
}

func between(x, y []string) []string {
	if len(x)*len(y) > maxCells {
		var out []string
		for _, l := range x {
			out = append(out, "- "+l)
		}
		for _, l := range y {
			out = append(out, "+ "+l)
		}
		return out
	}
	length := make([][]int, len(x)+1)
	for i := range length {
		length[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, "  "+x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && length[i+1][j] >= length[i][j+1]:
			out = append(out, "- "+x[i])
			i++
		default:
			out = append(out, "+ "+y[j])
			j++
		}
	}
	return out
}

// shorten leaves out the steps of both sides that are far from any difference.
func shorten(lines []string) []string {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l[0] == ' ' {
			continue
		}
		for k := max(0, i-context); k <= min(len(lines)-1, i+context); k++ {
			near[k] = true
		}
	}
	var out []string
	for i, l := range lines {
		switch {
		case near[i]:
			out = append(out, l)
		case i == 0 || near[i-1]:
			out = append(out, "  ...")
		}
	}
	return out
}
