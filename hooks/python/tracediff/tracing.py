"""The trace of a recorded run: each named tensor as it is when its name is known.

Names inside attention are known when the attention's module is done; by then most tensors of the module are freed. So
tensors of a module are held until the module is done, and its results until the enclosing module is done.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tracediff import host, lengths, program_file, trace
from tracediff.attention import unseen
from tracediff.errors import BadInput, CaptureFailed
from tracediff.memory import Leaf, Operand, Value
from tracediff.program_file import Name
from tracediff.session import Session, beside

NUMBERED = re.compile(r"\.\d+(\.|$)")  # a module of a list, by its number
SHOWN = 8  # missed names in one line


class Tracer:
    """Writes the named tensors of a session into a trace, and the program into the same folder."""

    def __init__(self, session: Session, out: str | os.PathLike[str], manifest: dict[str, str]) -> None:
        """Begin the trace `out`."""
        self.session, self._manifest = session, manifest
        self.writer = trace.Writer(out, manifest)
        self._declares = manifest.get("tracediff.side") == "reference"
        self._held: list[dict[int, tuple[Value, Any]]] = []
        self._names: list[str] = []
        self._passes = 0  # of the trace, once it is complete; 0 until then
        self._gone: list[str] = []  # names whose tensors were freed before the name was known
        recording, names = session.recording, session.names
        recording.before, recording.after = self._before, self._after
        names.named, names.entered, names.left = self._named, self._entered, self._left

    def rest(self) -> None:
        """Stop writing: the trace is complete, and later runs go only into the program."""
        recording, names = self.session.recording, self.session.names
        recording.before = recording.after = names.named = lambda _: None
        names.entered, names.left = lambda: None, lambda outer: None
        self._held, self._passes = [], len(self.session.passes)

    def _entered(self) -> None:
        self._held.append({})

    def _left(self, outer: bool) -> None:
        """Release the tensors of a module, except tensors that the enclosing module may still use."""
        names = self.session.names
        depth = len(names._stack)
        # A module that only holds layers needs no tensors of the layers; it would keep a part of each layer until the
        # end.
        about = depth > 1 or (depth == 1 and bool(NUMBERED.search(names._stack[-1][0])))
        while len(self._held) > depth:
            inner = self._held.pop()
            last = list(inner.values())[-4:]  # the module's results are among them
            if self._held and about:
                self._held[-1].update({id(value): (value, flat) for value, flat in last})

    def _after(self, tensors: list[Any]) -> None:
        if not self._held:
            return
        for t in tensors:
            value = self.session.recording.memory.find(t).value
            if value is not None:
                self._held[-1][id(value)] = value, _flat(t)

    def _before(self, tensors: list[Any]) -> None:
        """Copy held memory before it is overwritten."""
        for t in tensors:
            value = self.session.recording.memory.find(t).value
            for held in self._held:
                if value is not None and id(value) in held:
                    held[id(value)] = value, _flat(t).clone()

    def _named(self, name: Name) -> None:
        with unseen():
            tensor = self._tensor(name)
        if tensor is None:
            self._gone.append(name.name)
            return
        self.writer.append(trace.key(name.name, len(self.session.passes)), tensor)
        if not self.session.passes:
            self._names.append(name.name)

    def _tensor(self, name: Name) -> Any:
        operand = name.operand
        of = operand.of
        if isinstance(of, Value):
            flat = self._memory(of)
            if flat is None:
                flat = self._copy(of)
            if flat is None:
                return None
            return torch.as_strided(flat, operand.shape, operand.stride, operand.offset).clone()
        if isinstance(of, Leaf):
            start = of.tensor.storage_offset() + operand.offset
            return torch.as_strided(of.tensor.detach(), operand.shape, operand.stride, start).clone()
        if of is None:
            return None
        dtype = getattr(torch, of.dtype)
        flat = torch.frombuffer(bytearray(of.data), dtype=dtype) if of.data else torch.empty(0, dtype=dtype)
        return torch.as_strided(flat, operand.shape, operand.stride, operand.offset).clone()

    def _memory(self, of: Value) -> Any:
        """Return the memory of a value; None where the memory was freed."""
        for held in reversed(self._held):
            if id(of) in held:
                return held[id(of)][1]
        step = self.session.recording.steps[of.step]
        if step.op == "bits":  # the memory of another value, read in another dtype
            flat = self._memory(step.operands[0].of) if isinstance(step.operands[0].of, Value) else None
            return None if flat is None else flat.view(getattr(torch, of.dtype))
        return self.session.recording.memory.alive(of)

    def _copy(self, of: Value) -> Any:
        """Return the memory of a copy of a value, as in a cache that outlives the value; None without a copy."""
        for step in self.session.recording.steps[of.step + 1 :]:
            source = step.operands[0] if step.op == "to" and step.operands else None
            if not isinstance(source, Operand) or source.of is not of or source.offset:
                continue
            copy = step.outs[0]
            if (source.shape, source.stride, of.dtype) == (of.shape, of.stride, copy.dtype) and copy.stride == of.stride:
                flat = self._memory(copy)
                if flat is not None:
                    return flat
        return None

    @property
    def missed(self) -> list[str]:
        """Names that are not in the trace: scores that were not found about a softmax, and tensors that were freed."""
        return list(dict.fromkeys([*self.session.names.missed, *self._gone]))

    @property
    def told(self) -> str:
        """The number of names in the first pass, and the missed names, as a line."""
        few = ", ".join(self.missed[:SHOWN]) or "none"
        more = f" and {len(self.missed) - SHOWN} more" if len(self.missed) > SHOWN else ""
        return f"names found: {len(self._names)}; missed: {few}{more}"

    def close(self) -> None:
        """Write the program, and complete the trace."""
        # A port has names of its own: the expected entries come from the reference's program, or from a map.
        declared = {"tracediff.entries": json.dumps(self._names, separators=(",", ":"))} if self._declares else {}
        if fused := self.session.names.fused:
            declared["tracediff.fused"] = json.dumps(fused, separators=(",", ":"))
        more = declared | {
            "tracediff.names": json.dumps({"found": len(self._names), "missed": self.missed}, separators=(",", ":")),
            "tracediff.passes": str(self._passes or len(self.session.passes)),
            "tracediff.program": self.session.save(beside(self.writer.path), {}),
        }
        self.writer.amend(more)
        self.writer.close()


@contextlib.contextmanager
def recording(
    model: Any,
    out: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str] = "",
    side: str = "local",
    prompt: str = "",
) -> Iterator[Tracer]:
    """Record every call of a model within the block, as tracediff.recording does."""
    session = Session(model, checkpoint)
    tracer = Tracer(session, out, manifest(model, str(checkpoint), side, prompt))
    try:
        with session.running():
            yield tracer
        tracer.close()
    except BaseException as err:
        tracer.writer.fail(f"{type(err).__name__}: {err}")
        raise


def run(
    model: Any,
    checkpoint: str,
    passes: Sequence[Sequence[int]],
    decode: int,
    out: str | os.PathLike[str],
    prompt: str,
    most: int = 0,
) -> tuple[list[list[int]], str]:
    """Record a model of transformers on token ids; return the ids that each pass was fed, and a text about the names.

    The first pass is the prompt; the other passes, and `decode` decode steps with the most likely token, use the cache.
    A model without a cache runs one pass. With `most` the program gets runs of other lengths, up to `most` tokens.
    """

    def call(ids: Sequence[int], before: Any) -> Any:
        cache = _cache(before) if before is not None else {}
        return model(input_ids=torch.tensor([list(ids)], device=model.device), **cache)

    vocabulary = model.config.get_text_config().vocab_size
    wrong = [i for ids in passes for i in ids if not 0 <= i < vocabulary]
    if wrong:
        raise BadInput(f"token {wrong[0]} is not in the vocabulary of {vocabulary}", f"ids are 0 to {vocabulary - 1}")
    fed: list[list[int]] = []
    output: Any = None
    try:
        # Not inference_mode, which keeps compositions whole: the recording would take each apart in Python.
        with torch.no_grad(), recording(model, out, checkpoint, "reference", prompt) as tracer:
            for index in range(len(passes) + decode):
                given = index < len(passes)
                ids = list(passes[index]) if given else [int(output.logits[0, -1].argmax())]
                output = call(ids, output)
                fed.append(ids)
            told = tracer.told
            if most:
                tracer.rest()
                told += "\n" + _lengths(tracer.session, call, passes[0], most, model.config.get_text_config())
    except (RuntimeError, MemoryError, TypeError, ValueError, AttributeError, LookupError) as err:
        raise CaptureFailed(f"pass {len(fed)}: {type(err).__name__}: {err}") from err
    return fed, told


def _lengths(session: Session, call: lengths.Call, ids: Sequence[int], most: int, config: Any) -> str:
    """Record runs of other lengths, and return the result as a line."""
    if why := lengths.record(session, call, ids, most, config):
        return f"lengths: only this one: {why}"
    return f"lengths: {', '.join(str(one.tokens) for one in session.others() if one.past == 0)} tokens, too"


def _cache(output: Any) -> dict[str, Any]:
    """Return the argument that passes on the cache of the pass before."""
    for name in ("past_key_values", "cache_params", "state"):
        if getattr(output, name, None) is not None:
            return {name: getattr(output, name), "use_cache": True}
    raise CaptureFailed(
        f"{type(output).__name__} has no cache: the model runs one pass",
        "give one pass of --tokens, and no --max-new-tokens",
    )


def manifest(model: Any, checkpoint: str, side: str, prompt: str) -> dict[str, str]:
    """Return the manifest's fields that are known before a run begins."""
    versions = {"torch": torch.__version__}
    config = getattr(model, "config", None)
    name = "transformers" if hasattr(config, "model_type") else "torch"
    if name == "transformers":
        import transformers

        versions["transformers"] = transformers.__version__
    producer = {"name": name, "version": versions[name], "details": host.details(versions, "cpu")}
    parameter = next(iter(model.parameters()), torch.empty(0))
    out = {
        "sequence": "execution",
        "side": side,
        "scope": '{"level":3}',
        "producer": json.dumps(producer, separators=(",", ":")),
        "model": checkpoint,
        "weights": host.weights_digest(checkpoint) if checkpoint else "",
        "port": host.port(checkpoint),
        "dtype": program_file.main_dtype(model),
        "device": str(parameter.device),
        "prompt": prompt,
    }
    return {f"tracediff.{key}": value for key, value in out.items() if value}


def _flat(tensor: Any) -> Any:
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.as_strided(tensor.detach(), (count,), (1,), 0)
