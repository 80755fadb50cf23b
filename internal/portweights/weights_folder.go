package portweights

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/hint"
)

// training matches the files a training run writes next to weights.
var training = regexp.MustCompile(`^(?:optimizer|scheduler|scaler|rng_state|training_args)`)

// weightsIn returns the names of a folder's weight files by format, sorted by name. It returns nil for a path other
// than a folder.
func weightsIn(path string) map[string][]string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // which the reader of the weights says
	}
	found := map[string][]string{}
	for _, e := range entries {
		format := strings.TrimPrefix(filepath.Ext(e.Name()), ".")
		switch {
		case e.IsDir() || training.MatchString(e.Name()):
			continue
		case format == "pt", format == "pth", format == "bin" && strings.HasPrefix(e.Name(), "pytorch_model"):
			format = "torch"
		case format != "safetensors" && format != "gguf" && format != "npz":
			continue
		}
		found[format] = append(found[format], e.Name())
	}
	return found
}

// inSeveralFormats returns the first file of each weight format in a folder with several formats, and nil for every
// other folder.
func inSeveralFormats(path string) []string {
	in := weightsIn(path)
	if len(in) < 2 {
		return nil
	}
	var names []string
	for _, format := range []string{"safetensors", "gguf", "npz", "torch"} {
		if list := in[format]; len(list) > 0 {
			names = append(names, list[0])
		}
	}
	return names
}

// theGGUF returns the path of the only GGUF file in a folder without other weights, or the first part of a split
// GGUF file. Otherwise it returns path unchanged.
func theGGUF(path string) (string, error) {
	in := weightsIn(path)
	switch list := in["gguf"]; {
	case len(in) != 1 || len(list) == 0:
		return path, nil
	case len(list) == 1:
		return filepath.Join(path, list[0]), nil
	case !slices.ContainsFunc(list, func(n string) bool { return !slices.Contains(gguf.Parts(list[0]), n) }):
		return filepath.Join(path, list[0]), nil
	default:
		return "", hint.Add(fmt.Errorf("%s has %d GGUF files: %s", path, len(list), strings.Join(list[:min(len(list), 4)], ", ")), "name the file that is meant")
	}
}
