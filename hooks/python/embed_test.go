package python_test

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks/python"
)

// What is embedded is the whole package: a module in a subfolder, or of another ending, would be missing from it.
func TestTheWholePackageIsEmbedded(t *testing.T) {
	files := 0
	err := fs.WalkDir(os.DirFS("."), "tracediff", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		files++
		want, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if got, err := python.Files.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not embedded as it is: %v", name, err)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
}

// The two places that name the pinned versions name the same.
func TestPinsAgree(t *testing.T) {
	requirements, err := python.Files.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	host, err := python.Files.ReadFile("tracediff/host.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"torch", "transformers"} {
		_, rest, ok := strings.Cut(string(requirements), "\n"+name+"==")
		version, _, _ := strings.Cut(rest, "\n")
		if pin := `"` + name + `": "` + version + `"`; !ok || !strings.Contains(string(host), pin) {
			t.Errorf("requirements.txt pins %s %q, host.py does not say %s", name, version, pin)
		}
	}
}
