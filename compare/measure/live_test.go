package measure_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// numberOf is a number of docs/verdict.md: its name in the JSON, and the Python for it.
type numberOf struct {
	name string
	axis int    // that AXIS stands for
	wild bool   // of tensors that are not finite everywhere
	code string // its last line is the number
}

// documented reads the numbers of the document.
func documented(t *testing.T) (numbers []numberOf) {
	doc, err := os.ReadFile("../../docs/verdict.md")
	if err != nil {
		t.Fatal(err)
	}
	load := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(string(doc))[1]
	for _, f := range regexp.MustCompile("(?s)### `([a-z0-9_.]+)`\n.*?```python\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		n := numberOf{name: f[1], wild: f[1] == "non_finite" || f[1] == "local.nan", code: strings.TrimSpace(load + f[2])}
		if lines := strings.Count(n.code, "\n") + 1; lines > 4 {
			t.Errorf("%s takes %d lines", n.name, lines)
		}
		numbers = append(numbers, n)
		if n.name == "axes" {
			for n.axis = 1; n.axis < 3; n.axis++ {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) < 16 {
		t.Fatalf("the document has %d numbers", len(numbers))
	}
	return numbers
}

// measuredLive returns the files of two tensors and the JSON of their metrics.
func measuredLive(t *testing.T, wild bool) (paths [2]string, metrics map[string]any) {
	rng := rand.New(rand.NewPCG(3, 4))
	l, r := make([]float64, 600), make([]float64, 600)
	for i := range r {
		r[i] = 3 + rng.NormFloat64()
		l[i] = r[i] * (1 + 0.05*rng.NormFloat64())
	}
	l[7], r[7], r[8], r[100] = math.Copysign(0, -1), 0, 0, -2
	if wild {
		l[3], l[4], r[4], r[5], l[6], r[6] = math.NaN(), math.NaN(), math.NaN(), math.Inf(-1), math.Inf(1), math.Inf(1)
	}
	shape := []int{3, 5, 40}
	lt, rt := testengine.Pair{Shape: shape, DType: hooks.BF16, Local: l, Reference: r}.Traces(t)
	data, err := json.Marshal(metricsOf(t, lt, rt))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &metrics); err != nil {
		t.Fatal(err)
	}
	return [2]string{lt.Path(), rt.Path()}, metrics
}

// evaluate is Python that runs each of some scripts and prints the value of its last line.
const evaluate = `
import json, sys
for script in json.load(sys.stdin):
    *lines, last = script.split("\n")
    names = {}
    exec("\n".join(lines), names)
    print(float(eval(last, names)))
`

// TestLiveMetricsInPython runs every piece of Python in docs/verdict.md on two traces, and holds what it says to what is measured
// here.
func TestLiveMetricsInPython(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and safetensors")
	}
	numbers := documented(t)
	want := map[bool]map[string]any{}
	var replace [2]*strings.Replacer
	for i, wild := range []bool{false, true} {
		var paths [2]string
		paths, want[wild] = measuredLive(t, wild)
		replace[i] = strings.NewReplacer(`"local.safetensors"`, fmt.Sprintf("%q", paths[0]), `"reference.safetensors"`, fmt.Sprintf("%q", paths[1]), "NAME", "x")
	}
	var scripts []string
	for _, n := range numbers {
		r := replace[0]
		if n.wild {
			r = replace[1]
		}
		scripts = append(scripts, strings.ReplaceAll(r.Replace(n.code), "AXIS", fmt.Sprint(n.axis)))
	}
	input, err := json.Marshal(scripts)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(interpreter, "-c", evaluate)
	command.Stdin, command.Stderr = strings.NewReader(string(input)), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", interpreter, err)
	}
	got := strings.Fields(string(out))
	if len(got) != len(numbers) {
		t.Fatalf("%d numbers of %d: %s", len(got), len(numbers), out)
	}
	for i, n := range numbers {
		var python float64
		if _, err := fmt.Sscan(got[i], &python); err != nil {
			t.Errorf("%s is %q in Python", n.name, got[i])
		}
		if ours := lookUp(want[n.wild], n.name, n.axis); math.Abs(python-ours) > 1e-12*math.Abs(ours) {
			t.Errorf("%s is %v in Python, %v here", n.name, python, ours)
		}
	}
}

// lookUp finds a number in the JSON of metrics.
func lookUp(m map[string]any, name string, axis int) float64 {
	if name == "axes" {
		return m["axes"].([]any)[axis].(map[string]any)["rel_l2"].(float64)
	}
	if side, of, nested := strings.Cut(name, "."); nested {
		return m[side].(map[string]any)[of].(float64)
	}
	return m[name].(float64)
}
