"""Helpers of the tests: the small checkpoints, their orders, and models that are loaded once."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
for switch in ("TRACEDIFF_DEBUG", "DEBUG"):
    os.environ.pop(switch, None)

import torch

from tracediff import attention, capture, model, order, trace

ROOT = pathlib.Path(__file__).resolve().parents[3]
TINY, ODD = ROOT / "fixtures" / "gemma3n-tiny", ROOT / "fixtures" / "gemma3n-odd"
PROMPT = [2, 417, 747, 609, 897, 374, 873, 1001]  # two windows of the tiny checkpoint

model.set_up(threads=1)


@functools.cache
def order_text(checkpoint: pathlib.Path) -> str:
    """Return the order of a checkpoint as the command prints it."""
    command = ["go", "run", "./cmd/tracediff", "order", "--model", str(checkpoint), "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


@functools.cache
def order_of(checkpoint: pathlib.Path) -> order.Order:
    """Return the order of a checkpoint."""
    return order.parse(order_text(checkpoint))


@functools.cache
def loaded(checkpoint: pathlib.Path, dtype: str) -> model.Loaded:
    """Return a model; captures do not change the model."""
    return model.load(checkpoint, dtype, "cpu", order_of(checkpoint))


def tensors(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """Return everything in a trace, in order, as the official package reads it."""
    import safetensors

    with trace.Reader(path) as reader:
        names = list(reader.tensors)
    with safetensors.safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in names}


class TestCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.where = ""  # the tensor of a failing assert_same

    def capture(self, checkpoint: pathlib.Path, dtype: str, job: capture.Job) -> dict[str, torch.Tensor]:
        """Run a job and return the trace's tensors."""
        out = self.folder / "trace.safetensors"
        capture.run(loaded(checkpoint, dtype), order_of(checkpoint), job, out)
        return tensors(out)

    def assert_same(self, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
        """Equal in dtype, shape and every bit."""
        what = f"{self.where} {what}".strip()
        self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape), what)
        self.assertTrue(attention.same_bits(a, b), f"{what}: {int((a != b).sum())} of {a.numel()} elements differ")


def python(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    env: dict[str, Any] = dict(os.environ) | {"PYTHONPATH": str(ROOT / "hooks" / "python")}
    return subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True)
