"""The Python blocks of docs/ports.md: each block runs, and its dump is compared with transformers."""

import contextlib
import functools
import importlib.util
import io
import os
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from common import ROOT, TestCase
from safetensors.numpy import load_file
from tracediff import trace

MODEL = ROOT / "fixtures" / "qwen3-tiny"
GOLDEN = ROOT / "fixtures" / "golden" / "qwen3-tiny" / "prefill.float32.safetensors"
BLOCKS = ("PyTorch", "numpy", "MLX", "Python")


def blocks():
    """Return the blocks of Python of the page, by the bold word before each."""
    found, word, inside = {}, "", None
    for line in (ROOT / "docs" / "ports.md").read_text().splitlines():
        if inside is not None:
            if line == "```":
                found[word], inside = "\n".join(inside), None
            else:
                inside.append(line)
        elif line.startswith("**"):
            word = line[2:].partition(".**")[0]
        elif line == "```python":
            inside = []
    return found


@functools.cache
def tracediff():
    """Return the command, built once."""
    binary = os.path.join(tempfile.mkdtemp(), "tracediff")
    subprocess.run(["go", "build", "-o", binary, "./cmd/tracediff"], cwd=ROOT, check=True)
    return binary


def tokens():
    """Return the token ids of the golden, [1, T]."""
    with trace.Reader(GOLDEN) as reader:
        return reader.array("input_ids").copy()


def weights():
    """Return the checkpoint's weights as float32."""
    import safetensors.torch

    return {name: x.float().numpy() for name, x in safetensors.torch.load_file(MODEL / "model.safetensors").items()}


class Ports(TestCase):
    """Each block runs in its own folder, with the variables that the page names."""

    def run_block(self, word, names):
        """Run a block, and return the names that it left."""
        with contextlib.chdir(self.folder):
            exec(blocks()[word], names)
        return names

    def compare(self, dump, status):
        """Compare a dump with transformers, and return the report."""
        done = subprocess.run([tracediff(), "compare", dump, GOLDEN], env=os.environ | {"CI": ""}, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def check_match(self, dump, entries):
        """Fail unless a dump is right in so many entries, up to the logits."""
        self.assertIn(f"\nMATCH: all {entries} entries compared match", self.compare(dump, 0))

    def check_mismatch(self, dump, name):
        """Fail unless the comparison stops at an entry."""
        self.assertIn(f"\nfirst divergence: {name} ", self.compare(dump, 1))

    def test_every_block_is_run(self):
        self.assertEqual(tuple(blocks()), BLOCKS)

    def test_pytorch(self):
        import transformers

        model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
        names = {"torch": torch, "model": model, "ids": torch.from_numpy(tokens())}
        with contextlib.redirect_stderr(io.StringIO()):
            self.run_block("PyTorch", names)
        self.check_match("port.pt", 44)
        with torch.no_grad():
            model.model.layers[1].mlp.up_proj.weight *= 1.01
        self.run_block("PyTorch", names)
        self.check_mismatch("port.pt", "layers.1.mlp.up_proj")

    def test_numpy(self):
        w = weights()

        def rms_norm(x, weight, eps=1e-6):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * weight

        names = {
            "np": np,
            "ids": tokens(),
            "embedding": w["model.embed_tokens.weight"],
            "rms_norm": rms_norm,
            "weight": w["model.layers.0.input_layernorm.weight"],
        }
        self.run_block("numpy", names)
        self.assertIn("\nINCOMPLETE: 3 entries compared, none wrong", self.compare("port.npz", 1))
        names["rms_norm"] = functools.partial(rms_norm, eps=1e-3)
        self.run_block("numpy", names)
        self.check_mismatch("port.npz", "layers.0.input_layernorm")

    def test_recorder(self):
        y = np.ones((1, 2, 16), "f4")
        out = self.folder / "port.safetensors"
        self.run_block("Python", {"trace": trace, "out": out, "pass_index": 1, "y": y})
        np.testing.assert_array_equal(load_file(out)["pass1/layers.3.mlp.down_proj"], y)

    @unittest.skipUnless(importlib.util.find_spec("mlx_lm"), "needs mlx-lm: fixtures/wild/mlx/requirements.txt")
    def test_mlx(self):
        import json

        import mlx.core as mx
        from mlx_lm.utils import _get_classes

        config = json.loads((MODEL / "config.json").read_text())
        kind, settings = _get_classes(config | {"rope_theta": config["rope_parameters"]["rope_theta"]})
        model = kind(settings.from_dict(config | {"rope_theta": config["rope_parameters"]["rope_theta"]}))
        model.load_weights([(name, mx.array(x)) for name, x in weights().items()])
        self.run_block("MLX", {"mx": mx, "model": model, "ids": mx.array(tokens())})
        self.check_match("port.safetensors", 40)


if __name__ == "__main__":
    unittest.main()
