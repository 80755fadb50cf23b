package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reportCase is a comparison, or another command if by is set, with the name of its report.
type reportCase struct {
	name string
	args []string
	by   string
}

// command is what is typed for a case. A comparison writes its report into a file.
func (c reportCase) command(path string) []string {
	if c.by != "" {
		return append([]string{c.by}, c.args...)
	}
	return append([]string{"compare", "--report", "json=" + path}, c.args...)
}

// allCases lists the comparisons. bench and models are folders, or empty.
func allCases(bench string, sample int, models string) ([]reportCase, error) {
	if _, err := os.Stat("fixtures/golden"); err != nil {
		return nil, fmt.Errorf("it runs in the root of the repository: %w", err)
	}
	var l lister
	for _, path := range l.find("fixtures/golden/*/*.safetensors") {
		l.alone(path, "--model", "fixtures/"+filepath.Base(filepath.Dir(path)))
	}
	for _, folder := range []string{"keras", "keras-preset", "llamacpp/traces", "mlx", "onnx", "onnx-planted", "onnx-torchscript"} {
		for _, path := range l.find("fixtures/wild/" + folder + "/*.safetensors") {
			l.wild(folder, path)
		}
	}
	l.cut()
	l.quantised()
	l.caches()
	l.ab()
	l.recorded("fixtures/programs")
	l.looks()
	if models != "" {
		l.recorded(models)
	}
	if bench != "" && l.err == nil {
		l.err = l.bench(bench, sample)
	}
	return l.all, l.err
}

// lister makes the list. err is the first error.
type lister struct {
	all []reportCase
	err error
}

// find lists files. A pattern without a file is an error: nothing would be compared, and nobody would know.
func (l *lister) find(pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no files are %s", pattern)
	}
	if l.err == nil {
		l.err = err
	}
	return paths
}

// add adds a comparison, named by its trace.
func (l *lister) add(path, way string, args ...string) {
	name := strings.NewReplacer("/", "-", "+", "-").Replace(strings.TrimSuffix(strings.TrimPrefix(path, "fixtures/"), ".safetensors"))
	l.all = append(l.all, reportCase{strings.Trim(name, "-.") + "." + way, args, ""})
}

// alone adds the comparison of a single trace.
func (l *lister) alone(path string, args ...string) {
	l.add(path, "alone", append([]string{"--isolate", path}, args...)...)
}

// wild adds the comparisons of an engine's trace: the single trace, and the trace against transformers.
func (l *lister) wild(folder, path string) {
	model, rest, _ := strings.Cut(filepath.Base(path), ".")
	dtype, _, _ := strings.Cut(rest, ".")
	var mapped []string
	switch {
	case strings.HasPrefix(folder, "llamacpp"):
		mapped = []string{"--map", "fixtures/wild/llamacpp/llamacpp.toml"}
		dtype = "float32" // of what the engine computes in, whatever its cache is
	case folder == "onnx-torchscript":
		mapped = []string{"--map", "fixtures/wild/onnx-torchscript/" + model + ".toml"}
	case strings.HasPrefix(folder, "onnx"):
		mapped = []string{"--map", "fixtures/wild/onnx/" + model + ".toml"}
	}
	l.alone(path, append([]string{"--model", "fixtures/" + model}, mapped...)...)
	reference := fmt.Sprintf("fixtures/golden/%s/decode.%s.safetensors", model, dtype)
	if of := fmt.Sprintf("fixtures/wild/reference/%s.%s.safetensors", model, dtype); exists(of) {
		reference = of
	}
	l.add(path, "transformers", append([]string{path, reference, "--all"}, mapped...)...)
}

// cut adds the single traces of llama.cpp on small random checkpoints. The run in the name of a trace says which map names its tensors.
func (l *lister) cut() {
	const folder = "fixtures/wild/trained/"
	for _, path := range l.find(folder + "cut/*.safetensors") {
		model, run, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".safetensors"), ".")
		family, _, _ := strings.Cut(model, "-")
		names := "fixtures/wild/llamacpp/llamacpp.toml"
		switch {
		case run == "fused":
			names = folder + "maps/llamacpp-" + family + "-flash.toml"
		case strings.HasPrefix(run, "rotary"):
			names = folder + "maps/llamacpp-rotary.toml"
		}
		l.alone(path, "--model", folder+"cut/"+model, "--map", names)
	}
}

// quantised adds the single traces of mlx-lm with quantised weights: with the weights of the trace, or with those of most traces, and
// with the weights that were quantised.
func (l *lister) quantised() {
	const model = "fixtures/weights/wide"
	for _, path := range l.find("fixtures/wild/mlx/quantised/*.safetensors") {
		weights := strings.TrimSuffix(path, ".safetensors")
		if !exists(weights) {
			weights = model + ".mlx"
		}
		l.alone(path, "--model", model, "--weights", weights)
		l.add(path, "original", "--isolate", path, "--model", model)
	}
}

// caches adds the comparisons of recordings of transformers with other caches: the single trace, and the trace against the golden.
func (l *lister) caches() {
	for _, path := range l.find("fixtures/wild/transformers/traces/*.safetensors") {
		l.alone(path, "--model", "fixtures/gemma3-tiny")
		l.add(path, "transformers", path, "fixtures/golden/gemma3-tiny/decode.float32.safetensors", "--all")
	}
}

