package c_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/hooks"
)

// debugTraces are runs whose lines stand in files, to which the Go program and the Python recorder are held as well.
var debugTraces = map[string]string{
	"../../capture/debug/testdata/odd.safetensors": "../../capture/debug/testdata/odd.txt",
	"../../fixtures/steps/refine.safetensors":      "../../capture/debug/testdata/refine.txt",
	"../../fixtures/steps/batch.safetensors":       "../../capture/debug/testdata/batch.txt",
}

// debugged lets a driver record events in debug mode and returns what it says on standard error.
func debugged(t testing.TB, driver string, all []hooks.Event, env ...string) string {
	t.Helper()
	var s script
	s.open(filepath.Join(t.TempDir(), "run.safetensors"), manifest{})
	recordAll(&s, all)
	s.do("close")
	cmd := exec.Command(driver)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.String()), io.Discard, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("driver: %v\n%s", err, said.String())
	}
	return said.String()
}

func recordAll(s *script, all []hooks.Event) {
	for _, e := range all {
		s.do("pass %d", e.Pass)
		s.record(e.Name, e.Tensor)
	}
}

var (
	times    = regexp.MustCompile(`(ms|slowest)=\S+`)
	ownLines = regexp.MustCompile(`(?m)^debug: (begin|token|top|step|series|slowest|average|note pass=\d+ text="(\d+ more tokens|the most likely)) ?.*\n`)
	topToken = regexp.MustCompile(`(?m) top=\d+( sequence=\d+)?`)
)

// comparable is output without its times and without what the C recorder does not print.
func comparable(said string) string {
	said = times.ReplaceAllString(ownLines.ReplaceAllString(said, ""), "$1=*")
	return topToken.ReplaceAllString(said, "")
}

func TestDebugLines(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		for path, lines := range debugTraces {
			want, err := os.ReadFile(lines)
			if err != nil {
				t.Fatal(err)
			}
			got := debugged(t, driver, events(t, open(t, path)), "TRACEDIFF_DEBUG=1", "TRACEDIFF_DEBUG_PASSES=")
			if diff := cmp.Diff(comparable(string(want)), comparable(got)); diff != "" {
				t.Errorf("%s (-file +C):\n%s", lines, diff)
			}
			if !strings.HasPrefix(got, "debug: begin passes=3 tokens=0 top=0 layers=2\n") {
				t.Errorf("it starts with %.80q", got)
			}
		}
	})
}

// unknown is said of a value of TRACEDIFF_DEBUG that is neither on nor off.
const unknown = "debug: note text=\"TRACEDIFF_DEBUG is neither on (1, true, yes, on) nor off (0, false, no, off): debug mode is off\"\n"

// Turning it on or off does not change the trace, and words that belong to other tools do not turn it on.
func TestDebugEnvironment(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		all := events(t, open(t, "../../capture/debug/testdata/odd.safetensors"))
		for _, c := range []struct {
			env []string
			on  bool
		}{
			{[]string{"TRACEDIFF_DEBUG=", "DEBUG="}, false},
			{[]string{"TRACEDIFF_DEBUG=tRUe", "DEBUG="}, true},
			{[]string{"TRACEDIFF_DEBUG=", "DEBUG=YES"}, true},
			{[]string{"TRACEDIFF_DEBUG=oN", "DEBUG="}, true},
			{[]string{"TRACEDIFF_DEBUG=off", "DEBUG=1"}, false},
			{[]string{"TRACEDIFF_DEBUG=0", "DEBUG=1"}, false},
			{[]string{"TRACEDIFF_DEBUG=", "DEBUG=express:*"}, false},
			{[]string{"TRACEDIFF_DEBUG=", "DEBUG=11"}, false},
		} {
			if said := debugged(t, driver, all, c.env...); (said != "") != c.on {
				t.Errorf("%q: it says %.100q", c.env, said)
			}
		}
		for _, text := range []string{"ye", "onn", "2"} {
			if said := debugged(t, driver, all, "TRACEDIFF_DEBUG="+text, "DEBUG=1"); said != unknown {
				t.Errorf("with %q it says %.200q", text, said)
			}
		}
		said := debugged(t, driver, all, "TRACEDIFF_DEBUG=1", "TRACEDIFF_DEBUG_LAYERS=11")
		if !strings.Contains(said, " layers=11\n") || !strings.Contains(said, "name=layers.10 ") || strings.Contains(said, "one line a layer") {
			t.Errorf("with 11 layers asked for it says\n%s", said)
		}
		said = debugged(t, driver, all, "TRACEDIFF_DEBUG=1", "TRACEDIFF_DEBUG_PASSES=7")
		if !strings.Contains(said, "debug: tensor pass=6 ") || strings.Contains(said, "debug: tensor pass=7 ") || !strings.Contains(said, " short=1 ") {
			t.Errorf("with 7 passes asked for it says\n%s", said)
		}
		for _, text := range []string{"x", "0", "-3", "7x", ""} {
			said := debugged(t, driver, all, "TRACEDIFF_DEBUG=1", "TRACEDIFF_DEBUG_PASSES="+text)
			wrong := strings.Contains(said, `debug: note text="TRACEDIFF_DEBUG_PASSES is not a number of passes, 1 or more: the first 3 `)
			if wrong != (text != "") || !strings.HasPrefix(said, "debug: begin passes=3 ") {
				t.Errorf("with %q passes asked for it says\n%.200s", text, said)
			}
		}
	})
}

