package redflag_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// foreign opens a file of another writer, with its tensors in the order of their keys, as the safetensors package has them.
func foreign(t *testing.T, tensors map[string]hooks.Tensor) *capture.Trace {
	t.Helper()
	var list []checkpointtest.Tensor
	for key, x := range tensors {
		list = append(list, checkpointtest.Tensor{Name: key, Tensor: x})
	}
	slices.SortFunc(list, func(a, b checkpointtest.Tensor) int { return strings.Compare(a.Name, b.Name) })
	file := checkpointtest.File(list)
	trace, err := capture.OpenReader("foreign", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// A loss that falls in every step is healthy, although pass10/ comes before pass2/ in the file.
func TestLossesAreReadInTheOrderOfSteps(t *testing.T) {
	losses := map[string]hooks.Tensor{}
	for step := range 12 {
		losses[capture.Key(step, "loss", 0)] = tensor(hooks.F32, nil, []float64{2 - float64(step)/10})
	}
	r := check(t, foreign(t, losses), redflag.Options{})
	for _, f := range r.Flags {
		t.Errorf("a loss that falls: %s: %s", f.Kind, f.What)
	}
	for step := range 12 { // and one that falls in the first three steps alone is not
		losses[capture.Key(step, "loss", 0)] = tensor(hooks.F32, nil, []float64{max(2-float64(step)/10, 1.7)})
	}
	r = check(t, foreign(t, losses), redflag.Options{})
	if len(r.Flags) != 1 || r.Flags[0].Kind != redflag.LossPlateau || r.Flags[0].Pass != 6 {
		t.Errorf("a loss that stands still: %+v", r.Flags)
	}
}

// Logits without a row are nothing to look at.
func TestNothingIsLookedForInNoRows(t *testing.T) {
	trace := foreign(t, map[string]hooks.Tensor{
		"input_ids": {DType: hooks.I64, Shape: []int{1, 0}}, "logits": {DType: hooks.F32, Shape: []int{1, 0, 7}},
	})
	for _, l := range check(t, trace, redflag.Options{}).Looked {
		if l.Tensors > 0 {
			t.Errorf("%s was looked for in %d tensors", l.Kind, l.Tensors)
		}
	}
}

// A row that is there again says nothing new of the type: 6 tokens with 8 numbers each that fit by chance are no more than
// one, while 48 different ones are evidence.
func TestNumbersThatAreThereAgainAreNoEvidence(t *testing.T) {
	var again, different []float64
	for i := range 48 {
		again = append(again, 1.25+float64(i%8)/8)
		different = append(different, 1.25+float64(i)/8)
	}
	for _, tt := range []struct {
		x    []float64
		want int
	}{{again, 0}, {different, 1}} {
		r := check(t, foreign(t, map[string]hooks.Tensor{"layers.0.mlp.gate_sparse": tensor(hooks.F32, []int{1, 6, 8}, tt.x)}), redflag.Options{})
		if len(r.Flags) != tt.want {
			t.Errorf("%d flags, want %d: %+v", len(r.Flags), tt.want, r.Flags)
		}
	}
}

// pass0/ is the first pass; beside a key without it, it is a name like any other.
func TestKeysOfTheFirstPass(t *testing.T) {
	losses := map[string]hooks.Tensor{}
	for step := range 8 {
		losses[fmt.Sprintf("pass%d/loss", step)] = tensor(hooks.F32, nil, []float64{2})
		losses[fmt.Sprintf("pass%d/grad/x", step)] = tensor(hooks.F32, []int{2}, []float64{float64(min(step, 1)), math.Inf(min(step, 1))})
	}
	flags := func() (said []string) {
		for _, f := range check(t, foreign(t, losses), redflag.Options{}).Flags {
			said = append(said, fmt.Sprintf("%s %s %d, %d more", f.Kind, f.Entry, f.Pass, len(f.Also)))
		}
		return said
	}
	want := []string{"gradient-non-finite grad/x 0, 7 more", "loss-plateau loss 4, 0 more"}
	if got := flags(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	losses["loss"] = tensor(hooks.F32, nil, []float64{1})
	if got := flags(); !slices.Equal(got, want) {
		t.Errorf("with loss beside pass0/loss: got %q, want %q", got, want)
	}
}

// Numbers of float64 whose sum or squares leave float64 have no mean and no standard deviation, and none is told; nor is a
// narrower type advised.
func TestSumsBeyondFloat64(t *testing.T) {
	of := func(x ...float64) hooks.Tensor {
		var data []byte
		for _, y := range x {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(y))
		}
		return hooks.Tensor{DType: hooks.F64, Shape: []int{1, 1, len(x)}, Data: data}
	}
	tensors := map[string]hooks.Tensor{"layers.0.mlp.down_proj": of(1e308, 1e308, -1e308)}
	for step := range 8 {
		tensors[capture.Key(step, "loss", 0)] = of(1.5e308, 1e308)
	}
	r := check(t, foreign(t, tensors), redflag.Options{})
	// A mean that float64 does not hold says nothing of a plateau.
	want := map[redflag.Kind]int{redflag.Overflow: 9, redflag.NonFinite: 9, redflag.LossPlateau: 0}
	for _, l := range r.Looked {
		if n, ok := want[l.Kind]; ok && l.Tensors != n {
			t.Errorf("%s looked at %d tensors, want %d", l.Kind, l.Tensors, n)
		}
	}
	if len(r.Flags) == 0 {
		t.Error("no flag: none of their numbers is looked at")
	}
	for _, f := range r.Flags {
		if f.Kind == redflag.LossPlateau || strings.Contains(f.What, "NaN") {
			t.Errorf("%s: %s", f.Kind, f.What)
		}
		if !strings.Contains(f.Try, "in a float16 model") && f.Kind == redflag.Overflow {
			t.Errorf("%s of float64: %s", f.Kind, f.Try)
		}
		for _, n := range f.Numbers {
			if x := float64(n.Value); math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s: %s is %v", f.Kind, n.Name, x)
			}
		}
	}
}

// The slots of a cache behind the tokens that were fed may be zero; a slot of a token may not, nor one among others that are
// written.
func TestFreeSlotsOfACache(t *testing.T) {
	ids := hooks.Tensor{DType: hooks.I64, Shape: []int{1, 3}, Data: make([]byte, 24)}
	for _, tt := range []struct {
		what    string
		written [2][6]float64 // by head and slot
		ids     bool
		want    string // how the flag begins
	}{
		{"free slots", [2][6]float64{{1, 2, 3}, {4, 5, 6}}, true, ""},
		{"free slots without ids", [2][6]float64{{1, 2, 3}, {4, 5, 6}}, false, "6 of 12 vectors"},
		{"the last token is not written", [2][6]float64{{1, 2}, {4, 5}}, true, "2 of 6 vectors are all zero, the first at [0,0,2]: position 2 of 6"},
		{"a slot among others", [2][6]float64{{1, 2, 3, 7, 8, 9}, {4, 5, 6, 1, 0, 2}}, true, "1 of 12 vectors are all zero, the first at [0,1,4]: position 4 of 6"},
	} {
		var x []float64
		for _, head := range tt.written {
			for _, y := range head {
				x = append(x, y/3, 2*y/7)
			}
		}
		tensors := map[string]hooks.Tensor{"layers.0.self_attn.keys": tensor(hooks.F32, []int{1, 2, 6, 2}, x)}
		if tt.ids {
			tensors["input_ids"] = ids
		}
		got := ""
		for _, f := range check(t, foreign(t, tensors), redflag.Options{}).Flags {
			got += f.What
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
