package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/internal/session/doctor"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// weights DIR HOW NAME damages tensors of DIR/model.safetensors whose name ends in NAME:
// drop, zero, one, plusone, nan, huge, hot (times 2^20), normal and even (as before training), reshape (one element more on the first axis), int8, float32,
// copy (as lm_head.weight), extra (as NAME).
func weights(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(filepath.Join(args[0], "model.safetensors"))
	tensors := readWeights(ts, path)
	var out []checkpointtest.Tensor
	hit := false
	for _, t := range tensors {
		if !strings.HasSuffix(t.Name, args[2]) {
			out = append(out, t)
			continue
		}
		hit = true
		out = append(out, damage(ts, t, args[1])...)
	}
	if args[1] == "extra" {
		hit = true
		out = append(out, checkpointtest.Tensor{Name: args[2], Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{1}, Data: make([]byte, 4)}})
	}
	if !hit {
		ts.Fatalf("no tensor ends in %s", args[2])
	}
	ts.Check(os.WriteFile(path, checkpointtest.File(out), 0o666))
}

func damage(ts *testscript.TestScript, t checkpointtest.Tensor, how string) []checkpointtest.Tensor {
	switch how {
	case "drop":
		return nil
	case "zero":
		clear(t.Data)
	case "one":
		for i := 0; i < len(t.Data); i += 2 {
			binary.LittleEndian.PutUint16(t.Data[i:], 0x3f80)
		}
	case "plusone":
		for i := 0; i < len(t.Data); i += 2 {
			v := floats.FromBF16(binary.LittleEndian.Uint16(t.Data[i:]))
			binary.LittleEndian.PutUint16(t.Data[i:], floats.BF16(v+1))
		}
	case "nan":
		binary.LittleEndian.PutUint16(t.Data[2:], 0x7fc0)
	case "huge":
		binary.LittleEndian.PutUint16(t.Data[2:], floats.BF16(3e30))
	case "hot":
		for i := 0; i < len(t.Data); i += 2 {
			v := floats.FromBF16(binary.LittleEndian.Uint16(t.Data[i:]))
			binary.LittleEndian.PutUint16(t.Data[i:], floats.BF16(v*(1<<20)))
		}
	case "normal", "even":
		fill(t, how)
	case "reshape":
		row := len(t.Data) / t.Shape[0]
		t.Shape = append([]int{t.Shape[0] + 1}, t.Shape[1:]...)
		t.Data = append(t.Data, make([]byte, row)...)
	case "int8":
		t.DType, t.Data = hooks.I8, t.Data[:len(t.Data)/2]
	case "float32":
		var wide []byte
		for i := 0; i < len(t.Data); i += 2 { // a bfloat16 is the upper half of a float32
			wide = append(wide, 0, 0, t.Data[i], t.Data[i+1])
		}
		t.DType, t.Data = hooks.F32, wide
	case "copy":
		return []checkpointtest.Tensor{t, {Name: "lm_head.weight", Tensor: t.Tensor}}
	default:
		ts.Fatalf("unknown damage %q", how)
	}
	return []checkpointtest.Tensor{t}
}

// fill draws a weight as transformers does before training, or evenly as torch does.
func fill(t checkpointtest.Tensor, how string) {
	r := rand.New(rand.NewPCG(1, 2))
	bound := 1 / math.Sqrt(float64(t.Shape[len(t.Shape)-1]))
	for i := 0; i < len(t.Data); i += 2 {
		v := 0.02 * r.NormFloat64()
		if how == "even" {
			v = bound * (2*r.Float64() - 1)
		}
		binary.LittleEndian.PutUint16(t.Data[i:], floats.BF16(float32(v)))
	}
}

func readWeights(ts *testscript.TestScript, path string) []checkpointtest.Tensor {
	data, err := os.ReadFile(path)
	ts.Check(err)
	text, err := safetensors.Text(bytes.NewReader(data), int64(len(data)))
	ts.Check(err)
	h, err := safetensors.Parse(text)
	ts.Check(err)
	var tensors []checkpointtest.Tensor
	body := data[8+len(text):]
	for _, t := range h.Tensors {
		tensors = append(tensors, checkpointtest.Tensor{Name: t.Name, Tensor: hooks.Tensor{DType: t.DType, Shape: t.Shape, Data: body[t.Begin:t.End:t.End]}})
	}
	return tensors
}

// shard DIR splits DIR/model.safetensors in two, with an index.
func shard(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	single := filepath.Join(dir, "model.safetensors")
	tensors := readWeights(ts, single)
	where := map[string]string{}
	for i, part := range [][]checkpointtest.Tensor{tensors[:100], tensors[100:]} {
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		for _, t := range part {
			where[t.Name] = name
		}
		ts.Check(os.WriteFile(filepath.Join(dir, name), checkpointtest.File(part), 0o666))
	}
	index, err := json.Marshal(map[string]any{"weight_map": where})
	ts.Check(err)
	ts.Check(os.WriteFile(single+".index.json", index, 0o666))
	ts.Check(os.Remove(single))
}

// replace FILE OLD NEW replaces a text that has to be there.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(data, []byte(args[1])) {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, bytes.ReplaceAll(data, []byte(args[1]), []byte(args[2])), 0o666))
}

