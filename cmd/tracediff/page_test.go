package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
)

const (
	pageLines   = 40
	pageColumns = 80
)

// A report is a page: at most 40 lines of at most 80 columns, of a small model and of one of 35 layers, whether it passes or not.
// The pages are in testdata/page, and the same results with --table beside them; -update writes them.
func TestReportIsAPage(t *testing.T) {
	pages, err := filepath.Abs("testdata/page")
	must(t, err)
	t.Setenv("CI", "")
	root := sources(t)
	t.Chdir(t.TempDir())
	must(t, os.Symlink(filepath.Join(root, "fixtures"), "fixtures"))
	deep(t, "deep")
	const (
		tiny = "--tokens 2,527,876 --dtype bfloat16" // "Hello world"
		big  = "deep/local.safetensors deep/reference.safetensors --model deep"
		bug  = "fixtures/bugs/window-too-wide.float32.safetensors fixtures/golden/gemma3n-tiny/window.float32.safetensors"
	)
	if code := run(strings.Fields("tracediff capture -q --reference go --dtype float32 --dir deep --model deep --tokens 2,5,9,17,33,7"), nil, io.Discard, os.Stderr); code != exitMatch {
		t.Fatalf("exit status %d", code)
	}
	scaleEntry(t, "deep/local.safetensors", "deep/wrong.safetensors", "layers.17.mlp.down_proj", 1.01)
	for _, c := range []struct {
		name, args string
		code       int
	}{
		{"tiny-match", tiny, exitMatch},
		{"tiny-mismatch", bug, exitMismatch},
		{"deep-match", big, exitMatch},
		{"deep-mismatch", strings.Replace(big, "local", "wrong", 1), exitMismatch},
	} {
		for _, flag := range []string{"", " --table"} {
			var out, errOut bytes.Buffer
			if code := run(strings.Fields("tracediff compare "+c.args+flag), nil, &out, &errOut); code != c.code {
				t.Errorf("%s: exit status %d, want %d: %s\n%s", c.name, code, c.code, errOut.String(), tail(out.String()))
				continue
			}
			got := strings.ReplaceAll(out.String(), "tracediff "+version(), "tracediff (devel)")
			pageGolden(t, filepath.Join(pages, c.name+strings.ReplaceAll(flag, " --", ".")+".txt"), got)
			if flag == "" {
				fits(t, c.name, got)
				defined(t, root, got)
			}
		}
	}
}

// A comparison that goes on behind the first divergence is a page, too: layers that do not match are drawn together.
func TestReportOfAllIsAPage(t *testing.T) {
	var out, errOut bytes.Buffer
	const bug, golden = "../../fixtures/bugs/window-too-wide.float32.safetensors", "../../fixtures/golden/gemma3n-tiny/window.float32.safetensors"
	if code := run([]string{"tracediff", "compare", "--all", bug, golden}, nil, &out, &errOut); code != exitMismatch {
		t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	fits(t, "--all", out.String())
	if !strings.Contains(out.String(), "MISMATCH  layers 1-6      309 ") {
		t.Errorf("the layers that do not match are not drawn together:\n%s", out.String())
	}
}

func fits(t *testing.T, name, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > pageLines {
		t.Errorf("%s: %d lines, at most %d", name, len(lines), pageLines)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > pageColumns {
			t.Errorf("%s: line %d has %d columns, at most %d: %s", name, i+1, n, pageColumns, line)
		}
	}
}

// What a page calls a line or a verdict is a word of the glossary.
var (
	pageLabels = regexp.MustCompile(`(?m)^(?:  )?([a-z][a-z-]*(?: [a-z]+)?)(?:: | {2,})`)
	pageWords  = regexp.MustCompile(`\b[A-Z]{3,}\b`)
)

func defined(t *testing.T, root, text string) {
	t.Helper()
	var words []string
	for line := range strings.Lines(readPage(t, root, "docs/report.md")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for word := range strings.SplitSeq(cells[1], ",") {
				words = append(words, strings.TrimSpace(word))
			}
		}
	}
	used := pageWords.FindAllString(text, -1)
	for _, m := range pageLabels.FindAllStringSubmatch(text, -1) {
		used = append(used, m[1])
	}
	if len(used) < 5 {
		t.Errorf("only %q are labels and verdicts", used)
	}
	for _, word := range used {
		if !slices.Contains(words, word) {
			t.Errorf("docs/report.md does not have %q", word)
		}
	}
}

func pageGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s:\n%s", filepath.Base(path), diff)
	}
}

// deep writes a checkpoint with the depth, the kinds of layers and the heads of the published Gemma 3n: 35 layers, every fifth with full
// attention, the last 15 with the keys and values of earlier ones, the first 10 sparse, 8 heads on 2 of keys and values. So it has every
// entry that the published one has. Widths are those of the embedded checkpoint, 32 channels and 64 in the MLP; weights are random.
func deep(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile("fixtures/gemma3n-tiny/config.json")
	must(t, err)
	var config map[string]any
	must(t, json.Unmarshal(data, &config))
	text := config
	if inner, ok := config["text_config"].(map[string]any); ok {
		text = inner
	}
	const layers, shared, sparse, period = 35, 15, 10, 5
	kinds, sparsity, widths := make([]string, layers), make([]float64, layers), make([]int, layers)
	for i := range layers {
		kinds[i], widths[i] = "sliding_attention", 64
		if i%period == period-1 {
			kinds[i] = "full_attention"
		}
		if i < sparse {
			sparsity[i] = 0.95
		}
	}
	text["num_hidden_layers"], text["num_kv_shared_layers"], text["num_attention_heads"], text["num_key_value_heads"] = layers, shared, 8, 2
	text["layer_types"], text["activation_sparsity_pattern"], text["intermediate_size"] = kinds, sparsity, widths
	data, err = json.Marshal(config)
	must(t, err)
	read, err := order.ReadConfig(data)
	must(t, err)
	list, err := order.New(read)
	must(t, err)
	var wants []checkpoint.Want
	for _, w := range list.Weights() {
		wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	must(t, os.MkdirAll(dir, 0o777))
	checkpointtest.Write(t, dir, data, checkpointtest.Random(wants, hooks.F32, "model.", 35), 1)
}

// scaleEntry copies a trace with one tensor multiplied; with all tensors of floats where no name is given.
func scaleEntry(t *testing.T, from, to, name string, by float32) {
	t.Helper()
	in, err := capture.Open(from)
	must(t, err)
	defer in.Close()
	w, err := capture.Create(to, in.Manifest(), 1<<20)
	must(t, err)
	if name != "" && !slices.ContainsFunc(in.Records(), func(r capture.Record) bool { return r.Name == name }) {
		t.Fatal(fmt.Errorf("%s has no %s", from, name))
	}
	for _, r := range in.Records() {
		x, err := in.Read(r)
		must(t, err)
		if r.Name == name || name == "" && x.DType.Float() {
			y := decoded(x)
			scale(by)(y)
			x = encoded(x.DType, x.Shape, y)
		}
		must(t, w.Observe(hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x}))
	}
	must(t, w.Close())
}
