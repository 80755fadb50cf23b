package arithmetic_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// recordedRope is a recorded program whose frequencies are those of a rotary embedding, with what else a recording has left out of sight.
func recordedRope(t *testing.T, r testengine.Rope) *order.List {
	t.Helper()
	text, err := os.ReadFile("../../fixtures/programs/qwen3-tiny.float32.program.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for j := range r.Dim / 2 { // as torch makes them: a power, and its reciprocal
		inv := in32(1 / in32(math.Pow(r.Theta, in32(float64(2*j)/float64(r.Dim)))))
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(r.Scaled(inv))))
	}
	sum := sha256.Sum256(data)
	buffer := all["weights"].(map[string]any)["model.rotary_emb.inv_freq"].(map[string]any)
	buffer["data"], buffer["sha256"] = base64.StdEncoding.EncodeToString(data), hex.EncodeToString(sum[:])
	if text, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	p, err := recorded.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// yarnOf is YaRN's scaling of a frequency: one that turns fast stays, one that turns slowly is divided by the factor, and between two numbers of
// pairs the share goes by the number, every step rounded to float32.
func yarnOf(theta float64, dim int, factor, length float64) func(float64) float64 {
	pair := func(turns float64) float64 {
		return float64(dim) * math.Log(length/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := max(math.Floor(pair(32)), 0), min(math.Ceil(pair(1)), float64(dim-1))
	return func(inv float64) float64 {
		j := math.Round(-math.Log(inv) * float64(dim) / (2 * math.Log(theta)))
		slow := in32(min(max((j-low)/(high-low), 0), 1))
		return in32(in32(in32(inv/factor)*slow) + in32(inv*in32(1-slow)))
	}
}

// The frequencies of a recorded program are constants, of a scaling that no order has, such as YaRN's, too. A table that is right has no mistake, in
// whichever way an engine made it; one of other frequencies has.
func TestWaysOfRecordedTables(t *testing.T) {
	const dim, tokens = 12, 10
	yarn := ropeOf(1e4, dim, yarnOf(1e4, dim, 4, 4096))
	for _, c := range []struct {
		name  string
		right testengine.Rope
		wrong map[string]testengine.Rope
	}{
		{"no scaling", ropeOf(1e4, dim, nil), map[string]testengine.Rope{"off by 1e-3": ropeOf(10010, dim, nil), "linear": ropeOf(1e4, dim, testengine.LinearScaling(4))}},
		{"linear", ropeOf(1e4, dim, testengine.LinearScaling(4)), map[string]testengine.Rope{"no scaling": ropeOf(1e4, dim, nil), "another factor": ropeOf(1e4, dim, testengine.LinearScaling(8))}},
		{"YaRN", yarn, map[string]testengine.Rope{
			"off by 1e-3": ropeOf(10010, dim, yarn.Scaling), "no scaling": ropeOf(1e4, dim, nil), "linear": ropeOf(1e4, dim, testengine.LinearScaling(4)), "another factor": ropeOf(1e4, dim, yarnOf(1e4, dim, 8, 4096)),
		}},
	} {
		list := recordedRope(t, c.right)
		certs := func(k testengine.Turner, l testengine.Library, r testengine.Rope, last int) (all []*isolate.Certificate) {
			places := placesTo(last, tokens)
			var ids, at []float64
			for i, p := range places {
				ids, at = append(ids, float64(i+3)), append(at, float64(p))
			}
			event := func(name string, sin bool) hooks.Event {
				var values []float64
				for _, x := range k.Table(l, r, places, sin) {
					values = append(values, float64(x))
				}
				return testengine.Fire(name, hooks.F32, []int{1, tokens, dim}, values...)
			}
			trace := testengine.Build(t, testengine.Manifest("local", hooks.F32), testengine.Fire("input_ids", hooks.I64, []int{1, tokens}, ids...), testengine.Fire("position_ids", hooks.I64, []int{1, tokens}, at...),
				event("rotary.cos", false), event("rotary.sin", true))
			i, err := compare.NewIsolator(trace, list, func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }, isolate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"rotary.cos", "rotary.sin"} {
				c, err := i.Certify(context.Background(), name, 0)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			return all
		}
		for _, k := range testengine.Turners {
			for _, last := range []int{tokens - 1, 600, 30_000} {
				about := fmt.Sprintf("%s, %s, to position %d", c.name, k.Name, last)
				for _, l := range libraries {
					for _, cert := range certs(k, l, c.right, last) {
						if !cert.Good() {
							t.Errorf("%s: %s, %d elements outside, %s", about, cert.Outcome, cert.Outside, cert.Arithmetic)
						}
					}
				}
				for name, r := range c.wrong {
					if sin := certs(k, libraries[1], r, last)[1]; sin.Outcome != isolate.Bug {
						t.Errorf("%s, but %s: %s, %s", about, name, sin.Outcome, sin.Arithmetic)
					}
				}
			}
		}
	}
}

// in32 rounds to float32.
func in32(x float64) float64 { return float64(float32(x)) }
