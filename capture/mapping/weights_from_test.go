package mapping_test

import (
	"bytes"
	"testing"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/hooks"
)

// TestWeightsKeepTheNumberOfTheirTensor: a list that a map has sorted anew may be given to another map.
func TestWeightsKeepTheNumberOfTheirTensor(t *testing.T) {
	m, err := mapping.Parse("map", []byte("[weights]\n\"a\" = { to = \"b\", axes = \"r c -> c r\" }\n"))
	if err != nil {
		t.Fatal(err)
	}
	weight := func(name string, from int) mapping.Weight {
		return mapping.Weight{Name: name, Key: name, DType: hooks.F32, Shape: []int{1, 2}, Data: bytes.NewReader(make([]byte, 8)), From: from}
	}
	list, err := m.Weights("port", []mapping.Weight{weight("a", 7), weight("c", 3)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		if want := map[string]int{"b": 7, "c": 3}[w.Name]; w.From != want {
			t.Errorf("%s is made of tensor %d, want %d", w.Name, w.From, want)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d weights", len(list))
	}
}
