package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
)

// An accepted divergence hides no other one: not one behind it, in a tensor that is computed from it, not one of the reference, and not a
// larger one in its own place.
func TestBaselineHidesNothingElse(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir(".tracediff", 0o777)) // where the noise floor is kept
	data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/hello.float32.safetensors")
	must(t, err)
	must(t, os.WriteFile("ref.st", data, 0o666))
	trace := func(path string, by map[string]func([]float32)) {
		t.Helper()
		changed{golden: "hello.float32", by: by}.write(t, path)
	}
	const first, second = "layers.1.mlp.down_proj", "layers.3.mlp.down_proj"
	trace("one.st", map[string]func([]float32){first: scale(1.01)})
	trace("two.st", map[string]func([]float32){first: scale(1.01), second: scale(1.0005)})
	trace("worse.st", map[string]func([]float32){first: scale(1.02)})
	trace("damaged.st", map[string]func([]float32){second: scale(1.0005)})
	do := func(code int, want string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if got := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("%v: exit status %d, want %d and %q\n%s%s", args, got, code, want, tail(out.String()), errOut.String())
		}
	}
	do(exitMismatch, "", "compare", "one.st", "ref.st", "--all", "-q", "--report", "json=out.json")
	do(exitMatch, "accepted: "+first, "accept", "out.json", "--reason", "one percent", "--until", "2099-01-31")
	do(exitMatch, "; 1 accepted divergence (baseline.toml)", "compare", "one.st", "ref.st", "--baseline", "baseline.toml", "-q")
	do(exitMismatch, "first "+second, "compare", "two.st", "ref.st", "--baseline", "baseline.toml", "-q")
	do(exitMismatch, "first "+second, "compare", "one.st", "damaged.st", "--baseline", "baseline.toml", "-q")
	do(exitMismatch, "first "+first, "compare", "worse.st", "ref.st", "--baseline", "baseline.toml", "-q")
}

// What was accepted of a tensor is passed on to all that is computed from it, also a factor of the whole tensor: whether such a factor
// cancels later is asked before the tensor is accepted, and the answers of then count no more.
func TestAnAcceptedFactorIsPassedOn(t *testing.T) {
	golden, passes, _, _ := goldenFile(t, "gemma3n-tiny", "hello.float32")
	doubled := changedWeights(t, "gemma3n-tiny", "layers.0.laurel.post_laurel_norm.weight", func(bits uint16) uint16 {
		if bits<<1 == 0 {
			return bits // zero
		}
		return bits + 0x80
	})
	t.Chdir(t.TempDir())
	do := func(code int, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if got := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); got != code {
			t.Errorf("%v: exit status %d, want %d\n%s%s", args, got, code, tail(out.String()), errOut.String())
		}
	}
	do(exitMatch, "capture", "--side", "local", "--dir", "home", "--level", "3", "--model", doubled, "--tokens", tokensOf(passes), "--dtype", "float32")
	local := edited(t, filepath.Join("home", "local.safetensors"), func(m *capture.Manifest) { m.Weights, m.Model = "unknown", "" }, nil)
	do(exitMismatch, "compare", local, golden, "--all", "-q", "--report", "json=out.json")
	do(exitMatch, "accept", "out.json", "--reason", "the norm is that of another run", "--until", "2099-01-31")
	do(exitMatch, "compare", local, golden, "--baseline", "baseline.toml", "-q")
}
