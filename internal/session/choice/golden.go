package choice

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
)

// golden looks for a golden among the embedded ones, and then among golden/NAME/*.safetensors next to the model's folder
// NAME, as the folder fixtures of a checkout has them. It returns nil if none fits.
func (c chooser) golden() (*Found, error) {
	f, err := c.goldenIn(fixtures.Files, "*")
	if dir, err2 := filepath.Abs(c.job.Settings.Model); f == nil && err == nil && err2 == nil && c.job.Settings.Model != "" {
		return c.goldenIn(os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
	}
	return f, err
}

func (c chooser) goldenIn(files fs.FS, checkpoint string) (*Found, error) {
	t, passes, err := reference.Golden(files, checkpoint, c.job.Wanted(reference.Transformers))
	if t == nil || err != nil {
		return nil, err
	}
	return &Found{Trace: t, Label: "golden", Passes: passes, files: files}, nil
}