// A trace in debug mode is the same file, also for views and devices, whose elements come in other pieces.
func TestDebugChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		x := tame(hooks.F32, []int{3, 5}, 15)
		turned := hooks.Tensor{DType: hooks.F32, Shape: []int{5, 3}}
		for col := range 5 {
			for row := range 3 {
				turned.Data = append(turned.Data, x.Data[4*(5*row+col):][:4]...)
			}
		}
		var traces, lines [2]string
		for i, on := range []string{"0", "1"} {
			path := filepath.Join(t.TempDir(), "run.safetensors")
			var s script
			s.open(path, manifest{})
			s.record("whole", turned)
			s.tensor("strided", "view", hooks.Tensor{DType: x.DType, Shape: turned.Shape, Data: x.Data})
			s.do(" 0 %s", list([]int{4, 20}))
			s.tensor("device", "device", turned)
			s.do(" 100 100")
			s.do("close")
			cmd := exec.Command(driver)
			cmd.Env = append(os.Environ(), "TRACEDIFF_DEBUG="+on)
			var said bytes.Buffer
			cmd.Stdin, cmd.Stderr = strings.NewReader(s.String()), &said
			if err := cmd.Run(); err != nil {
				t.Fatalf("driver: %v\n%s", err, said.String())
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			traces[i], lines[i] = string(data), said.String()
		}
		if traces[0] != traces[1] || len(traces[0]) == 0 {
			t.Errorf("%d bytes without, %d with debug mode, and they are not the same", len(traces[0]), len(traces[1]))
		}
		statistics := regexp.MustCompile(`name=(\w+) (.*) ms=`).FindAllStringSubmatch(lines[1], -1)
		if len(statistics) != 3 || statistics[0][2] != statistics[1][2] || statistics[0][2] != statistics[2][2] {
			t.Errorf("the same elements have other statistics:\n%s", lines[1])
		}
	})
}

// Whatever is recorded, the lines are those of the Go program. Numbers are quarters, which float64 adds without rounding,
// in whatever order; what is divided after that may be rounded another way, which is seen where six digits end at a half.
func TestDebugSameAsGo(t *testing.T) {
	// Its mean is 19.66875: Go prints 19.6688, C 19.6687.
	half := hooks.Event{Name: "half", Tensor: tame(hooks.F8E4M3, []int{4, 1, 3, 4}, 40)}
	each(t, func(t *testing.T, driver string) {
		if diff := sameAsGo(t, driver, []hooks.Event{half}); diff != "" {
			t.Fatalf("at a half (-Go +C):\n%s", diff)
		}
		rapid.Check(t, func(r *rapid.T) {
			var all []hooks.Event
			for range rapid.IntRange(1, 60).Draw(r, "tensors") {
				all = append(all, drawTame(r, len(all)/8))
			}
			if diff := sameAsGo(t, driver, all); diff != "" {
				r.Fatalf("(-Go +C):\n%s", diff)
			}
		})
	})
}