// With no Python anywhere the machine is as able as with one, but for --reference hf.
func TestDoctorWithoutPython(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	if code := run([]string{"tracediff", "doctor"}, nil, &out, io.Discard); code != exitMatch {
		t.Errorf("exit %d\n%s", code, out.String())
	}
	if want := "warning  python   \"python3\": not found\n                  hint: Python is needed for --reference hf and for nothing\n                        else: install Python"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// The estimate is what a capture then takes: not less, and not much more.
func TestEstimate(t *testing.T) {
	t.Chdir(t.TempDir())
	files, err := fs.Sub(ondisk.Files(), embedded)
	must(t, err)
	data, err := fs.ReadFile(files, "config.json")
	must(t, err)
	config, err := order.ReadConfig(data)
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	for _, c := range []struct {
		tokens  string
		further int
		level   int
		dtype   string
	}{
		{"2,527,876", 0, 1, "bfloat16"},
		{"2,527,876", 0, 3, "float32"},
		{"2,527,876,1,2,3,4", 5, 3, "bfloat16"}, // past the window of 4
		{"2,527,876;17;29", 2, 2, "float16"},
	} {
		var errOut bytes.Buffer
		args := []string{"tracediff", "capture", "--side", "local", "--tokens", c.tokens, "--dtype", c.dtype, "--level", fmt.Sprint(c.level), "--max-new-tokens", fmt.Sprint(c.further)}
		if code := run(args, nil, io.Discard, &errOut); code != exitMatch {
			t.Fatalf("%q: exit %d: %s", args, code, errOut.String())
		}
		info, err := os.Stat(filepath.Join(".tracediff", "local.safetensors"))
		must(t, err)
		passes, err := job.ParseTokens(c.tokens)
		must(t, err)
		dtype, err := hooks.ParseDType(c.dtype)
		must(t, err)
		got := doctor.TraceBytes(list, capture.Scope{Level: c.level}, dtype, (&job.Input{Passes: passes, Further: c.further}).Lengths())
		if ratio := float64(got) / float64(info.Size()); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("%+v: estimated %d, it takes %d (%.2f)", c, got, info.Size(), ratio)
		}
	}
}

// What a run is writing is not taken away from under it.
func TestCleanWhileCapturing(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir(settings.DefaultDir, 0o777))
	must(t, os.WriteFile(filepath.Join(settings.DefaultDir, "order.json"), nil, 0o666))
	w, err := capture.Create(tracefolder.TracePath(settings.DefaultDir, "local"), capture.Manifest{}, 0)
	must(t, err)
	var out bytes.Buffer
	if code := run([]string{"tracediff", "doctor", "--clean"}, nil, &out, io.Discard); code != exitMismatch || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "nothing was removed: a run is writing local.safetensors") {
		t.Errorf("while it runs: exit %d\n%s", code, out.String())
	}
	must(t, w.Close())
	out.Reset()
	if code := run([]string{"tracediff", "doctor", "--clean"}, nil, &out, io.Discard); code != exitMatch || !strings.Contains(out.String(), ".tracediff is gone") {
		t.Errorf("after it: exit %d\n%s", code, out.String())
	}
}

// A machine on which the built-in model comes out otherwise is an error, whatever the model that was named is like.
func TestKnownGoodThatIsNot(t *testing.T) {
	golden, err := filepath.Abs("../../fixtures/golden/gemma3n-tiny/window.float32.safetensors")
	must(t, err)
	bug, err := filepath.Abs(bugFixture)
	must(t, err)
	var out bytes.Buffer
	run([]string{"tracediff", "compare", bug, golden, "--format", "json"}, nil, &out, io.Discard)
	const command = `tracediff compare --prompt "Hello world"`
	for report, want := range map[string]string{
		out.String():   command + ": the built-in model differs from transformers 5.23.0: " + command + " prints what differs",
		"":             command + ": reading the report: ",
		"{":            command + ": reading the report: ",
		`{"runs": []}`: command + ": the report has 0 runs",
	} {
		p := &doctor.Patient{Settings: settings.Defaults(), Dir: t.TempDir(), Example: func(context.Context, ...string) ([]byte, error) { return []byte(report), nil }}
		checks := slices.DeleteFunc(p.Checks(), func(c health.Check) bool { return c.Section == "python" })
		lines, err := health.Run(context.Background(), checks, nil)
		must(t, err)
		if !slices.ContainsFunc(lines, func(l health.Line) bool {
			return l.Section == "example" && l.Status == health.Error && strings.HasPrefix(l.What, want)
		}) {
			t.Errorf("no error %q in %+v", want, lines)
		}
	}
}

func TestPrintLines(t *testing.T) {
	lines := []health.Line{{Section: "model", Status: health.Error, What: "bad", Hint: "mend it"}, {Section: "disk", Status: health.OK, What: "room"}}
	var plain, painted bytes.Buffer
	must(t, printLines(&plain, lines, false))
	must(t, printLines(&painted, lines, true))
	if want := "error    model    bad\n                  hint: mend it\nok       disk     room\n\n1 ok, 0 warnings, 1 error\n"; plain.String() != want {
		t.Errorf("got %q, want %q", plain.String(), want)
	}
	if !strings.Contains(painted.String(), "\x1b[31;1merror  \x1b[") {
		t.Errorf("not painted: %q", painted.String())
	}
	if err := printLines(full{}, lines, false); err == nil {
		t.Error("no error of a full disk")
	}
}
