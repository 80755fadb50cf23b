package main

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// edited copies a trace; each may change what is fired, and says of what it is.
func edited(t *testing.T, from string, manifest func(*capture.Manifest), each func(*hooks.Event)) string {
	t.Helper()
	src, err := capture.Open(from)
	must(t, err)
	defer src.Close()
	m := src.Manifest()
	m.Producer = capture.Producer{Name: "a port", Version: "1"}
	if manifest != nil {
		manifest(&m)
	}
	path := filepath.Join(t.TempDir(), "edited.safetensors")
	w, err := capture.Create(path, m, 1<<20)
	must(t, err)
	for _, r := range src.Records() {
		x, err := src.Read(r)
		must(t, err)
		e := hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x}
		if each != nil {
			each(&e)
		}
		must(t, w.Observe(e))
	}
	must(t, w.Close())
	return path
}

// withoutMetadata leaves the tensors of a trace as any library writes them.
func withoutMetadata(t *testing.T, from string) string { return rewritten(t, from, nil) }

// rewritten is withoutMetadata of a trace or a dump, whose tensors each may change.
func rewritten(t *testing.T, from string, each func(key string, x hooks.Tensor) hooks.Tensor) string {
	t.Helper()
	src, err := capture.Open(from)
	must(t, err)
	defer src.Close()
	var all []checkpointtest.Tensor
	for _, r := range src.Records() {
		x, err := src.Read(r)
		must(t, err)
		if each != nil {
			x = each(r.Key, x)
		}
		all = append(all, checkpointtest.Tensor{Name: r.Key, Tensor: x})
	}
	path := filepath.Join(t.TempDir(), "bare.safetensors")
	must(t, os.WriteFile(path, checkpointtest.File(all), 0o666))
	return path
}

// nudged is a fault that no table sees in bfloat16: the logits are 2 % too large.
func nudged(e *hooks.Event) {
	if e.Name != "logits" {
		return
	}
	v := decoded(e.Tensor)
	for i := range v {
		v[i] *= 1.02
	}
	e.Tensor = encoded(e.Tensor.DType, e.Tensor.Shape, v)
}

// What ports write in their own way, and what they do not say but the reference does, keeps no entry from being certified:
// the healthy trace passes, and a fault within the limits is found.
func TestHarmlessWaysAreCertified(t *testing.T) {
	t.Parallel()
	const model = "../../fixtures/gemma3n-tiny"
	golden, _, _, _ := goldenFile(t, "gemma3n-tiny", "hello.bfloat16")
	narrow := func(e *hooks.Event) {
		if e.Name != "input_ids" {
			return
		}
		var data []byte
		for i := 0; i < len(e.Tensor.Data); i += 8 {
			data = append(data, e.Tensor.Data[i:i+4]...)
		}
		e.Tensor = hooks.Tensor{DType: hooks.I32, Shape: e.Tensor.Shape, Data: data}
	}
	silent := func(m *capture.Manifest) {
		*m = capture.Manifest{Producer: m.Producer, Passes: m.Passes, Scope: m.Scope}
	}
	for _, c := range []struct {
		what     string
		manifest func(*capture.Manifest)
		each     func(*hooks.Event)
		bare     bool
		args     []string
		alone    bool
	}{
		{what: "positions that leave nothing out", manifest: func(m *capture.Manifest) { m.Scope.Positions = capture.Ranges{{From: 0, To: 15}} }},
		{what: "ids of 32 bits", each: narrow},
		{what: "no dtype", manifest: func(m *capture.Manifest) { m.DType = 0 }},
		{what: "no dtype, no config, no digest", manifest: silent},
		{what: "no metadata at all", bare: true},
		{what: "no metadata, and the model named", bare: true, args: []string{"--model", model}},
		{what: "no metadata, the model named, alone", bare: true, args: []string{"--model", model}, alone: true},
	} {
		for _, faulty := range []bool{false, true} {
			local := edited(t, golden, c.manifest, func(e *hooks.Event) {
				if c.each != nil {
					c.each(e)
				}
				if faulty {
					nudged(e)
				}
			})
			if c.bare {
				local = withoutMetadata(t, local)
			}
			args := append([]string{"tracediff", "compare", "--table", local, golden}, c.args...)
			if c.alone {
				args = append([]string{"tracediff", "compare", "--table", "--isolate", local}, c.args...)
			}
			var out, errOut bytes.Buffer
			code := run(args, nil, &out, &errOut)
			text := out.String() + errOut.String()
			if faulty && (code != exitMismatch || !strings.Contains(text, "wrong on its own inputs")) || !faulty && (code != 0 || !strings.Contains(text, " EXACT, ")) {
				t.Errorf("%s, faulty %t: exit %d\n%s", c.what, faulty, code, tail(text))
			}
		}
	}
}

// otherWeights copies an embedded checkpoint to a folder and makes each number of a weight twice or half of what it was: the lowest bit of
// the exponent is another.
func otherWeights(t *testing.T, name, weight string) string {
	t.Helper()
	return changedWeights(t, name, weight, func(bits uint16) uint16 { return bits ^ 0x80 })
}

