package propose_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/order"
)

// counted renames the tensors of a port. A class of modules is counted through the model, as norm, norm_1, norm_2; with one class for all, nothing is left of the names.
func counted(t *testing.T, dump *capture.Trace, class func(own string) string) (again *capture.Trace, was map[string]string) {
	t.Helper()
	own := map[string]string{}
	for _, names := range ownNames {
		own[names[0]] = names[1]
	}
	count, all := map[string]int{}, slices.Clone(dump.Sources())
	was = map[string]string{}
	for i := range all {
		name := all[i].Name
		if name == order.InputIDs {
			continue
		}
		pattern, layer := name, ""
		if parts := strings.Split(name, "."); len(parts) > 2 {
			layer, parts[1] = parts[1], "{L}"
			pattern = strings.Join(parts, ".")
		}
		of := class(pattern)
		now := of
		if n := count[of]; n > 0 {
			now = fmt.Sprintf("%s_%d", of, n)
		}
		count[of]++
		was[now] = strings.ReplaceAll(own[pattern], "{L}", layer)
		all[i].Name, all[i].Key = now, now
	}
	return mappingtest.Assembled(t, all...), was
}

// Names that have no layers are told by values, and behind a mistake by what the port computes them from. Each line is right.
func TestNamesWithoutLayers(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	scaled := func(x []float64, _ func(string) []float64) {
		for i := range x {
			x[i] *= 1.7
		}
	}
	turned := func(x []float64, _ func(string) []float64) { slices.Reverse(x) }
	classes := map[string]func(own string) string{
		"one class": func(string) string { return "tensor" },
		"classes": func(own string) string {
			switch part := own[strings.LastIndexByte(own, '.')+1:]; {
			case strings.HasPrefix(part, "norm") || part == "qn" || part == "kn":
				return "rms_norm"
			case strings.HasSuffix(part, "_rot"):
				return "rotary"
			case slices.Contains([]string{"q", "k", "v", "out", "g", "u", "down"}, part):
				return "linear"
			default:
				return part
			}
		},
	}
	for _, c := range []struct {
		spoilt string
		spoil  func(x []float64, of func(string) []float64)
	}{
		{"", nil},
		{"layers.{L}.input_layernorm", scaled},
		{"layers.{L}.self_attn.context", turned},
		{"layers.{L}.self_attn.o_proj", turned},
		{"layers.{L}.mlp.down_proj", turned},
	} {
		dump, weights := wrongPort(t, "gemma3-tiny", trace, list, c.spoilt, c.spoil)
		for name, class := range classes {
			t.Run(c.spoilt+" "+name, func(t *testing.T) {
				dump, was := counted(t, dump, class)
				p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
				if err != nil {
					t.Fatal(err)
				}
				found := 0
				for _, l := range p.Lines {
					for layer := range list.Config.NumLayers {
						number := fmt.Sprint(layer)
						from, to := strings.ReplaceAll(l.From, "{L}", number), strings.ReplaceAll(strings.Join(l.To, " "), "{L}", number)
						if _, is := was[from]; !is && from != l.From { // mix_1 and mix_2 are of layers, and mix is another
							continue
						}
						if was[from] != to {
							t.Errorf("%s is %s, want %s: %s", from, to, was[from], l.Why)
						}
						if found++; from == l.From {
							break
						}
					}
				}
				if p.Open() > 0 || found != len(was) {
					t.Errorf("%d of %d tensors have a line, left: %v", found, len(was), p.Left)
				}
			})
		}
	}
}

// A tensor that is no entry is no guess, however near its numbers are to an entry that nobody dumped: what is computed from the entry contradicts it.
func TestANearTensorIsNoGuess(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, weights := wrongPort(t, "gemma3-tiny", trace, list, "", nil)
	r, data := mappingtest.Raw(t, trace, 0, "layers.1.attn_residual")
	for at := 0; at < len(data); at += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
		binary.LittleEndian.PutUint32(data[at:], math.Float32bits(x*1.1))
	}
	all := slices.Clone(dump.Sources())
	at := slices.IndexFunc(all, func(s capture.Source) bool { return s.Name == "blocks.1.norm_c" })
	extra := mappingtest.Assembled(t, slices.Insert(all, at, capture.Source{Key: "seen", Name: "seen", DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})...)
	p, err := propose.Map(t.Context(), extra, extra, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Lines) != len(ownNames) || !slices.Equal(p.Others, []string{"seen"}) || p.Open() > 0 {
		t.Errorf("%d lines, others %v, left %v", len(p.Lines), p.Others, p.Left)
	}
}

// Hidden states end with the output of the last norm. Those behind a mistake go on with the count, as a guess.
func TestHiddenStatesEndWithTheNorm(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	last := list.Config.NumLayers
	states := func(factor float32) *capture.Trace {
		all := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0), copied(t, trace, "h0", "embed_tokens", 0)}
		for n := 1; n < last; n++ {
			r, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.out", n-1))
			for at := 0; n > 1 && at < len(data); at += 4 {
				x := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
				binary.LittleEndian.PutUint32(data[at:], math.Float32bits(x*factor))
			}
			name := fmt.Sprintf("h%d", n)
			all = append(all, capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
		}
		return mappingtest.Assembled(t, append(all, copied(t, trace, fmt.Sprintf("h%d", last), "norm", 0))...)
	}
	for factor, by := range map[float32]string{1: " # values", 1.2: ""} {
		p, text := proposed(t, states(factor), list, trace)
		if p.Open() > 0 || len(p.Lines) != last+1 || !strings.Contains(text, fmt.Sprintf(`"h%d" = "norm" # values`, last)) {
			t.Error(text)
		}
		for n := 2; n < last; n++ {
			want := fmt.Sprintf(`"h%d" = "layers.%d.out"%s`, n, n-1, by)
			if by == "" {
				want = fmt.Sprintf(`"h%d" = { to = "layers.%d.out", by = "guess" }`, n, n-1)
			}
			if !strings.Contains(text, want) {
				t.Errorf("it lacks %s:\n%s", want, text)
			}
		}
	}
}
