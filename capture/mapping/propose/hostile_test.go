package propose_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
)

// A proposal for a hostile dump ends, and offers what it can.
func TestProposalsForHostileDumps(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	r, same := mappingtest.Raw(t, trace, 0, "embed_tokens")
	filled := func(name string, x float32, shape ...int) capture.Source {
		s := mappingtest.Counted(name, 0, 0, shape...)
		n, _ := hooks.Elements(shape)
		data := bytes.Repeat([]byte{byte(math.Float32bits(x)), byte(math.Float32bits(x) >> 8), byte(math.Float32bits(x) >> 16), byte(math.Float32bits(x) >> 24)}, n)
		s.Data = bytes.NewReader(data)
		return s
	}
	some := func(n int, each func(i int) capture.Source) []capture.Source {
		list := []capture.Source{mappingtest.IDs(0, r.Shape[1])}
		for i := range n {
			list = append(list, each(i))
		}
		return list
	}
	shape := r.Shape[1:]
	for _, c := range []struct {
		name    string
		sources []capture.Source
	}{
		{"the reference's tensor, many times", some(2000, func(i int) capture.Source {
			s := mappingtest.Counted(fmt.Sprintf("x%dy", 1000+i), 0, 0, shape...)
			s.Data = bytes.NewReader(same)
			return s
		})},
		{"many tensors of one shape", some(2000, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), 1, shape...) })},
		{"NaN everywhere", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), float32(math.NaN()), shape...) })},
		{"infinities", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), float32(math.Inf(1)), shape...) })},
		{"zeros", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), 0, shape...) })},
		{"no elements", some(50, func(i int) capture.Source { return mappingtest.Counted(fmt.Sprintf("x%d", i), 0, 0, 1, 0, 1<<40) })},
		{"no floats", some(50, func(i int) capture.Source { s := mappingtest.IDs(0, 16); s.Name = fmt.Sprintf("x%d", i); return s })},
		{"many axes", some(50, func(i int) capture.Source {
			ones := make([]int, 2000)
			for i := range ones {
				ones[i] = 1
			}
			return filled(fmt.Sprintf("x%d", i), 1, append(ones, shape...)...)
		})},
		{"names of numbers", some(50, func(i int) capture.Source { return filled(strings.Repeat(fmt.Sprintf("%d.", i), 1<<11), 1, shape...) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			p, text := proposed(t, mappingtest.Assembled(t, c.sources...), list, trace)
			if d := time.Since(start); d > time.Minute { // a second where nothing else runs
				t.Error(d)
			}
			copies := strings.HasPrefix(c.name, "the reference's") // all but two are left out
			if len(p.Lines) > 0 != copies || p.Open() == 0 != copies {
				t.Errorf("%.2000s", text)
			}
			if n := strings.Count(text, "\n"); copies && n > 60 {
				t.Errorf("%d lines for copies:\n%.6000s", n, text)
			}
			if _, err := mapping.Parse("map.toml", []byte(text+"\nx = 'y'\n")); err != nil {
				t.Errorf("%v\n%.2000s", err, text)
			}
		})
	}
}

// Names that no map has lines for get no proposal.
func TestMoreNamesThanLines(t *testing.T) {
	_, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	sources := []capture.Source{mappingtest.IDs(0, 10)}
	for i := range 5000 {
		sources = append(sources, mappingtest.Counted(fmt.Sprintf("x%d", i), 0, 0, 10, 16))
	}
	trace := mappingtest.Assembled(t, sources...)
	_, err := propose.Map(t.Context(), trace, trace, list, nil, propose.Options{})
	if next, _ := hint.Of(err); err == nil || err.Error() != "the names need 5000 lines, and a map has at most 4096" || !strings.Contains(next, "the number of the layer") {
		t.Error(err)
	}
}

// A name with # is proposed as it is read again.
func TestNamesWithHash(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	r, data := mappingtest.Raw(t, trace, 0, "norm")
	_, text := proposed(t, mappingtest.Assembled(t, mappingtest.IDs(0, r.Shape[1]), capture.Source{Key: "last#of#all", Name: "last#of#all", DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}), list, trace)
	if _, err := mapping.Parse("map.toml", []byte(text)); err != nil || !strings.Contains(text, `"last##of##all" = "norm"`) {
		t.Errorf("%v\n%s", err, text)
	}
}
