package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order"
)

// ofLayer adds a layer to the name of a relation with rows of another tensor. It adds the layer if all entries have rows of one layer, and the
// distance to the layer if the distance is the same for all entries. Otherwise the name stays as it is.
func ofLayer(s *search, name Name) (Name, error) {
	r := name.Relation
	if r.Kind != "rows.of-another" || r.By.Kind != RowsOf {
		return name, nil
	}
	var from []string
	before := 0
	for n, e := range s.entries {
		source, err := layerWithRows(s, e, r.By)
		if source == "" || err != nil {
			return name, err
		}
		own := s.m.List.Entries[e.Node.Entry].Name
		by := order.NameOf(own).Number() - order.NameOf(source).Number()
		if n > 0 && by != before {
			before = 0
		} else {
			before = by
		}
		from = append(from, source)
	}
	switch {
	case len(slices.Compact(from)) == 1:
		r.By.Name = from[0]
	case before > 0:
		r.K = before
	default:
		return name, nil
	}
	return r.name(), nil
}

// ofAllLayers renames the right tensor of a mistake in several layers. The mistake has the name in the first layer, and ofAllLayers puts the role for
// any layer in its place: the first layer reads embed_tokens, and any layer reads layers.*.in.
func ofAllLayers(s *search, name Name) Name {
	m := name.Mistake
	at := s.m.List.Index(m.For.Name)
	if m.For.Kind != Tensor || at < 0 || len(layersOf(s, s.entries)) < 2 {
		return name
	}
	if m.For.Name = order.NameOf(s.m.handedOn(s.first, at)).Role(); m == name.Mistake {
		return name
	}
	all := m.name()
	all.Fields, all.Equal, all.Value, all.Right = name.Fields, name.Equal, name.Value, name.Right
	return all
}

// layerWithRows returns the tensor of a role that has all unexplained rows of an entry. If several layers have such a tensor, the nearest layer
// before the entry counts. The name is empty if no layer has the rows, or if the entry's own layer has the rows.
func layerWithRows(s *search, e *Entry, of Term) (source string, err error) {
	pass := e.Node.Pass
	if of.Before {
		pass--
	}
	y, _ := e.Target()
	width := e.Program.Out.Last()
	own := order.NameOf(s.m.List.Entries[e.Node.Entry].Name)
	for k := range s.m.List.Entries {
		other := order.NameOf(s.m.List.Entries[k].Name)
		n := order.Node{Entry: k, Pass: pass}
		if !other.Within() || other.Role() != of.Name || n == e.Node || !of.Before && k > e.Node.Entry || !s.m.Has(n) {
			continue
		}
		v, err := s.m.Read(n)
		if err != nil {
			return "", err
		}
		rows := map[uint64][]int{}
		for r := range len(v.Data) / width {
			at := begins(v.Data[r*width:][:width])
			rows[at] = append(rows[at], r)
		}
		has := func(r int) bool {
			row := y[r*width:][:width]
			return slices.ContainsFunc(rows[begins(row)], func(o int) bool { return slices.Equal(row, v.Data[o*width:][:width]) })
		}
		if slices.ContainsFunc(leftRows(e), func(r int) bool { return !has(r) }) {
			continue
		}
		if other.SameLayer(own) {
			return "", nil
		}
		source = other.String()
	}
	return source, nil
}
