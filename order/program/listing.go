package program

import (
	"fmt"
	"strconv"
	"strings"
)

// Line is a step as it is listed.
type Line struct {
	Name  string   `json:"name"`
	Prim  string   `json:"prim,omitempty"` // empty for the result
	Args  []string `json:"args,omitempty"`
	Shape []string `json:"shape"`
	Round string   `json:"round,omitempty"` // "R" for the model's dtype, empty for float32
	Site  bool     `json:"site,omitempty"`
}

// Listing lists the steps, and last, under the name "result", what the program returns. An input is in0, in1 ..., a weight
// w0, w1 ...; a number without a name stands where it is read. A view that is more than a repetition has an index for each
// axis of what it shows, written with the letters of the axes that it has: x[i l+4] is x from column 4 on. The letters are i,
// j, k, l ... in the order of the axes; a dot sums over the last one. size prints a size of an axis, and leaf what an input or
// a weight is.
func (p *Program) Listing(size func(n int) string, leaf func(s *Step) string) []Line {
	l := lister{p: p, size: size, leaf: leaf, names: stepNames(p)}
	sites, steps := p.Sites()
	at := map[int]bool{}
	for _, s := range sites {
		for _, i := range steps[s] {
			at[i] = true
		}
	}
	var lines []Line
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Prim == Number && s.Name == "" {
			continue
		}
		line := Line{Name: l.names[i], Prim: s.Prim.String(), Args: l.args(s), Shape: l.shape(s.Shape), Site: at[i]}
		if !s.Prim.IsLeaf() || s.Prim == Number {
			line.Round = roundingMarks[s.Round]
		}
		lines = append(lines, line)
	}
	return append(lines, Line{Name: "result", Args: []string{l.operand(p.Out)}, Shape: l.shape(p.Out.Shape)})
}

var roundingMarks = map[Rounding]string{
	Model: "R", Single: "R float32", Half: "float16", Table: "float16 table", Shifted: "R, scaled", None: "float64", Welford: "float64",
}

// stepNames are what steps are called in a listing: each another.
func stepNames(p *Program) []string {
	names := make([]string, len(p.Steps))
	taken := map[string]bool{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Name != "" {
			name := s.Name
			for n := 2; taken[name]; n++ { // of another operation of a cut
				name = fmt.Sprintf("%s#%d", s.Name, n)
			}
			names[i], taken[name] = name, true
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Name != "" {
			continue
		}
		name := s.Prim.String()
		switch s.Prim {
		case Number:
			names[i] = number(s.Number().Value)
			continue
		case Input:
			name = fmt.Sprintf("in%d", s.Index())
		case Weight, Matrix, Dense:
			name = fmt.Sprintf("w%d", s.Index())
		}
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s#%d", name, n)
		}
		names[i], taken[unique] = unique, true
	}
	return names
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

type lister struct {
	p     *Program
	size  func(n int) string
	leaf  func(s *Step) string
	names []string
}

func (l *lister) shape(shape []int) []string {
	words := make([]string, len(shape))
	for i, n := range shape {
		words[i] = l.size(n)
	}
	return words
}

// args are the operands of a step and its constants.
func (l *lister) args(s *Step) []string {
	var args []string
	for _, v := range s.Args {
		if s.Prim == Dot {
			args = append(args, l.indexed(v))
		} else {
			args = append(args, l.operand(v))
		}
	}
	switch {
	case s.Prim == Input, s.Prim.IsWeight():
		args = append(args, l.leaf(s))
	case s.Prim == Number:
		args = append(args, number(s.Number().Value))
	case s.Prim == Vector:
		args = append(args, fmt.Sprintf("%d numbers", len(s.Vector())))
	case s.Prim == Rank:
		args = append(args, fmt.Sprintf("the first %d", s.Shape[len(s.Shape)-1]))
	case s.Prim == Cat, s.Prim == Gather, s.Prim == Scatter, s.Prim == Collect:
		args = append(args, "axis "+letter(s.Axis()))
	case s.Prim == Mask && s.Sight().Window != 0:
		args = append(args, "window "+number(s.Sight().Window))
	case s.Prim == Lookup:
		args = append(args, fmt.Sprintf("%d rows", s.Entries().Rows))
		if s.Entries().Fallback {
			args = append(args, "else row 0")
		}
	}
	return args
}

// operand names a view: with the step's name only, where the view shows the whole step, repeated by numpy's rules.
func (l *lister) operand(v Var) string {
	s := &l.p.Steps[v.Step]
	whole := Var{Step: v.Step, Shape: s.Shape, Stride: Contiguous(s.Shape)}
	if shape, ok := Broadcast(s.Shape, v.Shape); ok && len(shape) == len(v.Shape) && v.Same(whole.Expanded(v.Shape)) {
		return l.names[v.Step]
	}
	return l.indexed(v)
}

// indexed writes an index for each axis of what a view shows.
func (l *lister) indexed(v Var) string {
	s := &l.p.Steps[v.Step]
	if s.Prim == Number {
		return l.names[v.Step]
	}
	strides := Contiguous(s.Shape)
	terms := make([][]string, len(s.Shape))
	reach := make([]int, len(s.Shape)) // the largest index
	rest := v.Off
	starts := make([]int, len(s.Shape))
	for a, stride := range strides {
		if s.Shape[a] > 1 {
			starts[a] = rest / stride
			rest %= stride
		}
		reach[a] = starts[a]
	}
	ok := true
	for axis, n := range v.Shape {
		if n == 1 || v.Stride[axis] == 0 {
			continue
		}
		a := 0
		for a < len(strides) && (s.Shape[a] == 1 || strides[a] > v.Stride[axis]) {
			a++
		}
		if a == len(strides) || v.Stride[axis]%strides[a] != 0 {
			ok = false
			break
		}
		by := v.Stride[axis] / strides[a]
		reach[a] += by * (n - 1)
		term := letter(axis)
		if by > 1 {
			term = l.size(by) + term
		}
		terms[a] = append(terms[a], term)
	}
	words := make([]string, len(s.Shape))
	for a := range words {
		ok = ok && reach[a] < max(s.Shape[a], 1)
		if starts[a] > 0 || len(terms[a]) == 0 {
			terms[a] = append(terms[a], l.size(starts[a]))
		}
		words[a] = strings.Join(terms[a], "+")
	}
	if !ok { // axes were made one
		return fmt.Sprintf("%s as (%s)", l.names[v.Step], strings.Join(l.shape(v.Shape), " "))
	}
	return fmt.Sprintf("%s[%s]", l.names[v.Step], strings.Join(words, " "))
}

// letter names an axis.
func letter(axis int) string { return string(rune('i' + axis)) }