// changedWeights copies an embedded checkpoint to a folder and changes the numbers of a weight, in bfloat16.
func changedWeights(t *testing.T, name, weight string, change func(bits uint16) uint16) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	from, err := fs.Sub(ondisk.Files(), name)
	must(t, err)
	must(t, os.CopyFS(dir, from))
	path := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(path)
	must(t, err)
	// A weights file is no trace, but its header is one of safetensors: only the place of the tensor is needed.
	src, err := capture.OpenReader(path, bytes.NewReader(data), int64(len(data)))
	must(t, err)
	at := -1
	for _, r := range src.Records() {
		if strings.HasSuffix(r.Name, weight) {
			x, err := src.Read(r)
			must(t, err)
			at = bytes.Index(data, x.Data)
			for i := 0; i+2 <= len(x.Data); i += 2 {
				binary.LittleEndian.PutUint16(data[at+i:], change(binary.LittleEndian.Uint16(data[at+i:])))
			}
		}
	}
	if at < 0 {
		t.Fatalf("no weight %s", weight)
	}
	must(t, os.Chmod(path, 0o666))
	must(t, os.WriteFile(path, data, 0o666))
	return dir
}

// A trace that does not say of which weights it is is certified by those of the reference, never by others that lie in the
// folder that it names: these would call a port right that reads them wrong, and a right one wrong.
func TestCertificatesAreOfTheReferencesWeights(t *testing.T) {
	t.Parallel()
	golden, passes, _, _ := goldenFile(t, "gemma3n-tiny", "hello.bfloat16")
	dir := otherWeights(t, "gemma3n-tiny", "layers.3.mlp.down_proj.weight")
	unknown := func(m *capture.Manifest) { m.Weights, m.Model = "unknown", dir }
	compareThem := func(args ...string) (int, string) {
		var out, errOut bytes.Buffer
		code := run(append([]string{"tracediff", "compare", "--table"}, args...), nil, &out, &errOut)
		return code, out.String() + errOut.String()
	}
	right := edited(t, golden, unknown, nil)
	if code, text := compareThem(right, golden, "--all"); code != 0 || !strings.Contains(text, "0 BUG") {
		t.Errorf("a right trace: exit %d\n%s", code, tail(text))
	}

	home := filepath.Join(t.TempDir(), "home")
	var out, errOut bytes.Buffer
	if code := run([]string{"tracediff", "capture", "--side", "local", "--dir", home, "--level", "3", "--model", dir, "--tokens", tokensOf(passes), "--dtype", "bfloat16"}, nil, &out, &errOut); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	wrong := edited(t, filepath.Join(home, "local.safetensors"), unknown, nil)
	if code, text := compareThem(wrong, golden, "--all"); code != exitMismatch || !strings.Contains(text, "1 BUG") || !strings.Contains(text, "layers.3.mlp.down_proj") {
		t.Errorf("a trace of other weights: exit %d\n%s", code, tail(text))
	}
	// Named by hand, the checkpoint is not quietly replaced, and certifies nothing either: what was asked about it is not answered.
	if code, text := compareThem(right, golden, "--model", dir); code != exitMismatch || !strings.Contains(text, "nothing was certified: the weights of ") ||
		!strings.Contains(text, "INCOMPLETE: the weights of ") {
		t.Errorf("with --model: exit %d\n%s", code, tail(text))
	}
	if code, text := compareThem(right, golden, "--model", dir, "--require-certified"); code != exitMismatch || !strings.Contains(text, "certificates are required: the first is embed_tokens: the weights of ") {
		t.Errorf("with --model and --require-certified: exit %d\n%s", code, tail(text))
	}
	if code, text := compareThem(right, golden, "--model", dir, "--isolate"); code != exitUnusable || !strings.Contains(text, "are not those that the reference was made from") {
		t.Errorf("with --model and --isolate: exit %d\n%s", code, tail(text))
	}
}

// A model that is named with the weights of the reference and another configuration was not compared with: a port that declares no configuration matches the
// reference, which shows nothing of that model.
func TestANamedModelHasTheReferencesConfiguration(t *testing.T) {
	t.Parallel()
	golden, _, _, _ := goldenFile(t, "llama-tiny", "decode.float32")
	from, err := fs.Sub(ondisk.Files(), "llama-tiny")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "m2")
	must(t, os.CopyFS(dir, from))
	port := edited(t, golden, func(m *capture.Manifest) { m.Weights, m.Model, m.Config = "unknown", "", nil }, nil)
	with := func(dir string) (int, string) {
		var out, errOut bytes.Buffer
		code := run([]string{"tracediff", "compare", port, golden, "--model", dir}, nil, &out, &errOut)
		return code, strings.Join(strings.Fields(out.String()+errOut.String()), " ")
	}
	if code, text := with(dir); code != exitMatch {
		t.Errorf("the reference's model: exit %d\n%s", code, tail(text))
	}
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	must(t, err)
	wrong := regexp.MustCompile(`("rms_norm_eps": )[^,]+`).ReplaceAll(data, []byte("${1}0.01"))
	must(t, os.Chmod(path, 0o666))
	must(t, os.WriteFile(path, wrong, 0o666))
	if code, text := with(dir); bytes.Equal(wrong, data) || code != exitMismatch || !strings.Contains(text, "m2 differs from the reference's, in rms_norm_eps; capture the reference from the model") {
		t.Errorf("another epsilon: exit %d\n%s", code, tail(text))
	}
}