// ab adds comparisons of two runs where neither is the reference: two dtypes, and two caches.
func (l *lister) ab() {
	const golden, caches = "fixtures/golden/llama-tiny/decode.", "fixtures/wild/transformers/traces/"
	for _, pair := range [][2]string{{golden + "float32", golden + "bfloat16"}, {caches + "static", caches + "full"}} {
		a, b := pair[0]+".safetensors", pair[1]+".safetensors"
		l.add(a, "ab", "--ab", a, b, "--all")
	}
}

// recorded adds the single traces of recorded programs, from folders with a checkpoint.
func (l *lister) recorded(dir string) {
	for _, program := range l.find(filepath.Join(dir, "*", "*.program.json")) {
		folder, dtype := filepath.Dir(program), strings.TrimSuffix(filepath.Base(program), ".program.json")
		model := filepath.Join(folder, "model")
		if !exists(model) {
			continue
		}
		for _, pattern := range []string{dtype + "*.safetensors", "*." + dtype + ".safetensors"} {
			paths, _ := filepath.Glob(filepath.Join(folder, pattern))
			for _, path := range paths {
				l.alone(path, "--model", model, "--program", program)
			}
		}
	}
}

// looks adds what check, inspect and weights print, in every format.
func (l *lister) looks() {
	by := func(command, name string, formats []string, args ...string) {
		for _, f := range formats {
			l.all = append(l.all, reportCase{command + "-" + name + "." + f, append(args[:len(args):len(args)], "--format", f), command})
		}
	}
	for _, model := range []string{"gemma3n-tiny", "llama-tiny"} {
		golden := "fixtures/golden/" + model + "/"
		by("check", model, []string{"text", "json", "html"}, golden+"decode.bfloat16.safetensors")
		by("inspect", model, []string{"text", "json"}, golden+"decode.bfloat16.safetensors")
		by("inspect", model+"-header", []string{"text"}, golden+"prefill.float32.safetensors", "--header")
		by("inspect", model+"-one", []string{"text", "json"}, golden+"decode.float32.safetensors", "layers.0.mlp.down_proj")
		by("inspect", model+"-slice", []string{"text"}, golden+"decode.float32.safetensors", "layers.0.self_attn.scores", "--slice", "0,:2,-1", "--axis", "1")
		by("inspect", model+"-logits", []string{"text"}, golden+"decode.float32.safetensors", "logits")
		by("inspect", model+"-ids", []string{"text"}, golden+"decode.float32.safetensors", "input_ids", "--slice", "0,:")
		by("inspect", model+"-pair", []string{"text", "json"}, golden+"prefill.float32.safetensors", golden+"prefill.bfloat16.safetensors", "layers.0.mlp.down_proj")
	}
	for _, path := range l.find("fixtures/wild/onnx-planted/*.safetensors") {
		by("check", strings.TrimSuffix(filepath.Base(path), ".safetensors"), []string{"text", "html"}, path)
	}
	// No checkpoint of these traces is in the repository, so nothing can certify their entries.
	for _, path := range l.find("fixtures/wild/llamacpp/angles/*.safetensors") {
		name := "angles-" + strings.TrimSuffix(filepath.Base(path), ".safetensors")
		by("check", name, []string{"text", "json"}, path)
		by("inspect", name, []string{"text", "json"}, path)
	}
	for _, path := range l.find("fixtures/weights/wide*.gguf") {
		by("weights", filepath.Base(path), []string{"text", "json", "junit", "html"}, path, "--model", "fixtures/weights/wide")
	}
	for _, name := range []string{"mistakes.safetensors", "mistakes.Q4_K.gguf", "gemma3-tiny.npz", "usual.gguf"} {
		by("weights", name, []string{"text", "json", "junit", "html"}, "fixtures/weights/"+name, "--model", "fixtures/gemma3-tiny")
	}
}

// lastHalf is the last half of the faults of the bench that is read: the names of later ones are measured blind.
const lastHalf = 5

// bench adds a sample of the bench's runs, spread over the list: each as a single trace, and every fourth against its reference.
func (l *lister) bench(dir string, most int) error {
	data, err := os.ReadFile(filepath.Join(dir, "runs.json"))
	if err != nil {
		return err
	}
	var made struct {
		Runs []struct {
			Name, Checkpoint, Program, Reference string
			Half                                 int
		}
	}
	if err := json.Unmarshal(data, &made); err != nil {
		return err
	}
	runs := slices.DeleteFunc(made.Runs, func(r struct {
		Name, Checkpoint, Program, Reference string
		Half                                 int
	},
	) bool {
		return r.Half > lastHalf || r.Program != ""
	})
	// The golden section spreads each beginning of the sample over the list, so that a smaller sample is a part of a larger one.
	const golden = 0.6180339887498949
	taken := map[int]bool{}
	for k := range min(most, len(runs)) {
		at := int(float64(len(runs)) * fraction(float64(k+1)*golden))
		if taken[at] {
			continue
		}
		taken[at] = true
		r := runs[at]
		path := filepath.Join(dir, r.Name+".safetensors")
		l.all = append(l.all, reportCase{"bench-" + r.Name + ".alone", []string{"--isolate", path, "--model", "fixtures/" + r.Checkpoint}, ""})
		if k%4 == 0 && r.Reference != "" {
			l.all = append(l.all, reportCase{"bench-" + r.Name + ".transformers", []string{path, filepath.Join(dir, r.Reference+".safetensors"), "--all"}, ""})
		}
	}
	return nil
}

func fraction(x float64) float64 { return x - float64(int(x)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
