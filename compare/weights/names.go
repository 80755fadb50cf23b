package weights

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/spelling"
)

// wrappers are what frameworks put in front of the names of a text model.
var wrappers = spelling.InFront(spelling.Weight)

// plainName is a name without what frameworks put in front of it.
func plainName(name string) string { return wrappers.ReplaceAllString(name, "") }

// candidates are the names that an original may have for a tensor of the port, best first.
func candidates(name string) []string {
	plain := plainName(name)
	list := []string{name, plain}
	stem, tail := plain, ""
	for _, t := range []string{".weight", ".bias"} {
		if s, ok := strings.CutSuffix(plain, t); ok {
			stem, tail = s, t
		}
	}
	for _, to := range spelling.Roles(spelling.GGUF, spelling.Weight, stem) {
		list = append(list, to+tail, to)
	}
	return list
}

// Source is where a port has a tensor of the original.
type Source struct {
	Original *Tensor
	Parts    []Part // concatenated along the first axis; several parts only for a tensor that the port divides
}

// Part is a tensor of the port, and the shape that the original has for it.
type Part struct {
	Local *Tensor
	Shape []int
}

// Taken is the shape that the comparison reads from the port's tensor. It is the original's shape if the element counts agree, or if the
// port has padding rows after the vocabulary; otherwise the port's own shape.
func (p Part) Taken() []int {
	mine, theirs := p.Local.Shape, p.Shape
	n, _ := hooks.Elements(mine)
	m, _ := hooks.Elements(theirs)
	longer := len(mine) == len(theirs) && len(mine) > 1 && mine[0] > theirs[0] && slices.Equal(mine[1:], theirs[1:])
	if longer || n == m && slices.Equal(squeezed(mine), squeezed(theirs)) {
		return theirs
	}
	return mine
}

// HeadSource is where a port has a head of its own, by [Result.OwnHead], as the tensor lm_head.weight that the original lacks: in the shape
// of the original's embedding.
func HeadSource(local, original Side, name string) (s Source, ok bool) {
	head := slices.IndexFunc(local.Tensors, func(t *Tensor) bool { return t.key() == name })
	embedding := slices.IndexFunc(original.Tensors, func(t *Tensor) bool { return plainName(t.key()) == spelling.Embedding })
	if head < 0 || embedding < 0 {
		return s, false
	}
	shape := original.Tensors[embedding].Shape
	return Source{Original: &Tensor{Name: spelling.Head, Shape: shape}, Parts: []Part{{local.Tensors[head], shape}}}, true
}

// Sources says where the port has each tensor of the original, by the names that [Compare] goes by, in the original's order. missing are
// the names of those that it has nowhere; towers that it leaves out whole, and what is computed from the configuration, are in neither.
// Nothing is read: what the elements are, Compare says.
func Sources(local, original Side) (list []Source, missing []string, err error) {
	c := &comparison{o: &Options{}, originals: original.Tensors, byName: map[string]*Tensor{}}
	jobs, err := c.plan(local, &Result{})
	if err != nil {
		return nil, nil, err
	}
	at := map[*Tensor]int{}
	for _, j := range jobs {
		switch {
		case j.original == nil || j.name != "": // the port's own, or its copy of a tensor that the original has once
			continue
		case j.local == nil:
			missing = append(missing, j.original.key())
			continue
		}
		whole := cmp.Or(j.original.part.of, j.original)
		k, known := at[whole]
		if !known {
			k = len(list)
			at[whole] = k
			list = append(list, Source{Original: whole})
		}
		list[k].Parts = append(list[k].Parts, Part{j.local, j.original.Shape})
	}
	return list, missing, nil
}
