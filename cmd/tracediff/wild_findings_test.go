package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// explained says for each finding in the traces of llama.cpp, mlx-lm and ONNX Runtime why it is true: the page and the words that explain it.
var explained = []struct{ trace, finding, page, words string }{
	{`^mlx/gemma-tiny\.`, `(bug|BUG|UNIDENTIFIED) .*(gelu|act_fn)`, "docs/results/in-the-wild.md", "Gemma 1 has another GELU than config.json says, by the error function and not by tanh"},
	{`^mlx/gemma3-multimodal\.float32`, `embed_tokens|√hidden_size`, "docs/results/in-the-wild.md", "In float32 Gemma 3 multiplies the embedding by √hidden rounded to bfloat16"},
	{`^mlx/gemma3n-odd\.float32`, `(bug|BUG) altup(_init|\.init|\.final)`, "docs/results/in-the-wild.md", "Gemma 3n has no floor under the magnitude of a stream, which one checkpoint reaches"},
	{`^mlx/gemma3n-odd\.bfloat16`, `(unexplained|BUG|UNIDENTIFIED) (altup|stream_mean)`, "docs/results/in-the-wild.md", "In bfloat16 the same entries are BUG, without a name"},
	{`^onnx-planted/`, `q_norm|rms_norm`, "docs/results/in-the-wild.md", "the epsilon of the norm of queries in layer 1"},
	{`^llamacpp/traces/llama-tiny\.float16-cache`, `DTYPE .*(keys|values)`, "docs/results/in-the-wild.md", "By default llama.cpp keeps keys and values in float16"},
	{`^mlx/`, `^MISSING .*(mask|cos)`, "docs/results/in-the-wild.md", "since the traces declare level 3 and mlx shows neither masks nor cos and sin"},
	{`^mlx/.*bfloat16`, `arithmetic rms_norm`, "fixtures/wild/README.md", "float32 up to the product, R(R(x·rsqrt)·w)"},
	{`^mlx/.*bfloat16`, `arithmetic (scores|add:)`, "fixtures/wild/README.md", "R(R(q·R(scale))·k)"},
	{`^mlx/.*bfloat16`, `arithmetic gelu_tanh`, "fixtures/wild/README.md", "R(R(x/2)·R(1+R(tanh R(R(√(2/π))·R(x+R(R(0.044715)·R(x³)))))))"},
	{`^mlx/.*bfloat16`, `arithmetic mul: takes the sigmoid`, "fixtures/wild/README.md", "y = 1/(1+R(e^abs(x)))"},
	{`^mlx/gemma3n.*bfloat16`, `arithmetic (tanh|linear): keeps its result wider`, "fixtures/wild/README.md", "float32, kept as float32"},
	{`^mlx/gemma3n.*bfloat16`, `arithmetic altup_(predict|correct)`, "fixtures/wild/README.md", "float32 inside, one R at the end"},
	{`^mlx/gemma3n.*bfloat16`, `arithmetic add_scale`, "fixtures/wild/README.md", "R(R(R(a+b)+laurel)·R(1/√2))"},
	{`^mlx/gemma3n.*bfloat16`, `arithmetic (altup_init|stream_mean): takes the ratio`, "fixtures/wild/README.md", "R(y·R(t/m))"},
}

