package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What stands before the recipe of a page: the model and the tokens that it speaks of.
const (
	torchModel = `
import sys, torch, transformers
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32, attn_implementation="eager").eval()
ids = torch.tensor([[2, 113, 88, 129, 7, 64, 113, 0, 31, 96]])
`
	spoiledTorch = torchModel + `
with torch.no_grad():
    model.model.layers[1].mlp.down_proj.weight *= 1.01
`
	numpyModel = `
import sys, numpy as np, safetensors.torch
w = {name: x.float().numpy() for name, x in safetensors.torch.load_file(sys.argv[1] + "/model.safetensors").items()}
ids = np.array([2, 113, 88, 129, 7, 64, 113, 0, 31, 96])
embedding, weight = w["model.embed_tokens.weight"], w["model.layers.0.input_layernorm.weight"]
def rms_norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6)) * weight
`
	mlxModel = `
import json, pathlib, sys
import mlx.core as mx
from mlx_lm.utils import _get_classes
folder = pathlib.Path(sys.argv[1])
config = json.loads((folder / "config.json").read_text())
config["rope_theta"] = config["rope_parameters"]["rope_theta"]
kind, arguments = _get_classes(config)
model = kind(arguments.from_dict(config))
weights = {name: x.astype(mx.float32) for name, x in mx.load(str(folder / "model.safetensors")).items()}
model.load_weights(list((model.sanitize(weights) if hasattr(model, "sanitize") else weights).items()))
ids = mx.array([[2, 113, 88, 129, 7, 64, 113, 0, 31, 96]])
`
)

// The recipes of docs/ports.md are run as they stand there, and what they write is compared without a map. The
// interpreters that TRACEDIFF_PYTHON and TRACEDIFF_MLX name have torch and transformers, and mlx-lm.
func TestRecipes(t *testing.T) {
	recipes(t, "TRACEDIFF_PYTHON", "an interpreter that has torch and transformers")
}

func TestRecipeOfMLX(t *testing.T) { recipes(t, "TRACEDIFF_MLX", "an interpreter that has mlx-lm") }

func recipes(t *testing.T, variable, has string) {
	t.Helper()
	interpreter := os.Getenv(variable)
	if interpreter == "" {
		t.Skipf("needs %s: %s", variable, has)
	}
	root := sources(t)
	for _, c := range []struct {
		variable, recipe, model, before, dump string
		want                                  string // in the report
		exit                                  int
	}{
		{"TRACEDIFF_PYTHON", "PyTorch", "gemma3-tiny", torchModel, "port.pt", "\nMATCH: all 50 entries compared match", exitMatch},
		{"TRACEDIFF_PYTHON", "PyTorch", "qwen3-tiny", spoiledTorch, "port.pt", "\nfirst divergence: layers.1.mlp.down_proj (VALUE)", exitMismatch},
		{"TRACEDIFF_PYTHON", "numpy", "qwen3-tiny", numpyModel, "port.npz", "\nINCOMPLETE: 3 entries compared, none wrong", exitMismatch},
		{"TRACEDIFF_MLX", "MLX", "qwen3-tiny", mlxModel, "port.safetensors", "\nMATCH: all ", exitMatch},
	} {
		if c.variable != variable {
			continue
		}
		folder := t.TempDir()
		_, code, _ := strings.Cut(readPage(t, root, "docs/ports.md"), "**"+c.recipe+".**")
		_, code, ok := strings.Cut(code, "```python\n")
		code, _, closed := strings.Cut(code, "```")
		if !ok || !closed {
			t.Fatalf("docs/ports.md has no recipe for %s", c.recipe)
		}
		must(t, os.WriteFile(filepath.Join(folder, "port.py"), []byte(c.before+code), 0o666))
		cmd := exec.Command(interpreter, "port.py", filepath.Join(root, "fixtures", c.model))
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "OMP_NUM_THREADS=1", "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.recipe, err, text)
			continue
		}
		var out, errOut bytes.Buffer
		exit := run([]string{"tracediff", "compare", filepath.Join(folder, c.dump), filepath.Join(root, "fixtures/golden", c.model, "prefill.float32.safetensors")}, nil, &out, &errOut)
		if exit != c.exit || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.recipe, exit, c.exit, c.want, out.String(), errOut.String())
		}
	}
}
