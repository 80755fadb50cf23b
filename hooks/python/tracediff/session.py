"""Recording a model's program: the passes of a run, from the hooks on the model to the file.

A Session hooks a model: each outermost call of the model is one pass, recorded and named. `save` writes the file that
docs/formats.md describes.
"""

import contextlib
import gc
import itertools
import math
import os
import pathlib
import platform
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tracediff import program_file, recipes
from tracediff.errors import CaptureFailed
from tracediff.memory import Constant, content
from tracediff.names import Namer, _bound, _flat
from tracediff.program import Recording
from tracediff.program_file import Pass, Writer
from tracediff.weights import Checkpoint


@contextlib.contextmanager
def _old_objects_left() -> Iterator[None]:
    """Hide objects that exist already from the garbage collector.

    A recording makes many small objects. With every quarter more objects, the collector would go through all objects of
    torch and transformers, which takes as long as a forward pass. Objects that the caller has frozen stay frozen.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Session:
    """A model under recording."""

    def __init__(self, model: Any, checkpoint: str | os.PathLike[str] = "") -> None:
        """Prepare; the parameters are tensors of the folder `checkpoint`."""
        self._model, self._checkpoint = model, str(checkpoint)
        self.recording = Recording(model)
        text = _text(model)
        config = getattr(text, "config", None)
        self._config = config
        self.names = Namer(self.recording, model, text, getattr(config, "layer_types", None))
        self.passes: list[Pass] = []
        self._runs: list[int] = []  # the first passes of the runs after the wanted run
        self.why_alone = ""  # why no run of another length is recorded
        self._lengths: list[recipes.Lengths] = []
        self._inside = contextlib.ExitStack()

    @contextlib.contextmanager
    def running(self) -> Iterator["Session"]:
        """Record every call of the model within the block."""
        before = self._model.register_forward_pre_hook(self._begin, with_kwargs=True)
        self.names.attach()
        after = self._model.register_forward_hook(self._end, with_kwargs=True)
        try:
            with _old_objects_left():
                yield self
        finally:
            self._inside.close()
            self.names.detach()
            before.remove()
            after.remove()

    def again(self) -> None:
        """Begin another run of the model, which shares neither a cache nor constants with earlier runs."""
        self._runs.append(len(self.passes))
        self.recording.memory.forget()

    def undo(self) -> None:
        """Drop the last run, which failed."""
        self._inside.close()
        since = self._runs.pop()
        del self.passes[since:], self._lengths[since:]

    def others(self) -> list[Pass]:
        """Return the passes of the runs after the wanted run."""
        return self.passes[self._runs[0] :] if self._runs else []

    def alone(self, why: str) -> None:
        """Drop the runs after the wanted run; the file says why."""
        if self._runs:
            del self.passes[self._runs[0] :], self._lengths[self._runs[0] :]
        self._runs, self.why_alone = [], why

    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        given = _bound(module, args, kwargs)
        ids = next((t for k, t in given.items() if isinstance(t, torch.Tensor) and not t.is_floating_point()), None)
        for name, t in given.items():
            if isinstance(t, torch.Tensor) and not self.recording.memory.find(t).computed:
                self.recording.memory.made(t, frozenset((name if t is not ids else "input_ids",)))
        since = self._runs[-1] if self._runs else 0
        past = sum(one.tokens for one in self.passes[since:]) if self._cached(given) else 0
        shape = ids if ids is not None else torch.zeros((1, 0), dtype=torch.int64)
        self._lengths.append(recipes.Lengths(shape.detach().cpu().clone(), past, self._windows()))
        self._first = len(self.recording.steps)
        self.names.begin()
        self.names.tokens = self._lengths[-1].tokens
        if ids is not None:
            self.names.give("input_ids", ids, 1, -2)
        seen = given.get("attention_mask")
        if isinstance(seen, torch.Tensor) and seen.dim() == 2 and not bool(seen.all()):
            self.names.give("attention_mask", seen, 2, -1)  # padding is 0
        self._inside.enter_context(self.recording.running())

    def _end(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self._inside.close()
        logits = getattr(output, "logits", None)
        tensors = [logits] if isinstance(logits, torch.Tensor) else list(_flat(output))[:1]
        for tensor in tensors:
            if self.recording.memory.find(tensor).computed:
                self.names.give("logits" if logits is not None else "output", tensor, 1)
        at = self._lengths[-1]
        steps = self.recording.steps[self._first :]
        self.passes.append(Pass(at.tokens, at.past, steps, self.names.end()))
        self.recording.memory.purge()

    @staticmethod
    def _cached(given: dict[str, Any]) -> bool:
        cache = given.get("past_key_values", given.get("cache_params"))
        return cache is not None

    def _windows(self) -> tuple[int, ...]:
        found = (getattr(self._config, name, None) for name in ("sliding_window", "attention_chunk_size"))
        return tuple(n for n in found if isinstance(n, int) and n > 0)

    def text(self, head: dict[str, Any]) -> str:
        """Return the file of the recorded passes; `head` has further fields of its beginning."""
        if not self.passes:
            raise CaptureFailed("the model was not called: there is no program")
        writer = Writer(self.names.prefix)
        passes, templates = program_file.shared(writer, self.passes)
        if why := self._beyond(writer, templates):
            if self._runs:
                self.alone(f"longer prompts have {why}")
                return self.text(head)
            raise CaptureFailed(f"the program has {why}", "record fewer passes, or a shorter prompt")
        ends = [*self._runs, len(passes)]
        runs = [passes[a:b] for a, b in itertools.pairwise(ends)]
        if self.why_alone:
            head = {"alone": self.why_alone, **head}
        head = {"format": program_file.FORMAT, "version": program_file.VERSION, **self._head(), **head}
        with _disable_current_modes():
            weights, constants = self._weights(writer), self._constants(writer, passes)
        tables = {"weights": weights, "constants": constants, "lines": writer.lines}
        if any(writer.expressions):
            tables["expressions"] = writer.expressions
        return program_file.render(head, passes[: ends[0]], runs, templates, tables)

    def _beyond(self, writer: Writer, templates: list[list[str]]) -> str:
        """Return which limit of a reader the passes exceed; "" for none."""
        if sum(len(c.data) for c in writer.constants) > program_file.MAX_CONSTANTS:
            return f"more than {program_file.MAX_CONSTANTS >> 20} MiB of constants"
        if sum(math.prod(c.shape) for c in writer.constants) > program_file.MAX_NUMBERS:
            return f"more than {program_file.MAX_NUMBERS} numbers in constants"
        lines = [len(one.steps) + len(one.names) for one in self.passes]
        runs = list(itertools.pairwise([0, *self._runs, len(lines)]))
        if any(sum(lines[a:b]) > program_file.MAX_LINES for a, b in runs):
            return f"more than {program_file.MAX_LINES} steps and names"
        if sum(len(one) for one in templates) > program_file.MAX_WRITTEN:
            return f"more than {program_file.MAX_WRITTEN} steps and names that are not alike"
        operands = [sum(len(step.operands) + len(step.outs) for step in one.steps) for one in self.passes]
        if any(sum(operands[a:b]) > program_file.MAX_OPERANDS for a, b in runs):
            return f"more than {program_file.MAX_OPERANDS} operands and results"
        return "too many steps and names" if sum(lines) > program_file.MAX_ALL_LINES else ""

    def save(self, path: str | os.PathLike[str], head: dict[str, Any]) -> str:
        """Write the file, and return its digest."""
        with _old_objects_left():
            return program_file.write(path, self.text(head))

    def _head(self) -> dict[str, Any]:
        producer = {"torch": torch.__version__, "python": platform.python_version()}
        if "transformers" in sys.modules:
            producer["transformers"] = sys.modules["transformers"].__version__
        config = self._config.to_dict() if hasattr(self._config, "to_dict") else {}
        kind = type(self._model)
        return {
            "producer": producer,
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "dtype": program_file.main_dtype(self._model),
            "model_type": config.get("model_type", ""),
            "layers": self.names.prefix,
        }

    def _weights(self, writer: Writer) -> dict[str, Any]:
        checkpoint = Checkpoint(self._checkpoint)
        out: dict[str, Any] = {}
        for name, leaf in sorted(writer.leaves.items()):
            tensor = leaf.tensor
            one: dict[str, Any] = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
            place = checkpoint.describe(name, tensor) if checkpoint else {}
            if leaf.buffer and (not checkpoint or place.get("unknown")):
                copy = Constant(one["dtype"], tuple(tensor.shape), content(tensor), frozenset())
                one |= program_file.constant(copy, []) | {"buffer": True}
            else:
                one |= place
            out[name] = one
        return out

    def _constants(self, writer: Writer, passes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the constants, each with the recipes that hold in every pass of the constant."""
        made = []
        for c, where in zip(writer.constants, writer.passes, strict=True):
            common = [recipes.of(c, self._lengths[at]) for at in sorted(where)]
            made.append([r for r in common[0] if all(r in other for other in common[1:])])
        for together in _places(passes):
            shared = [r for r in made[together[0]] if all(r in made[i] for i in together[1:])]
            for i in together if shared else ():
                made[i] = shared
        return [program_file.constant(c, found) for c, found in zip(writer.constants, made, strict=True)]


def _places(passes: list[dict[str, Any]]) -> list[list[int]]:
    """Return the constants that calls of different passes have in one place of a template."""
    out: dict[tuple[int, int], list[int]] = {}
    for one in passes:
        for template, _, fill in one["calls"]:
            for hole, value in enumerate(fill):
                if isinstance(value, str) and value[0] == "c":
                    out.setdefault((template, hole), []).append(int(value[1:]))
    return [list(dict.fromkeys(found)) for found in out.values()]


def _text(model: Any) -> Any:
    """Return the part of a model that names are relative to: its decoder, or else its base, or else the whole model."""
    for find in ("get_decoder", "get_encoder"):
        with contextlib.suppress(Exception):
            found = getattr(model, find)()
            # A head may be called decoder too; the decoder of a model has layers.
            if found is not model and any(isinstance(m, torch.nn.ModuleList) for m in found.modules()):
                return found
    return getattr(model, "base_model", model)


def beside(trace: str | os.PathLike[str]) -> pathlib.Path:
    """Return the path of a trace's program: NAME.program.json in the folder of NAME.safetensors."""
    path = pathlib.Path(trace)
    return path.with_name(path.name.removesuffix(".safetensors") + ".program.json")
