"""Names for the values of a recorded program: module outputs and inputs by path, and values inside attention.

A module's output has its path below the text model, and its input `path.in` where no module made that value. Values
with a usual name get that name: `layers.3.out`, `attn_residual`, `mlp.gated`, `self_attn.context`.
"""

import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import torch

from tracediff import attention_steps, called_names, layers
from tracediff.memory import Operand, Value, dense
from tracediff.program import Recording, Step
from tracediff.program_file import Name

KINDS = {"sliding_attention": "sliding", "full_attention": "full", "chunked_attention": "chunked"}
BOUNDARIES = ("o_proj", "down_proj", "out_proj", "dense_4h_to_h", "c_proj")
NORM = re.compile(r"(^|_)(norm|ln|layernorm|layer_norm|rmsnorm)", re.IGNORECASE)


@dataclasses.dataclass(order=True)
class Place:
    """Where a name stands: after a number of steps, then by rank, then in the order of firing."""

    steps: int
    rank: float
    seq: int


class Namer:
    """Gives names while a pass runs: attach() hooks every module, end() returns the names of the pass, in sequence."""

    def __init__(self, recording: Recording, outer: Any, text: Any, layer_types: list[str] | None = None) -> None:
        """Prepare for a model: `text` is the part that names are relative to."""
        self._recording, self._outer, self._text = recording, outer, text
        self._types = layer_types or []
        self._config = getattr(text, "config", None)
        self._kind = called_names.KINDS.get(getattr(self._config, "model_type", ""))
        self._stack: list[tuple[str, int]] = []
        self._handles = contextlib.ExitStack()
        self._paths = self._name_modules()
        self._layers: dict[str, int] = {}  # by name
        self._renamed: dict[str, tuple[str, int] | None] = {}  # replacements by name; None where the name stays
        self.fused: list[str] = []  # modules whose attention was one operation
        self.missed: list[str] = []  # names of scores that were not found before a softmax
        self.prefix = layers.path(self._paths)
        self._layer = re.compile(re.escape(self.prefix) + r"\.(\d+)")
        self.begin()

    def _name_modules(self) -> dict[Any, str]:
        """Return each module's path: below the text model, or else below the outer model."""
        out: dict[Any, str] = {}
        for name, module in self._text.named_modules():
            if name:
                out.setdefault(module, name)
        for name, module in self._outer.named_modules():
            if name and module is not self._text and not _contains(module, self._text):
                out.setdefault(module, name)
        return out

    def begin(self) -> None:
        """Start a pass."""
        self._names: list[tuple[Place, Name]] = []
        self._seen: dict[Any, str] = {}  # names by value and view
        self._calls: dict[str, int] = {}
        self._whole: set[Any] = set()  # values named in any order of axes
        self._layered = self._passed = False  # whether a layer has begun; whether one is done
        self._first = len(self._recording.steps)
        self._stack.clear()
        self._recording.scope = ""

    def attach(self) -> None:
        """Hook every module."""
        for module, path in self._paths.items():
            before = module.register_forward_pre_hook(self._before(path), with_kwargs=True)
            self._handles.callback(before.remove)
            self._handles.callback(module.register_forward_hook(self._after(path), with_kwargs=True).remove)
        if self._kind:
            modules = {path: module for module, path in self._paths.items()} | {"": self._text}
            self._handles.enter_context(called_names.watched(self._kind, modules, self.give))

    def detach(self) -> None:
        """Remove all hooks."""
        self._handles.close()

    def layer_of(self, name: str) -> int:
        """Return the layer of a name, -1 outside the layers."""
        if (layer := self._layers.get(name)) is None:
            found = self._layer.match(name)
            layer = self._layers[name] = int(found[1]) if found else -1
        return layer

    def give(self, name: str, tensor: Any, level: int, rank: float | None = None, place: int | None = None) -> None:
        """Name a tensor as it is now."""
        operand = self._operand(tensor)
        if operand is not None:
            self._give(name, operand, level, self._place(rank, place))

    def _place(self, rank: float | None = None, steps: int | None = None) -> Place:
        """Return the place of a value that fires now; before the layers, tables and masks follow other values."""
        rank = (1 if self._layered else 0) if rank is None else rank
        return Place(self._now if steps is None else steps, rank, len(self._names))

    @property
    def _now(self) -> int:
        return len(self._recording.steps)

    def _give(self, name: str, operand: Operand, level: int, place: Place) -> None:
        n = self._calls[name] = self._calls.get(name, -1) + 1
        name += f"#{n}" if n else ""
        self._seen.setdefault(_key(operand), name)
        self._whole.add(_whole(operand))
        one = Name(name, operand, level, self.layer_of(name), place.steps)
        if self._kind:
            self._rename(one)
        self._names.append((place, one))
        self._passed = self._passed or one.name.endswith(".out")
        self.named(one)
        for copy, original in (self._kind.copies if self._kind else {}).items():
            if original == one.name and isinstance(operand.of, Value):  # a copy stands where the original was computed
                place = Place(operand.of.step + 1, 0, len(self._names))
                self._names.append((place, Name(copy, operand, 1, -1, place.steps)))
                self.named(self._names[-1][1])

    def _rename(self, one: Name) -> None:
        if one.name not in self._renamed:
            self._renamed[one.name] = called_names.renamed(one.name, self._kind)
        if (found := self._renamed[one.name]) is not None:
            one.name, one.level = found
        called_names.split(one, self._kind, self._config)

    def named(self, name: Name) -> None:
        """Receive each name when it is given; the writer of a trace replaces this method."""

    def entered(self) -> None:
        """Receive the start of a module."""

    def left(self, outer: bool) -> None:
        """Receive the end of a module; `outer` says that no other hooked module is running."""

    def _operand(self, tensor: Any) -> Operand | None:
        self._recording.quiet = True
        try:
            if tensor.is_complex() and not tensor.is_conj():  # a trace has no complex dtype: two parts
                tensor = torch.view_as_real(tensor)
            return self._recording.operand(tensor)
        finally:
            self._recording.quiet = False

    def _computed(self, tensor: Any) -> bool:
        return isinstance(tensor, torch.Tensor) and self._recording.memory.find(tensor).computed

    def _before(self, path: str) -> Any:
        is_layer = bool(self._layer.fullmatch(path))

        def hook(module: Any, args: Any, kwargs: Any) -> None:
            self._stack.append((path, self._now))
            self._recording.scope = path
            self.entered()
            given = _bound(module, args, kwargs)
            if is_layer:
                self._enter_layer(path, given)
                return
            for i, (argument, tensor) in enumerate((k, t) for k, t in given.items() if self._computed(t)):
                operand = self._operand(tensor)
                if operand is None:
                    continue
                top = self.layer_of(path) < 0 and i == 0 and "." not in path and self._norm_at_end(path)
                if top or (self._new(operand) and _leafy(module)):
                    self._give_input(path, argument if i else "", operand, tensor)

        return hook

    def _new(self, operand: Operand) -> bool:
        """Report whether no name has these elements yet, in any order of axes."""
        whole = _whole(operand)
        return _key(operand) not in self._seen and (whole is None or whole not in self._whole)

    def _norm_at_end(self, path: str) -> bool:
        """Report whether this is the norm after the layers: some layer has run."""
        return self._passed and bool(NORM.search(path))

    def _give_input(self, path: str, argument: str, operand: Operand, tensor: Any) -> None:
        parent, _, child = path.rpartition(".")
        step = self._recording.steps[operand.of.step] if isinstance(operand.of, Value) else None
        name, level = f"{path}.in" + (f".{argument}" if argument else ""), 2
        layer = self.layer_of(path)
        if layer < 0 and self._norm_at_end(path):
            level = 1
        if step is not None and layer >= 0:
            if parent == f"{self.prefix}.{layer}" and step.op == "add" and NORM.search(child):
                name, level = f"{parent}.attn_residual", 1
            elif step.op == "mul" and child in ("down_proj", "w2", "wo", "c_proj", "fc2", "dense_4h_to_h"):
                name = f"{parent}.gated"
            elif parent and attention_steps.is_context(self._recording.steps, operand, self._first):
                name = f"{parent}.context"
        if name.split("#")[0] in self._calls and not name.endswith(".in"):
            name, level = f"{path}.in", 2
        self._give(name, operand, level, self._place())

    def _enter_layer(self, path: str, given: dict[str, Any]) -> None:
        n, self._layered = self.layer_of(path), True
        tensors = {k: t for k, t in given.items() if isinstance(t, torch.Tensor)}
        hidden = next((k for k, t in tensors.items() if self._computed(t)), None)
        for key, tensor in tensors.items():
            if self._computed(tensor):
                if key == hidden:
                    self.give(f"{path}.in", tensor, 2)
                elif (operand := self._operand(tensor)) and _key(operand) not in self._seen:
                    self.give(f"{path}.{key}", tensor, 3)
            elif key in ("attention_mask", "mask") or key.endswith("_mask"):
                kind = KINDS.get(self._types[n], self._types[n]) if n < len(self._types) else "full"
                if (name := f"mask.{kind}") not in self._calls:
                    rank = 0.4 if kind == "full" else 0.3
                    self.give(name, tensor, 3, rank, self._recording.memory.find(tensor).born)
            elif key == "position_ids" and key not in self._calls:
                self.give(key, tensor, 2, -1, self._first)

    def _after(self, path: str) -> Any:
        is_layer = bool(self._layer.fullmatch(path))

        def hook(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            while self._stack:
                inner, since = self._stack.pop()
                self._attention(inner, since)
                if inner == path:
                    break
            self._recording.scope = self._stack[-1][0] if self._stack else ""
            tensors = [t for t in _flat(output) if self._computed(t)]
            self._name_output(path, is_layer, module, (args, kwargs), tensors)
            self.left(not self._stack)

        return hook

    def _name_output(self, path: str, is_layer: bool, module: Any, call: Any, tensors: list[Any]) -> None:
        if not tensors:
            return
        if is_layer:
            self.give(f"{path}.out", tensors[0], 1)
        elif path.rpartition(".")[2].startswith("rotary") and len(tensors) == 2:
            kind = _bound(module, *call).get("layer_type")
            base = "rotary." + (KINDS.get(kind, str(kind)) + "." if kind else "")
            rank = 0.6 if kind == "full_attention" else 0.5
            for name, tensor in zip(("cos", "sin"), tensors, strict=True):
                self.give(base + name, tensor, 2, rank)
        else:
            self._give_output(path, module, tensors)

    def _attention(self, path: str, since: int) -> None:
        """Name the values inside an attention, when its module is done."""
        found = attention_steps.softmaxes(self._recording.steps, path, since)
        kernels = attention_steps.fused(self._recording.steps, path, since)
        if not found and not kernels:
            return
        steps = self._recording.steps[self._first :]
        if kernels and not found and path not in self.fused:
            self.fused.append(path)
        missed: list[Step] = []
        inside = [attention_steps.operands(kernel, steps, self._first, self.tokens) for kernel in kernels]
        if found:
            inside.append(attention_steps.names(found, steps, self._first, missed))
        for name, operand, level, at in itertools.chain.from_iterable(inside):
            if operand is not None:
                self._give(name, operand, level, Place(at + 1, 1, len(self._names)))
        self.missed += [f"{path}.scores"] * bool(missed)

    def _give_output(self, path: str, module: Any, tensors: list[Any]) -> None:
        operand = self._operand(tensors[0])
        if operand is None:
            return
        last = path.rpartition(".")[2]
        if isinstance(module, torch.nn.Embedding):
            self._lookup(path)
        held = self._seen.get(_key(operand), "")
        if not _leafy(module) and held.startswith(path + "."):
            return  # the output of the last module inside
        outside = self.layer_of(path) < 0 and (path == "embed_tokens" or self._norm_at_end(path))
        level = 1 if last in BOUNDARIES or outside else 2
        self._give(path, self._shown(path, operand), level, self._place())
        for i, tensor in enumerate(tensors[1:], 1):
            other = self._operand(tensor)
            if other is not None and _key(other) not in self._seen and _leafy(module):
                self._give(f"{path}.{i}", other, 3, self._place())

    def _lookup(self, path: str) -> None:
        for step in reversed(self._recording.steps[self._first :]):
            if step.op == "embedding":
                value = step.outs[0]
                place = self._place(None, step.index + 1)
                self._give(f"{path}.lookup", Operand(value, value.shape, value.stride, 0), 3, place)
                return

    def _shown(self, path: str, operand: Operand) -> Operand:
        """Return norms of heads as [1, rows, heads, width], where the module of the attention had heads before rows."""
        tokens = self.tokens
        if len(operand.shape) == 4 and NORM.search(path.rpartition(".")[2]) and self.layer_of(path) >= 0:
            one, heads, rows, width = operand.shape
            memory = operand.stride[2] > operand.stride[1] or heads != tokens
            if rows == tokens and one == 1 and memory and heads != tokens or (rows == heads == tokens and memory):
                return Operand(operand.of, (one, rows, heads, width), _swapped(operand.stride), operand.offset)
        return operand

    tokens = 0  # of the pass that runs

    def end(self) -> list[Name]:
        """Return the names of the pass, in sequence."""
        self._names.sort(key=lambda pair: pair[0])
        names = [name for _, name in self._names]
        return attention_steps.in_sequence(names, self._recording.steps, self._first)


def _swapped(stride: tuple[int, ...]) -> tuple[int, ...]:
    return stride[0], stride[2], stride[1], stride[3]


def _key(operand: Operand) -> Any:
    """Return a key that is equal for views of the same elements in the same order, however the axes are split."""
    axes: list[tuple[int, int]] = []
    for n, s in zip(operand.shape, operand.stride, strict=True):
        if n == 1:
            continue
        if axes and axes[-1][1] == n * s:
            axes[-1] = (axes[-1][0] * n, s)
        else:
            axes.append((n, s))
    return id(operand.of), tuple(axes), operand.offset


def _whole(operand: Operand) -> Any:
    """Return a key that is equal for views of the same memory without gaps; None for views with gaps."""
    axes = [(n, s) for n, s in zip(operand.shape, operand.stride, strict=True) if n != 1]
    if not dense(tuple(n for n, _ in axes), tuple(s for _, s in axes)):
        return None
    return id(operand.of), operand.offset, math.prod(operand.shape)


def _contains(module: Any, other: Any) -> bool:
    return any(m is other for m in module.modules())


def _leafy(module: Any) -> bool:
    """Report whether a module computes something: it has parameters of its own, or no inner modules."""
    return not any(True for _ in module.children()) or any(True for _ in module.parameters(recurse=False))


def _bound(module: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    forward = module.forward
    inner = getattr(forward, "__func__", None)  # the function of the class, for the cache of signatures
    known = _parameters(forward) if inner is None else _of_class(inner)
    if known is None:
        return {f"arg{i}": a for i, a in enumerate(args)} | dict(kwargs)
    names, rest = known if inner is None else (known[0][1:], known[1])  # without self
    out = dict(zip(names, args, strict=False))
    out.update((k, kwargs[k]) for k in names if k in kwargs)
    out.update((k, v) for k, v in kwargs.items() if k not in out)
    out.update((f"{rest}{i}", a) for i, a in enumerate(args[len(names) :]))
    return out


def _parameters(forward: Any) -> tuple[tuple[str, ...], str] | None:
    """Return the names of a function's positional parameters, and the name of *args; None for an unknown signature."""
    try:
        found = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    return plain, next((p.name for p in found if p.kind is p.VAR_POSITIONAL), "")


_of_class = functools.lru_cache(maxsize=1024)(_parameters)


def _flat(output: Any) -> Iterator[Any]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        yield from (t for v in output.values() for t in _flat(v) if isinstance(v, torch.Tensor))
    elif isinstance(output, list | tuple):
        for item in output:
            if isinstance(item, torch.Tensor):
                yield item
