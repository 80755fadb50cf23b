"""A second implementation of docs/formats.md: a recorded program, evaluated in float64 with the program's roundings.

It shares no code with the recorder. torch computes each operation in float64 and rounds the result to the dtype in the
file. Where a trace of the same run is given, each named tensor is compared with the trace bit by bit, and then replaced
by the tensor of the trace: so errors do not add up from one named tensor to the next.
"""

import base64
import json
import math
from typing import Any

import torch

ROUND_FIRST = ("clamp", "masked_fill", "fill", "pad", "maximum", "minimum")
SCALAR_OPERANDS = {"other", "exponent", "self", "value", "fill_value", "min", "max"}
SETTINGS = {"pad": {"value"}, "clamp": {"min", "max"}, "addcmul": {"value"}, "addcdiv": {"value"}}
TORCH = {
    "softmax": "_softmax", "log_softmax": "_log_softmax", "vector_norm": "linalg_vector_norm", "pad": "constant_pad_nd",
}  # fmt: skip


def expand(program: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Return all lines with the pass of each; references are absolute."""
    out, values = [], 0
    for number, one in enumerate(program["passes"]):
        for template, layer, fill in one["calls"]:
            base = values
            for line in program["templates"][template]:
                line = _fill(line, fill, layer, base)
                values += len(line.get("out", ()))
                out.append((number, line | {"layer": layer}))
    return out


def _fill(item: Any, fill: list[Any], layer: int, base: int) -> Any:
    if isinstance(item, dict):
        return {k: _fill(v, fill, layer, base) for k, v in item.items()}
    if isinstance(item, list):
        return [_fill(v, fill, layer, base) for v in item]
    if isinstance(item, str):
        if item.startswith("$"):
            item = fill[int(item[1:])]
        if isinstance(item, str):
            item = item.replace("{layer}", str(layer))
            if item[:1] == "t" and item[1:].isdecimal():
                return f"v{base + int(item[1:])}"
    return item


class Evaluator:
    """Evaluates the lines of a program; `weights` has checkpoint tensors by name, `ids` has the ids of each pass."""

    def __init__(self, program: dict[str, Any], weights: dict[str, Any], ids: list[list[int]]) -> None:
        self.program, self._weights, self._ids = program, weights, ids
        self.values: list[Any] = []  # memory of each, and the view through which it was written
        self._pass = 0

    def run(self, captured: Any = None) -> dict[str, Any]:
        """Return the named tensors, by pass and name; `captured(pass, name)` gives the tensors of a trace."""
        named: dict[str, Any] = {}
        for number, line in expand(self.program):
            self._pass = number
            if "name" in line:
                view = self.operand(line["of"])
                theirs = captured(number, line["name"]) if captured else None
                named[f"pass{number}/{line['name']}"] = (view.clone(), theirs)
                if theirs is not None and not isinstance(line["of"], dict) and view.is_floating_point():
                    view.copy_(theirs.reshape(view.shape)) if self._own(line["of"]) else None
            else:
                self._step(line)
        return named

    @staticmethod
    def _own(of: Any) -> bool:
        return (of if isinstance(of, str) else of[0])[0] == "v"

    def operand(self, item: Any) -> Any:
        """Return an operand as a tensor, a view of its memory; a number unchanged."""
        if item is None or isinstance(item, bool | int | float):
            return item
        if isinstance(item, dict):
            return float(item["number"])
        if isinstance(item, str):
            return self._whole(item)
        ref, shape, *rest = item
        if ref == "none":
            return None
        stride, offset = rest
        whole = self._whole(ref)
        memory = self.values[int(ref[1:])][0] if ref[0] == "v" else whole.contiguous().reshape(-1)
        assert offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) < memory.numel() or 0 in shape
        return torch.as_strided(memory, shape, stride, offset)

    def _whole(self, ref: str) -> Any:
        if ref[0] == "v":
            memory, shape, stride = self.values[int(ref[1:])]
            return torch.as_strided(memory, shape, stride)
        if ref[0] == "c":
            return self._constant(self.program["constants"][int(ref[1:])])
        return self._weight(ref[2:])

    def _weight(self, name: str) -> Any:
        one = self.program["weights"][name]
        dtype = getattr(torch, one["dtype"])
        if one.get("buffer") or "data" in one:
            return _raw(one)
        if "rows" in one:
            tensor = torch.cat([self._weights[n].reshape(-1) for n, _ in one["rows"]])
        else:
            tensor = self._weights[one.get("file", name)]
            tensor = tensor.T if one.get("transposed") else tensor
        return tensor.to(dtype).reshape(one["shape"])

    def _constant(self, one: dict[str, Any]) -> Any:
        """Make a constant by the first recipe, or from its data."""
        if not one["from"]:
            return _raw(one)
        recipe, dtype = one["from"][0], getattr(torch, one["dtype"])
        count = math.prod(one["shape"])
        tokens, past = (self.program["passes"][self._pass][k] for k in ("tokens", "past"))
        if recipe["kind"] == "fill":
            return torch.full(one["shape"], _number(recipe["value"]), dtype=dtype)
        if recipe["kind"] == "ids":
            return torch.tensor(self._ids[self._pass]).to(dtype).reshape(one["shape"])
        if recipe["kind"] == "positions":
            return torch.arange(past, past + tokens).to(dtype).reshape(one["shape"])
        if recipe["kind"] == "count":
            return torch.arange(count).to(dtype).reshape(one["shape"])
        keys = torch.arange(past + tokens)[-one["shape"][-1] :][None, :]
        rows = torch.arange(past, past + tokens)[:, None]
        seen = {
            "causal": keys <= rows,
            "sliding": (keys <= rows) & (keys > rows - recipe.get("window", 0)),
            "all": keys >= 0 * rows,
        }[recipe["of"]]
        out = torch.full(seen.shape, _number(recipe.get("hidden", 0))).to(dtype)
        out[seen] = torch.tensor(_number(recipe["seen"])).to(dtype)
        return out.reshape(one["shape"])

    def _step(self, line: dict[str, Any]) -> None:
        op, attrs = line["op"], {k: _numbers(v) for k, v in line.get("attr", {}).items()}
        operands = [self.operand(o) for o in line["in"]]
        results = self._compute(op, operands, attrs, line["out"])
        for (dtype, shape, *stride), result in zip(line["out"], results, strict=True):
            result = rounded(result, getattr(torch, dtype)).expand(shape)
            stride = stride[0] if stride else _row_major(shape)
            memory = torch.empty(math.prod(shape), dtype=result.dtype)
            torch.as_strided(memory, shape, stride).copy_(result)
            self.values.append((memory, shape, stride))

    def _compute(self, op: str, operands: list[Any], attrs: dict[str, Any], outs: list[Any]) -> Any:
        dtype = getattr(torch, outs[0][0]) if outs else None
        if op == "guard":
            seen = torch.tensor(attrs["value"])
            assert torch.equal(operands[0].reshape(-1).to(seen.dtype), seen.reshape(-1)), f"guard: {operands[0]}, {attrs}"
            return []
        if op == "to":
            return [operands[0]]
        if op == "fill":
            return [torch.full(outs[0][1], operands[0], dtype=dtype)]
        if op == "bits":
            return [operands[0].contiguous().view(dtype)]
        if op == "write":
            old = operands[0]
            memory = torch.zeros(outs[0][1], dtype=dtype) if old is None else old.to(dtype).clone()
            torch.as_strided(memory, attrs["shape"], attrs["stride"], attrs["offset"]).copy_(operands[1])
            return [memory]
        narrow = dtype in (torch.bfloat16, torch.float16)
        if op == "pow" and operands[1] == 3 and narrow:
            return [rounded(operands[0].double() ** 2, dtype).double() * operands[0].double()]
        if op in ROUND_FIRST and dtype.is_floating_point:
            operands = [rounded(torch.tensor(float(o)), dtype).item() if _float(o) else o for o in operands]
            attrs = {k: rounded(torch.tensor(v), dtype).item() if _float(v) else v for k, v in attrs.items()}
        elif narrow:
            operands = [torch.tensor(o).item() if _float(o) else o for o in operands]  # float32
        wide = [_wide(o) for o in operands]
        if op in ("maximum", "minimum"):
            wide = [o if isinstance(o, torch.Tensor) else torch.tensor(o, dtype=wide[0].dtype) for o in wide]
        out = call(op, wide, attrs)
        return list(out) if isinstance(out, tuple | list) else [out]


def _float(x: Any) -> bool:
    return isinstance(x, float)


def _wide(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and x.is_complex():
        return x.to(torch.complex128)
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def rounded(x: Any, dtype: Any) -> Any:
    """Round to a dtype, by way of float32."""
    if x.dtype == torch.float64 and dtype in (torch.bfloat16, torch.float16):
        x = x.float()
    return x.to(dtype)


def call(op: str, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """Call torch's operation: operands stand in the order of its signature, settings by name."""
    packet = getattr(torch.ops.aten, TORCH.get(op, op))
    for name in packet.overloads():
        func = getattr(packet, name)
        given = _assign(op, func, operands, attrs)
        if given is not None and "out" not in given:
            try:
                return func(**given)
            except (RuntimeError, TypeError, ValueError):
                continue
    raise AssertionError(f"{op}: no form of it takes {[type(o).__name__ for o in operands]}, {attrs}")


def _assign(op: str, func: Any, operands: list[Any], attrs: dict[str, Any]) -> dict[str, Any] | None:
    given, left, rest = {}, list(operands), dict(attrs)
    arguments = func._schema.arguments
    for i, argument in enumerate(arguments):
        kind = str(argument.type)
        if "Tensor" in kind and "List" in kind:
            later = sum("Tensor" in str(a.type) for a in arguments[i + 1 :] if not a.has_default_value())
            take = len(left) - later
            given[argument.name], left = left[:take], left[take:]
        elif "Tensor" in kind and left:
            given[argument.name] = left.pop(0)
        elif kind.endswith("number") and argument.name in SCALAR_OPERANDS - SETTINGS.get(op, set()) and left:
            given[argument.name] = left.pop(0)
            if isinstance(given[argument.name], torch.Tensor):
                return None
        elif "Tensor" in kind and "Optional" in kind:
            given[argument.name] = None
        elif argument.name in rest:
            given[argument.name] = rest.pop(argument.name)
        elif argument.name == "half_to_float":
            given[argument.name] = False
        elif not argument.has_default_value() and "Tensor" not in kind and "Optional" not in kind:
            return None
    return None if left or rest else given


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return _number(value)


def _number(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, dict) else value


def _raw(one: dict[str, Any]) -> Any:
    data = bytearray(base64.b64decode(one["data"]))
    dtype = getattr(torch, one["dtype"])
    return torch.frombuffer(data, dtype=dtype).reshape(one["shape"]) if data else torch.empty(one["shape"], dtype=dtype)


def _row_major(shape: list[int]) -> list[int]:
    out, step = [], 1
    for n in reversed(shape):
        out.insert(0, step)
        step *= n
    return out


class Score:
    """Counts of equal and unequal elements between a program's named tensors and the tensors of its trace."""

    def __init__(self) -> None:
        self.entries = self.elements = self.unequal = self.far = 0
        self.worst: list[tuple[float, str]] = []

    def add(self, name: str, ours: Any, theirs: Any) -> None:
        """Count unequal elements, and elements that differ by more than a few units of the tensor's typical size.

        The limit is 4 units in types of 16 bits, where torch sums in float32, and 16 units in float32.
        """
        ours, theirs = ours.reshape(-1), theirs.reshape(-1)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, f"{name}: {ours.dtype} {theirs.dtype}"
        self.entries += 1
        self.elements += ours.numel()
        different = (ours != theirs) & ~((ours != ours) & (theirs != theirs))
        count = int(different.sum())
        self.unequal += count
        if count and ours.is_floating_point():
            x, y = ours.double()[different], theirs.double()[different]
            size = theirs.double()[torch.isfinite(theirs)].abs()
            typical = float(size[size < 1e30].pow(2).mean().sqrt()) if len(size[size < 1e30]) else 0.0
            unit = torch.finfo(ours.dtype).eps * torch.maximum(y.abs(), torch.full_like(y, typical))
            off = (x - y).abs() / unit
            self.far += int((off > (16 if ours.dtype == torch.float32 else 4)).sum())
            self.worst.append((float(off.max()), name))


def score(path: str, weights: dict[str, Any], ids: list[list[int]], captured: Any) -> Score:
    """Evaluate a file and compare its named tensors."""
    with open(path, encoding="utf-8") as file:
        program = json.load(file)
    out = Score()
    for name, (ours, theirs) in Evaluator(program, weights, ids).run(captured).items():
        if theirs is not None:
            out.add(name, ours, theirs)
    return out
