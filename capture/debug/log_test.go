package debug_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		own, general string
		want         bool
	}{
		{"", "", false},
		{"1", "", true},
		{"TRUE", "", true},
		{"yEs", "", true},
		{"on", "", true},
		{"", "On", true},
		{"off", "1", false},
		{"maybe", "1", false},
		{"", "1", true},
		{"", "Yes", true},
		{"", "express:*", false},
		{"", "2", false},
		{"", "truee", false},
		{"0", "1", false},
		{"no", "true", false},
	} {
		env := func(name string) string { return map[string]string{"TRACEDIFF_DEBUG": c.own, "DEBUG": c.general}[name] }
		if got := debug.Wanted(env); got != c.want {
			t.Errorf("TRACEDIFF_DEBUG=%q DEBUG=%q: %v", c.own, c.general, got)
		}
	}
	for text, want := range map[string]int{"": 0, "x": 0, "-1": 0, "7": 7, "0": 0, "99999999999": 0} {
		if got := debug.PassesWanted(func(string) string { return text }); got != want {
			t.Errorf("TRACEDIFF_DEBUG_PASSES=%q: %d, want %d", text, got, want)
		}
	}
}

// Off, it is not even asked: what records a tensor is the very function that recorded it before.
func TestOffIsFree(t *testing.T) {
	var off *debug.Log
	write := func(hooks.Event) error { return nil }
	if reflect.ValueOf(off.Around(write)).Pointer() != reflect.ValueOf(write).Pointer() {
		t.Error("a nil log stands between the model and its recorder")
	}
	off.End()
}

// What the writer takes is no time of the model's, and its error is the run's.
func TestAround(t *testing.T) {
	var out bytes.Buffer
	log := debug.New(&out, debug.Options{Side: "local"})
	now := time.UnixMicro(0)
	log.SetClock(func() time.Time { return now })
	full := errors.New("the disk is full")
	var fail error
	observe := log.Around(func(hooks.Event) error {
		now = now.Add(time.Hour)
		return fail
	})
	for i := range 3 {
		if i == 2 {
			fail = full
		}
		err := observe(hooks.Event{Name: "layers.0.out", Tensor: tensor(hooks.F32, nil, float64(i))})
		if !errors.Is(err, fail) {
			t.Fatalf("error %v, want %v", err, fail)
		}
		now = now.Add(time.Millisecond)
	}
	log.End()
	if got := regexp.MustCompile(` ms=\S+`).FindAllString(out.String(), 3); !cmp.Equal(got, []string{" ms=0.000", " ms=1.000", " ms=1.000"}) {
		t.Errorf("times of the tensors: %q", got)
	}
	for _, want := range []string{"debug: begin side=local passes=3 ", "max=2 ", "ms=2.000 hooks_ms=10800000.000\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMalformed(t *testing.T) {
	var out bytes.Buffer
	log := debug.New(&out, debug.Options{})
	if err := log.Observe(hooks.Event{Name: "x", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 7)}}); err == nil {
		t.Error("a tensor with too few bytes is shown")
	}
	log.End()
	if strings.Contains(out.String(), "tensor pass") {
		t.Error(out.String())
	}
}

