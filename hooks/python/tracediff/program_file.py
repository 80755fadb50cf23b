"""The file of a recorded program, as docs/formats.md describes it: from steps and names to its JSON."""

import base64
import dataclasses
import hashlib
import json
import math
import os
import pathlib
from typing import Any

from tracediff.memory import Constant, Leaf, Operand, Value, dtype_name, plain, row_major
from tracediff.program import Step
from tracediff.templates import Block, share

FORMAT, VERSION = "tracediff program", 1

# Limits of a file, as docs/formats.md says: a reader refuses more.
MAX_CONSTANTS = 44 << 20  # bytes of constants
MAX_NUMBERS = 17 << 19  # in constants
MAX_LINES, MAX_ALL_LINES = 1 << 18, 1 << 19  # steps and names of a run, and of all runs
MAX_WRITTEN = 1 << 17  # steps and names in all templates
MAX_OPERANDS = 3 << 18  # operands and results of a run


@dataclasses.dataclass
class Name:
    """A name of a value at one moment: `before` is the number of steps at that moment."""

    name: str
    operand: Operand
    level: int
    layer: int
    before: int


@dataclasses.dataclass
class Pass:
    """One forward call: number of tokens, number of tokens before, steps, and names in sequence."""

    tokens: int
    past: int
    steps: list[Step]
    names: list[Name]


class Writer:
    """Turns passes into the file's objects: numbers values, constants and lines of source."""

    def __init__(self, prefix: str) -> None:
        """Begin; `prefix` is the path of the list of layers, such as "layers"."""
        self._prefix = prefix
        self._values: dict[int, int] = {}  # numbers by identity
        self._kept: list[Value] = []  # keeps values, so that no identity is used again
        self._constants: dict[int, int] = {}
        self.constants: list[Constant] = []
        self.passes: list[set[int]] = []  # the passes that each constant stands in
        self._pass = -1
        self.leaves: dict[str, Leaf] = {}
        self._places: dict[tuple[str, str], int] = {}  # lines of source with the expressions there

    def blocks(self, one: Pass) -> list[Block]:
        """Return the steps and names of a pass, cut where the layer changes.

        Steps are ordered so that each name follows right after the steps that it needs.
        """
        self._pass += 1
        by_index = {step.index: step for step in one.steps}
        blocks: list[Block] = []
        for name in one.names:
            for index in sorted(self._needed(name.operand, by_index)):
                self._emit(blocks, name.layer, by_index.pop(index))
            self._block(blocks, name.layer).lines.append(
                {"name": name.name, "of": self._ref(name.operand, self._block(blocks, name.layer)), "level": name.level}
            )
        for index in sorted(by_index):
            self._emit(blocks, -1, by_index[index])
        return blocks

    @staticmethod
    def _needed(operand: Operand, steps: dict[int, Step]) -> set[int]:
        found: set[int] = set()
        todo = [operand]
        while todo:
            of = todo.pop().of
            if isinstance(of, Value) and of.step in steps and of.step not in found:
                found.add(of.step)
                todo.extend(o for o in steps[of.step].operands if isinstance(o, Operand))
        return found

    @staticmethod
    def _block(blocks: list[Block], layer: int) -> Block:
        if not blocks or blocks[-1].layer != layer:
            blocks.append(Block(layer, []))
        return blocks[-1]

    def _emit(self, blocks: list[Block], layer: int, step: Step) -> None:
        block = self._block(blocks, layer)
        line: dict[str, Any] = {"op": step.op, "in": [self._ref(o, block) for o in step.operands]}
        line["out"] = [self._out(v) for v in step.outs]
        if step.attrs:
            line["attr"] = {k: _plain(v) for k, v in step.attrs.items()}
        line["at"] = self._places.setdefault((step.line, step.expression), len(self._places))
        for value in step.outs:
            block.values[id(value)] = len(block.values)
            self._values[id(value)] = len(self._values)
            self._kept.append(value)
        block.lines.append(line)

    @staticmethod
    def _out(value: Value) -> list[Any]:
        out: list[Any] = [value.dtype, list(value.shape)]
        return out if plain(value.shape, value.stride) else [*out, list(value.stride)]

    def _ref(self, operand: Any, block: Block) -> Any:
        if operand is None:
            return None
        if not isinstance(operand, Operand):
            return _plain(operand)
        of = operand.of
        shape, stride = tuple(operand.shape), tuple(operand.stride)
        if of is None:
            return ["none", list(shape)]
        if isinstance(of, Value):
            ref = f"t{block.values[id(of)]}" if id(of) in block.values else f"v{self._values[id(of)]}"
            own = of.shape, of.stride
        elif isinstance(of, Leaf):
            ref, own = f"w:{of.name}", (tuple(of.tensor.shape), tuple(of.tensor.stride()))
            self.leaves[of.name] = of
        else:
            ref, own = f"c{self._constant(of)}", (of.shape, row_major(of.shape))
        if operand.offset == 0 and shape == own[0] and _same(shape, stride, own[1]):
            return ref
        return [ref, list(shape), list(stride), operand.offset]

    def _constant(self, constant: Constant) -> int:
        if id(constant) not in self._constants:
            self._constants[id(constant)] = len(self.constants)
            self.constants.append(constant)
            self.passes.append(set())
        at = self._constants[id(constant)]
        self.passes[at].add(self._pass)
        return at

    @property
    def lines(self) -> list[str]:
        """Return the lines of source, by number."""
        return [line for line, _ in self._places]

    @property
    def expressions(self) -> list[str]:
        """Return the expressions on the lines of source, by number; "" for an unknown expression."""
        return [expression for _, expression in self._places]