// sameAsGo returns in what the lines of a driver are others than those of the Go program.
func sameAsGo(t testing.TB, driver string, all []hooks.Event) string {
	var want bytes.Buffer
	log := debug.New(&want, debug.Options{})
	for _, e := range all {
		if err := log.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	log.End()
	got := debugged(t, driver, all, "TRACEDIFF_DEBUG=1", "TRACEDIFF_DEBUG_PASSES=")
	goLines, cLines := comparable(want.String()), comparable(got)
	return cmp.Diff(goLines, asRounded(cLines, goLines))
}

var quotient = regexp.MustCompile(`\b(mean|std)=\S+`)

// asRounded is lines in which a mean or deviation that is one off in the last of six digits is as in those of want.
func asRounded(lines, want string) string {
	at, wanted := 0, quotient.FindAllString(want, -1)
	return quotient.ReplaceAllStringFunc(lines, func(field string) string {
		at++
		if at > len(wanted) {
			return field
		}
		key, text, _ := strings.Cut(field, "=")
		wantKey, wantText, _ := strings.Cut(wanted[at-1], "=")
		x, err := strconv.ParseFloat(text, 64)
		y, wantErr := strconv.ParseFloat(wantText, 64)
		lastDigit := math.Pow(10, math.Floor(math.Log10(math.Abs(y)))-5)
		if key != wantKey || err != nil || wantErr != nil || !(math.Abs(x-y) < 1.5*lastDigit) {
			return field
		}
		return wanted[at-1]
	})
}

func drawTame(r *rapid.T, pass int) hooks.Event {
	names := []string{
		"input_ids", "layers.3.mlp", "layers.", "layers.1x", "layers.1234567890.a", "a.step.2", ".step.3", "a.step.", "mask.full",
		"altup.initial", "logits", "lossy", "größe \u0085\u00a0\u2028", "\x01\\ \x7f", "é.step.7", "x.step.7.step", "normal",
	}
	d := hooks.DType(rapid.IntRange(int(hooks.F64), int(hooks.Bool)).Draw(r, "dtype"))
	shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(r, "shape")
	return hooks.Event{Name: rapid.SampledFrom(names).Draw(r, "name"), Pass: pass, Tensor: tame(d, shape, rapid.Uint64().Draw(r, "seed"))}
}

// tame makes a tensor of a seed: of floats quarters between ±4, one in eight no finite number, and any whole numbers of few
// bits.
func tame(d hooks.DType, shape []int, seed uint64) hooks.Tensor {
	// The bits of ±quarters up to 4, NaN and the infinities, by dtype: exponent bits, mantissa bits.
	layout := map[hooks.DType][2]int{
		hooks.F64: {11, 52}, hooks.F32: {8, 23}, hooks.F16: {5, 10}, hooks.BF16: {8, 7}, hooks.F8E4M3: {4, 3}, hooks.F8E5M2: {5, 2},
	}
	n, _ := hooks.Elements(shape)
	x := hooks.Tensor{DType: d, Shape: slices.Clone(shape)}
	for range n {
		seed = seed*6364136223846793005 + 1442695040888963407
		bits := seed >> 58 // of a whole number, and of a float the choice
		if l, isFloat := layout[d]; isFloat {
			bits = floatBits(bits, l[0], l[1])
		}
		x.Data = append(x.Data, binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()]...)
	}
	return x
}

// floatBits are the bits of a float: choice has a sign, and of magnitudes 0, ¼, ½, 1, 2, 3, NaN or the largest exponent.
func floatBits(choice uint64, exponent, mantissa int) uint64 {
	bias := uint64(1)<<(exponent-1) - 1
	sign := choice & 1 << (exponent + mantissa)
	half := uint64(1) << (mantissa - 1)
	return sign | [...]uint64{
		0, (bias - 2) << mantissa, (bias - 1) << mantissa, bias << mantissa, (bias + 1) << mantissa, (bias+1)<<mantissa | half,
		(uint64(1)<<exponent-1)<<mantissa | (2*half - 1), // NaN, of all dtypes
		(uint64(1)<<exponent - 1) << mantissa,            // infinite, or of a dtype that has none a large number
	}[choice>>1&7]
}

// A program that was compiled to know neither NaN nor a negative zero prints these lines all the same.
func TestDebugWithFastMath(t *testing.T) {
	if lack := lacking["C99"]; lack != "" {
		t.Skip(lack)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "fast")
	out, err := exec.Command("cc", "-O3", "-ffast-math", "-o", path, "testdata/driver.c", "testdata/plain.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := events(t, open(t, "../../capture/debug/testdata/odd.safetensors"))
	want, err := os.ReadFile("../../capture/debug/testdata/odd.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(comparable(string(want)), comparable(debugged(t, path, all, "TRACEDIFF_DEBUG=1"))); diff != "" {
		t.Errorf("-ffast-math (-file +C):\n%s", diff)
	}
}
