package portweights_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/gguf/gguftest"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/settings"
)

const wide = "../../fixtures/weights/wide"

// TestFoldersOfWeights: one GGUF file is read, and where there is a choice nobody makes it silently.
func TestFoldersOfWeights(t *testing.T) {
	q8, err := os.ReadFile("../../fixtures/weights/wide.Q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(wide + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	split := (&gguftest.Builder{}).Uint32("split.count", 3).Tensor("w", 0, make([]byte, 16), 4).Bytes()
	tests := []struct {
		name  string
		files map[string][]byte
		says  []string // of the error; nil: there is none
	}{
		{"one GGUF", map[string][]byte{"wide.Q8_0.gguf": q8}, nil},
		{"safetensors and what training left", map[string][]byte{"model.safetensors": plain, "optimizer.pt": {1}, "training_args.bin": {1}}, nil},
		{"two GGUF", map[string][]byte{"a.gguf": q8, "b.gguf": q8}, []string{"a.gguf", "b.gguf"}},
		{"two formats", map[string][]byte{"model.safetensors": plain, "wide.Q8_0.gguf": q8}, []string{"several formats", "model.safetensors", "wide.Q8_0.gguf"}},
		{"a part of a GGUF", map[string][]byte{"w-00001-of-00003.gguf": split}, []string{"one of 3 files"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r, err := portweights.Compare(context.Background(), settings.AskedWeights{Local: dir, Model: wide})
			if tt.says == nil {
				if err != nil || !r.Right() {
					t.Fatalf("%v, %+v", err, r)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range tt.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
		})
	}
}
