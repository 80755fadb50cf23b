package dump_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/dump"
)

// A folder of more files than any run leaves behind is refused before one is opened: that none of these is a dump is not said.
func TestFoldersHaveBounds(t *testing.T) {
	folder := t.TempDir()
	one := filepath.Join(folder, "x.npy")
	if err := os.WriteFile(one, []byte("To whom it may concern"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i := range 25_000 {
		if err := os.Symlink(one, filepath.Join(folder, fmt.Sprintf("%d.npy", i))); err != nil {
			t.Skip(err)
		}
	}
	if _, err := dump.OpenDir(folder); err == nil || !strings.Contains(err.Error(), "more than 25000 files") {
		t.Error(err)
	}
}
