package compare_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/fixtures"
)

func TestSightDraft(t *testing.T) {
	names, err := fs.Glob(fixtures.Files, "golden/*/*.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][]string{}
	type need struct{ golden, mistake string }
	var float []need
	for _, name := range names {
		dir := path.Base(path.Dir(name))
		ck, list := openModel(t, dir)
		trace := openGolden(t, name)
		i, err := certify.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), certify.IsolateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cpu := func() time.Duration {
			var r syscall.Rusage
			syscall.Getrusage(syscall.RUSAGE_SELF, &r)
			return time.Duration(r.Utime.Nano())
		}
		start := cpu()
		s, err := i.Sight(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d of %d seen, %d skipped, %v", name, len(s.Seen), s.Known, len(s.Skipped), (cpu() - start).Round(time.Millisecond))
		seen[name] = s.Seen
		for _, u := range s.Unseen {
			if u.ShownBy == "float32" {
				float = append(float, need{strings.Replace(strings.Replace(name, "bfloat16", "float32", 1), "float16", "float32", 1), u.Name})
			}
			t.Logf("   %s (%s) %v: %s", u.Name, u.Page, u.Rounding, u.ShownBy)
		}
	}
	for _, n := range float {
		if !slices.Contains(seen[n.golden], n.mistake) {
			t.Logf("FLOAT %v", n)
		}
	}
}
