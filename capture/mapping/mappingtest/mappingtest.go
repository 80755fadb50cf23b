// Package mappingtest makes dumps in the manner of ports, from recorded models: with names and layouts of their own, and with mistakes. Tests
// propose maps for the dumps, apply the maps, and compare the results.
package mappingtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

// Model is a recorded program among the fixtures.
type Model struct {
	File string
	List *order.List // with the steps that have no name

	Passes []recorded.Pass
}

// Models are those of the folder of fixtures/programs.
func Models(t testing.TB, folder string) (all []Model) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.program.json"))
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := recorded.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		list, err := order.Recorded(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Model{file, list, p.Passes})
	}
	return all
}

// largest bounds the elements of a tensor of a run.
const largest = 1 << 14

// Run has numbers of no meaning in the shapes of a model's entries, of its first passes: a run as maps and layouts see it.
func (m *Model) Run(r *rand.Rand) []capture.Source {
	var all []capture.Source
	list := m.List.Named()
	for i, p := range m.Passes[:1+r.IntN(len(m.Passes))] {
		for at := range list.Entries {
			e := list.At(order.Node{Entry: at, Pass: i})
			if e == nil {
				continue
			}
			shape := e.Size(order.Pass{Past: p.Past, Tokens: p.Tokens}, 0)
			n, ok := hooks.Elements(shape)
			if !ok || n > largest {
				continue
			}
			s := capture.Source{Key: capture.Key(i, e.Name, 0), Name: e.Name, Pass: i, DType: hooks.F32, Shape: shape}
			var data []byte
			if d := e.DTypeOf(hooks.F32); !d.Float() {
				s.DType = hooks.I64
			}
			for range n {
				x := 0.0
				if s.DType == hooks.I64 {
					x = float64(r.IntN(50))
				} else {
					x = r.NormFloat64()
				}
				data = floats.Append(data, s.DType, x)
			}
			s.Data = bytes.NewReader(data)
			all = append(all, s)
		}
	}
	return all
}

type spoiler struct{ *rand.Rand }

func (r spoiler) chance(of int) bool { return r.IntN(of) == 0 }

// Dump is a port's dump of a run: with its own names, other layouts, and mistakes.
func Dump(rng *rand.Rand, run []capture.Source) []capture.Source {
	r := spoiler{rng}
	style, mistakes := r.IntN(5), 1+r.IntN(60)
	last, unbatched, permuted := r.chance(3), r.chance(2), r.chance(2)
	var out []capture.Source
	for _, s := range run {
		if r.chance(6) || s.Name == "position_ids" && r.chance(2) {
			continue
		}
		s.Shape = slices.Clone(s.Shape)
		if ids := s.Name == order.InputIDs; !ids {
			s.Name = r.name(style, s.Name)
			if unbatched && len(s.Shape) > 1 && s.Shape[0] == 1 {
				s.Shape = s.Shape[1:]
			}
			if last && strings.Contains(s.Name, "logits") && len(s.Shape) > 1 {
				s = rowOf(s)
			}
			if permuted && len(s.Shape) > 2 {
				s = swappedAxes(s)
			}
		}
		if r.chance(mistakes) {
			s = r.mistake(s)
		}
		s.Key = capture.Key(s.Pass, s.Name, s.Firing)
		if slices.ContainsFunc(out, func(o capture.Source) bool { return o.Key == s.Key }) {
			continue
		}
		out = append(out, s)
	}
	return out
}

func (r spoiler) name(style int, name string) string {
	switch style {
	case 1:
		return "model." + name
	case 2:
		return strings.NewReplacer("layers.", "h", ".", "/").Replace(name)
	case 3:
		return strings.NewReplacer("self_attn", "attention", "mlp", "ffn", "proj", "w").Replace(name)
	case 4:
		return "stage0/" + strings.ReplaceAll(name, ".", "_")
	}
	return name
}

// rowOf is the last row of a tensor of rows.
func rowOf(s capture.Source) capture.Source {
	n, _ := hooks.Elements(s.Shape)
	width := s.Shape[len(s.Shape)-1] * s.DType.Size()
	if n == 0 {
		return s
	}
	data := make([]byte, width)
	if _, err := s.Data.ReadAt(data, int64(n*s.DType.Size()-width)); err != nil {
		return s
	}
	s.Shape, s.Data = s.Shape[len(s.Shape)-1:], bytes.NewReader(data)
	return s
}

// swappedAxes has the first two axes the other way.
func swappedAxes(s capture.Source) capture.Source {
	n, _ := hooks.Elements(s.Shape)
	if n == 0 {
		return s
	}
	a, b := s.Shape[0], s.Shape[1]
	inner := n / a / b * s.DType.Size()
	data, out := make([]byte, n*s.DType.Size()), []byte(nil)
	if _, err := s.Data.ReadAt(data, 0); err != nil {
		return s
	}
	for j := range b {
		for i := range a {
			out = append(out, data[(i*b+j)*inner:][:inner]...)
		}
	}
	s.Shape[0], s.Shape[1] = b, a
	s.Data = bytes.NewReader(out)
	return s
}

// mistake is a tensor of another size, type or name.
func (r spoiler) mistake(s capture.Source) capture.Source {
	switch r.IntN(7) {
	case 0:
		s.Shape = nil
	case 1:
		if len(s.Shape) > 0 {
			s.Shape[r.IntN(len(s.Shape))] = r.IntN(4)
		}
	case 2:
		s.Shape = append([]int{1 + r.IntN(2)}, s.Shape...)
	case 3:
		n, _ := hooks.Elements(s.Shape)
		s.Shape = []int{n}
	case 4:
		s.Name += fmt.Sprint(r.IntN(3))
	case 5:
		s.Firing++
	case 6:
		s.DType = []hooks.DType{hooks.I32, hooks.BF16, hooks.Bool}[r.IntN(3)]
	}
	n, _ := hooks.Elements(s.Shape)
	data := make([]byte, n*s.DType.Size())
	if s.DType != hooks.Bool {
		for i := range data {
			data[i] = byte(r.Uint32())
		}
	}
	s.Data = bytes.NewReader(data)
	return s
}
