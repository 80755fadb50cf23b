package ci_test

import (
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/ci"
	"github.com/tracediff/tracediff/internal/settings"
)

// Paths are written as they are from the working directory, and traces as they lie by default; what only looks like a path below
// it stays.
func TestPortable(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, text, want string }{
		{settings.DefaultDir, here + "/model", "model"},
		{settings.DefaultDir, "reading " + here + "/a: no; '" + here + "/b c'", "reading a: no; 'b c'"},
		{settings.DefaultDir, "/other" + here + "/model", "/other" + here + "/model"},
		{settings.DefaultDir, here + "/x" + here + "/y", "x" + here + "/y"},
		{settings.DefaultDir, here + "else/model", here + "else/model"},
		{settings.DefaultDir, here, here},
		{settings.DefaultDir, ".tracediff/local.safetensors", ".tracediff/local.safetensors"},
		{"scratch/0", "scratch/0/local.safetensors", ".tracediff/local.safetensors"},
		{"scratch/0/", "my-scratch/0/local.safetensors", "my-scratch/0/local.safetensors"},
		{"/tmp/7", "/tmp/7/references/a.safetensors", ".tracediff/references/a.safetensors"},
		{"/tmp/7", "make one: tracediff capture --dtype float32 --dir /tmp/7; or", "make one: tracediff capture --dtype float32; or"},
	} {
		r := ci.Portable(report.Run{Hint: c.text, Result: &compare.Result{Notes: []string{c.text}, Local: compare.Side{Path: c.text}}}, c.dir)
		for _, got := range []string{r.Hint, r.Result.Notes[0], r.Result.Local.Path} {
			if got != c.want {
				t.Errorf("--dir %s, %q: %q, want %q", c.dir, c.text, got, c.want)
			}
		}
	}
}