// Ids are listed at the positions that were asked for, all of them, and count on where the pass starts.
func TestPositions(t *testing.T) {
	ids := tensor(hooks.I64, []int{1, 40}, make([]float64, 40)...)
	first := func(pass int) hooks.Event { return hooks.Event{Name: "input_ids", Pass: pass, Tensor: ids} }
	list := func(o debug.Options, all ...hooks.Event) []string {
		found := regexp.MustCompile(`(?:position=|text=").*`).FindAllString(show(t, o, all), -1)
		for i, text := range found {
			found[i] = strings.TrimSuffix(text, " id=0")
		}
		return found
	}
	got := list(debug.Options{Positions: capture.Ranges{{From: 38, To: 41}}}, first(0), first(1))
	want := []string{
		"position=38", "position=39", `text="38 more tokens are not listed"`,
		"position=40", "position=41", `text="38 more tokens are not listed"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := list(debug.Options{Positions: capture.Ranges{{From: 0, To: capture.NoEnd}}}, first(0)); len(got) != 40 {
		t.Errorf("of 40 ids %d lines: %q", len(got), got)
	}
	if got := list(debug.Options{Passes: 4, Starts: []int{0, 0, 0, 700}}, first(3)); got[0] != "position=700" || len(got) != debug.Tokens+1 {
		t.Errorf("%d lines, the first %q", len(got), got[0])
	}
}

// Of numbers whose squares do not fit there is a mean, and no standard deviation.
func TestSumsThatOverflow(t *testing.T) {
	for want, x := range map[string][]float64{
		" mean=3.33333e+307 std=- ": {1e308, 1e308, -1e308},
		" mean=0 std=- ":            {1.7e308, -1.7e308},
	} {
		if out := show(t, debug.Options{}, []hooks.Event{{Name: "x", Tensor: tensor(hooks.F64, []int{len(x)}, x...)}}); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The names of all steps of a forward have a section, and a name with a layer has that layer's.
func TestSection(t *testing.T) {
	for name, want := range map[string]string{
		"input_ids": "input", "position_ids": "input", "mask.sliding": "mask", "attention_mask": "mask", "embed_tokens": "embedding",
		"per_layer_inputs": "embedding", "altup.init": "embedding", "rotary.full.cos": "rotary", "layers.12.mlp.act_fn": "layer.12",
		"layers.3": "layer.3", "layers.a": "layers", "altup.final.mean": "final", "norm": "final", "lm_head": "logits", "logits": "logits",
		"loss": "loss", "grad/layers.0.mlp": "gradients", "refine.state.step.7": "step.7", "layers.2.x.step.0": "step.0", ".step.0": "-",
		"vision.patch": "vision", "vision": "vision", "": "-",
	} {
		if got := debug.Section(name); got != want {
			t.Errorf("%q is in section %q, want %q", name, got, want)
		}
	}
}

// A decode of many passes is a line each after the first ones, and so is a layer, and the log says so once; all that is left
// out is counted.
func TestManyPasses(t *testing.T) {
	var all []hooks.Event
	for pass := range 100 {
		for i := range 30 {
			all = append(all, hooks.Event{Name: fmt.Sprintf("layers.%d.out", i), Pass: pass, Tensor: tensor(hooks.F32, []int{2}, 1, 2)})
		}
	}
	out := show(t, debug.Options{Passes: 2, Layers: 4}, all)
	counts := map[string]int{}
	for line := range strings.Lines(out) {
		counts[strings.Fields(line)[1]]++
	}
	want := map[string]int{"begin": 1, "tensor": 8, "section": 60, "pass": 100, "note": 2, "slowest": 5, "end": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out, "debug: end passes=100 short=98 tensors=3000 ") {
		t.Error(out[strings.LastIndex(out, "debug:"):])
	}
}

// BenchmarkObserve is the cost of one tensor, where the lines go nowhere.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{64, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log := debug.New(io.Discard, debug.Options{})
			e := hooks.Event{Name: "layers.3.out", Tensor: tensor(hooks.BF16, []int{n}, make([]float64, n)...)}
			b.SetBytes(int64(len(e.Tensor.Data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := log.Observe(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A model of 35 layers with every tensor captured, its prompt and four decode steps, is hundreds of lines.
func TestFullSizeIsHundredsOfLines(t *testing.T) {
	config, err := order.ReadConfig([]byte(`{"model_type": "gemma3n_text", "num_hidden_layers": 35}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var all []hooks.Event
	for pass := range 5 {
		for i := range list.Entries {
			x := tensor(hooks.F32, []int{1, 2}, 1, 2)
			if list.Entries[i].Name == order.InputIDs {
				x = tensor(hooks.I64, []int{1, 500}, make([]float64, 500)...)
			}
			all = append(all, hooks.Event{Name: list.Entries[i].Name, Pass: pass, Tensor: x})
		}
	}
	lines := strings.Count(show(t, debug.Options{}, all), "\n")
	if lines < 300 || lines >= 800 || len(all) < 9000 {
		t.Errorf("%d lines of %d tensors", lines, len(all))
	}
}
