package job

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"

	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/order"
)

// Handed are the files that a program outside is handed: the model directory and the order file.
type Handed struct {
	Dir   string // of traces
	Model string // the directory that was named; empty: the embedded checkpoint is written out
}

// Handed are the files for programs that run the job.
func (j *Job) Handed() Handed { return Handed{j.Dir, j.Settings.Model} }

// Paths are where they are: the model directory and the order file.
func (h Handed) Paths() (model, order string, err error) {
	dir, err := filepath.Abs(h.Dir)
	if err != nil {
		return "", "", err
	}
	model = filepath.Join(dir, "model", origin.Embedded)
	if h.Model != "" {
		model, err = filepath.Abs(h.Model)
	}
	return model, filepath.Join(dir, "order.json"), err
}

// WriteModel writes the embedded checkpoint out when no other is named.
func (h Handed) WriteModel() error {
	if h.Model != "" {
		return nil
	}
	return WriteEmbedded(h.Dir)
}

// WriteOrder writes the file that {order} is.
func (h Handed) WriteOrder(l *order.List) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return files.WriteWhole(filepath.Join(h.Dir, "order.json"), append(text, '\n'))
}

// WriteEmbedded writes the embedded checkpoint under dir, for runners with a directory as input. It skips files
// with the same content, so their modification times stay true.
func WriteEmbedded(dir string) error {
	return fs.WalkDir(fixtures.Files, origin.Embedded, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fixtures.Files, name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, "model", filepath.FromSlash(name))
		if there, err := files.Read(path, int64(len(data))); err == nil && bytes.Equal(there, data) {
			return nil
		}
		return files.WriteWhole(path, data)
	})
}