def _same(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(n == 1 or x == y for n, x, y in zip(shape, a, b, strict=True))


def _plain(value: Any) -> Any:
    """Return a setting as JSON; NaN and infinities, which JSON does not have, become {"number": NAME}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if value != value else "inf" if value > 0 else "-inf"}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return str(value)


def constant(c: Constant, made: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a constant's object; `made` has the recipes that make the constant again."""
    out: dict[str, Any] = {"dtype": c.dtype, "shape": list(c.shape)}
    out["from"] = made
    if c.origin:
        out["depends"] = sorted(c.origin)
    if not made:
        out["data"] = base64.b64encode(c.data).decode()
    out["sha256"] = hashlib.sha256(c.data).hexdigest()
    return out


def render(
    head: dict[str, Any], passes: list[Any], runs: list[list[Any]], templates: list[Any], tables: dict[str, Any]
) -> str:
    """Return the file's text: a step, a weight or a call a line."""
    parts = [f"{_json(k)}:{_json(v)}" for k, v in head.items()]
    parts.append('"passes":' + _passes(passes))
    if runs:
        parts.append('"runs":[\n' + ",\n".join(map(_passes, runs)) + "\n]")
    parts.append('"templates":[\n' + ",\n".join(_rows(t) for t in templates) + "\n]")
    for name, table in tables.items():
        if isinstance(table, dict):
            parts.append(f"{_json(name)}:{{\n" + ",\n".join(f"{_json(k)}:{_json(v)}" for k, v in table.items()) + "\n}")
        else:
            parts.append(f"{_json(name)}:" + _rows(table))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _passes(some: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(_one_pass, some)) + "\n]"


def _one_pass(one: dict[str, Any]) -> str:
    head = ",".join(f"{_json(k)}:{_json(v)}" for k, v in one.items() if k != "calls")
    return "{" + head + ',"calls":' + _rows(one["calls"]) + "}"


def _rows(items: list[Any]) -> str:
    return "[\n" + ",\n".join(map(_json, items)) + "\n]" if items else "[]"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write(path: str | os.PathLike[str], text: str) -> str:
    """Write the file under its final name in one step; return the digest, "sha256:" and hexadecimal."""
    target = pathlib.Path(path)
    part = target.with_name(target.name + ".part")
    data = text.encode()
    part.write_bytes(data)
    os.replace(part, target)
    return "sha256:" + hashlib.sha256(data).hexdigest()


def shared(writer: Writer, passes: list[Pass]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the calls of each pass, and the templates that the passes share."""
    blocks = [writer.blocks(one) for one in passes]
    templates, calls = share([b for some in blocks for b in some], writer._prefix)
    out, at = [], 0
    for one, some in zip(passes, blocks, strict=True):
        out.append({"tokens": one.tokens, "past": one.past, "calls": calls[at : at + len(some)]})
        at += len(some)
    return out, templates


def main_dtype(model: Any) -> str:
    """Return the dtype of most elements of a model's parameters."""
    count: dict[str, int] = {}
    for p in model.parameters():
        count[dtype_name(p.dtype)] = count.get(dtype_name(p.dtype), 0) + p.numel()
    return max(count, key=lambda name: count[name]) if count else ""