// Each finding in the committed traces of llama.cpp, mlx-lm and ONNX Runtime, by themselves and against transformers, stands in
// testdata/wild-findings.txt, and the docs explain each: none is there that is not true. -update writes the list. It takes some 12 seconds of
// processor time, and so is a matter of the gate.
func TestWildFindings(t *testing.T) {
	if os.Getenv("TRACEDIFF_FINDINGS") == "" {
		t.Skip("needs TRACEDIFF_FINDINGS: that it is asked for")
	}
	root := sources(t)
	used := make([]bool, len(explained))
	var list strings.Builder
	for _, pattern := range []string{"llamacpp/traces", "mlx", "onnx", "onnx-planted", "onnx-torchscript"} {
		paths, err := filepath.Glob(filepath.Join(root, "fixtures/wild", pattern, "*.safetensors"))
		must(t, err)
		if len(paths) == 0 {
			t.Fatalf("no traces of %s", pattern)
		}
		for _, path := range paths {
			trace := pattern + "/" + strings.TrimSuffix(filepath.Base(path), ".safetensors")
			for _, way := range wildRuns(root, pattern, path) {
				exit, findings := findingsOf(t, way.args)
				fmt.Fprintf(&list, "%s, %s: exit %d\n", trace, way.name, exit)
				for _, finding := range findings {
					fmt.Fprintf(&list, "  %s\n", finding)
					row := slices.IndexFunc(explained, func(e struct{ trace, finding, page, words string }) bool {
						return regexp.MustCompile(e.trace).MatchString(trace) && regexp.MustCompile(e.finding).MatchString(finding)
					})
					if row < 0 {
						t.Errorf("%s, %s: nothing explains %s", trace, way.name, finding)
						continue
					}
					used[row] = true
				}
				if (exit != exitMatch) != slices.ContainsFunc(findings, func(f string) bool { return !strings.HasPrefix(f, "arithmetic") }) {
					t.Errorf("%s, %s: exit %d, and findings %q", trace, way.name, exit, findings)
				}
			}
		}
	}
	for i, e := range explained {
		if !used[i] {
			t.Errorf("%s, %s is found nowhere", e.trace, e.finding)
		}
		if page := strings.Join(strings.Fields(readPage(t, root, e.page)), " "); !strings.Contains(page, strings.Join(strings.Fields(e.words), " ")) {
			t.Errorf("%s does not say %q", e.page, e.words)
		}
	}
	golden := filepath.Join("testdata", "wild-findings.txt")
	if *update {
		must(t, os.WriteFile(golden, []byte(list.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if list.String() != string(want) {
		t.Errorf("the findings are other than those of %s; -update writes them:\n%s", golden, list.String())
	}
}

// wildRun is a comparison of a trace of another engine.
type wildRun struct {
	name string
	args []string
}

// wildRuns are the comparisons of a trace: by itself, and against transformers.
func wildRuns(root, folder, path string) []wildRun {
	model, rest, _ := strings.Cut(filepath.Base(path), ".")
	dtype, _, _ := strings.Cut(rest, ".")
	in := func(words ...string) string { return filepath.Join(append([]string{root, "fixtures"}, words...)...) }
	var mapped []string
	switch {
	case strings.HasPrefix(folder, "llamacpp"):
		mapped = []string{"--map", in("wild", "llamacpp", "llamacpp.toml")}
		dtype = "float32" // of what the engine computes in, whatever its cache is
	case folder == "onnx-torchscript":
		mapped = []string{"--map", in("wild", folder, model+".toml")}
	case strings.HasPrefix(folder, "onnx"):
		mapped = []string{"--map", in("wild", "onnx", model+".toml")}
	}
	reference := in("golden", model, "decode."+dtype+".safetensors")
	if of := in("wild", "reference", model+"."+dtype+".safetensors"); folder == "mlx" && exists(of) {
		reference = of
	}
	return []wildRun{
		{"by itself", append([]string{"--isolate", path, "--model", in(model)}, mapped...)},
		{"against transformers", append([]string{path, reference, "--all"}, mapped...)},
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var layerNumber = regexp.MustCompile(`^layers\.\d+\.`)

// findingsOf runs a comparison and lists what it found: arithmetics, named and unexplained bugs, rows that are wrong by themselves or that no
// arithmetic gives, tensors of another shape or dtype, what is missing. Rows that are wrong since something before them is are not listed.
func findingsOf(t *testing.T, args []string) (exit int, list []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	var out, errOut bytes.Buffer
	exit = run(append([]string{"tracediff", "compare", "--report", "json=" + path}, args...), nil, &out, &errOut)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errOut.String())
	}
	var report struct {
		Runs []struct {
			Result struct {
				Rows []struct {
					Name, Verdict, Class string
					Isolated             *struct{ Outcome string }
				}
				Missing   []struct{ Name string }
				Isolation struct {
					Findings []struct {
						Kind, Form, What string
						Rows             int
					}
				}
			}
		}
	}
	must(t, json.Unmarshal(text, &report))
	count := map[string]int{}
	for _, r := range report.Runs[0].Result.Rows {
		name := layerNumber.ReplaceAllString(r.Name, "layers.*.")
		switch {
		case r.Isolated != nil && (r.Isolated.Outcome == "BUG" || r.Isolated.Outcome == "UNIDENTIFIED"):
			count[r.Isolated.Outcome+" "+name]++
		case r.Verdict == "MISMATCH" && r.Class != "VALUE":
			count[r.Class+" "+name]++
		}
	}
	for name, n := range count {
		list = append(list, fmt.Sprintf("%s: %d entries", name, n))
	}
	var missing []string
	for _, m := range report.Runs[0].Result.Missing {
		missing = append(missing, layerNumber.ReplaceAllString(m.Name, "layers.*."))
	}
	if slices.Sort(missing); len(missing) > 0 {
		list = append(list, "MISSING "+strings.Join(slices.Compact(missing), ", "))
	}
	slices.Sort(list)
	for _, f := range report.Runs[0].Result.Isolation.Findings {
		what, _, _ := strings.Cut(f.What, "; the search stopped") // one with more work finds the same
		list = append(list, fmt.Sprintf("%s %s: %s (%d entries)", f.Kind, f.Form, what, f.Rows))
	}
	return exit, list
}
