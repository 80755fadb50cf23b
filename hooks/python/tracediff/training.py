"""Training runs: the loss and the gradients of every step, in a trace that `tracediff check` reads.

    with training.Recorder("training.safetensors", model) as recorder:
        for batch in batches:
            loss = model(batch)
            loss.backward()
            recorder.step(loss)  # before the optimizer clears the gradients
            optimizer.step()
            optimizer.zero_grad()

A step is a pass of the trace: `loss`, then `grad/<name>` for each parameter, `pass<k>/` before them from the second
step on. A parameter whose gradient is None has no tensor in that step. The trace lists the expected names, so that such
a parameter can be told from a parameter that is not trained.
"""

import fnmatch
import json
import os
from collections.abc import Sequence
from typing import Any

from tracediff import trace
from tracediff.errors import BadInput

PREFIX = "grad/"  # before the name of a parameter
ROOM = 10  # steps for which the header has room at first


class Recorder:
    """Writes a trace of training steps. Use as a context manager: an exception marks the trace as failed.

    Memory does not grow with the steps; the file grows by the size of the gradients. `only` names the parameters to
    record, by patterns such as "layers.0.*"; without patterns, all parameters that require a gradient.
    """

    def __init__(self, path: str | os.PathLike[str], model: Any, only: Sequence[str] = ()) -> None:
        """Begin the trace `path` for a torch module."""
        import torch

        wanted = {name: p for name, p in model.named_parameters() if p.requires_grad and _matches(name, only)}
        if not wanted:
            raise BadInput("no parameter to record: none requires a gradient and matches", f"patterns are {list(only)}")
        for name in wanted:
            if "/" in name or "#" in name:
                raise BadInput(f"parameter {name!r}: a name in a trace has no '/' and no '#'")
        manifest = {
            "sequence": "execution",
            "producer": json.dumps({"name": "torch", "version": torch.__version__.split("+")[0]}, separators=(",", ":")),
            "model": type(model).__name__,
            "entries": json.dumps(["loss", *(PREFIX + name for name in wanted)], separators=(",", ":")),
        }
        self._parameters = wanted
        self._steps = 0
        # Room for ROOM steps: the number of steps is unknown, and a full header is copied into one of twice the length.
        step = [("loss", "F64", ()), *((trace.key(PREFIX + name, 99), "F32", tuple(p.shape)) for name, p in wanted.items())]
        reserved = ROOM * trace.reserve(step)
        self._writer = trace.Writer(path, {f"tracediff.{name}": value for name, value in manifest.items()}, reserved)

    def step(self, loss: Any) -> None:
        """Record a step: its loss, a tensor, and the gradients at this moment."""
        self._writer.append(trace.key("loss", self._steps), loss)
        for name, parameter in self._parameters.items():
            if parameter.grad is not None:
                gradient = parameter.grad
                if gradient.layout != _strided():
                    gradient = gradient.to_dense()
                self._writer.append(trace.key(PREFIX + name, self._steps), gradient)
        self._steps += 1

    def close(self) -> None:
        """Complete the trace under its final name."""
        self._writer.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: Any, err: BaseException | None, tb: Any) -> None:
        self._writer.__exit__(kind, err, tb)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _strided() -> Any:
    import torch

    return torch.strided
