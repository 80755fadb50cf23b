package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
)

// goldens writes every golden into a folder and returns their paths.
func goldens(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	must(t, ondisk.Copy(folder))
	paths, err := fs.Glob(os.DirFS(folder), "golden/*/*.safetensors")
	must(t, err)
	if len(paths) < 40 {
		t.Fatalf("%d goldens", len(paths))
	}
	for i := range paths {
		paths[i] = filepath.Join(folder, filepath.FromSlash(paths[i]))
	}
	return paths
}

// Of every golden every tensor is listed with finite statistics, and the logits of the last pass choose the token that the
// next pass was fed.
func TestInspectGoldens(t *testing.T) {
	t.Parallel()
	for _, path := range goldens(t) {
		tr, err := capture.Open(path)
		must(t, err)
		records, last := tr.Records(), tr.Records()[len(tr.Records())-1]
		must(t, tr.Close())
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "inspect", path}, nil, &out, &errOut); code != exitMatch || errOut.Len() > 0 {
			t.Fatalf("%s: exit status %d: %s", path, code, errOut.String())
		}
		text := out.String()
		if want := fmt.Sprintf("\n%d tensors, ", len(records)); !strings.Contains(text, want) || strings.Count(text, "\n") != len(records)+5 {
			t.Errorf("%s: %d lines, and not%s", path, strings.Count(text, "\n"), want)
		}
		for _, bad := range []string{"NaN", "Inf", "order:"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %s in\n%s", path, bad, text)
			}
		}
		if last.Pass > 0 {
			checkChoice(t, path, last.Pass)
		}
	}
}

// inspected is what the tests read of the JSON.
type inspected struct {
	Result struct {
		Tensors []struct {
			Values *struct {
				Values []float64 `json:"values"`
			} `json:"values"`
			Logits *struct {
				Top []struct {
					ID int `json:"id"`
				} `json:"top"`
			} `json:"logits"`
		} `json:"tensors"`
	} `json:"result"`
}

// checkChoice compares the choice of a pass with the ids of the next one.
func checkChoice(t *testing.T, path string, pass int) {
	t.Helper()
	look := func(key string) inspected {
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "inspect", path, key, "--format", "json"}, nil, &out, &errOut); code != exitMatch {
			t.Fatalf("%s %s: exit status %d: %s", path, key, code, errOut.String())
		}
		var doc inspected
		must(t, json.Unmarshal(out.Bytes(), &doc))
		return doc
	}
	chosen := look(capture.Key(pass-1, "logits", 0)).Result.Tensors[0].Logits
	fed := look(capture.Key(pass, "input_ids", 0)).Result.Tensors[0].Values
	if chosen == nil || fed == nil || len(fed.Values) != 1 || float64(chosen.Top[0].ID) != fed.Values[0] {
		t.Errorf("%s: pass %d chose %+v, and pass %d was fed %+v", path, pass-1, chosen, pass, fed)
	}
}
