package origin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/order"
)

// Embedded is the checkpoint that runs when no model is named.
const Embedded = "gemma3n-tiny"

// Open opens the model in a directory, and the directory; an empty dir is the embedded checkpoint.
func Open(dir string) (ck *checkpoint.Checkpoint, folder fs.FS, err error) {
	if dir == "" {
		if folder, err = fs.Sub(fixtures.Files, Embedded); err != nil {
			return nil, nil, err
		}
		ck, err = checkpoint.OpenFS("fixtures/"+Embedded, folder)
		return ck, folder, err
	}
	if ck, err = checkpoint.Open(dir); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	return ck, os.DirFS(dir), nil
}

// ReadConfig reads only the config.json of a directory. An empty dir is the embedded checkpoint.
func ReadConfig(dir string) (*order.Config, error) {
	var data []byte
	var err error
	if dir == "" {
		data, err = fs.ReadFile(fixtures.Files, Embedded+"/"+checkpoint.ConfigFile)
	} else {
		data, err = checkpoint.ReadConfig(os.DirFS(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return order.ReadConfig(data)
}

// OnDisk is the folder of a checkpoint. An embedded one is written to a folder that done removes.
func OnDisk(ck *checkpoint.Checkpoint) (dir string, done func(), err error) {
	name, embedded := strings.CutPrefix(ck.Name(), "fixtures/")
	if _, err := fs.Stat(fixtures.Files, name); !embedded || err != nil {
		return ck.Name(), func() {}, nil
	}
	if dir, err = files.MkdirTemp("tracediff-*"); err != nil {
		return "", nil, err
	}
	sub, err := fs.Sub(fixtures.Files, name)
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, name), sub)
	}
	done = func() { _ = os.RemoveAll(dir) } // of a folder of the system's
	if err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(dir, name), done, nil
}
