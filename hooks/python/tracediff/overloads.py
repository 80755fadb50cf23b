"""The schema of a torch operation, read once: a program of a thousand steps uses some thirty operations."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from tracediff.vocabulary import FACTORIES, SILENT, canonical, is_operand

KEYS = torch._C.DispatchKey


class Argument(NamedTuple):
    """An argument of an operation."""

    name: str
    out: bool  # the result is written there
    writes: bool  # the operation writes to it
    tensor: bool  # a tensor, or a list of tensors
    number: bool  # a number that may be an operand
    silent: bool  # says where memory is, and nothing about numbers
    has_default: bool
    default: Any
    reads: bool  # a tensor, or a list of tensors, that is not an output argument
    left_out: bool  # not an operand: the target of a write whose old contents are not read


class Overload:
    """One operation of torch: the name in a program, the arguments, and the kind of call."""

    def __init__(self, func: Any) -> None:
        """Read the schema."""
        schema = func._schema
        has = func.has_kernel_for_dispatch_key
        self.op = canonical(func)
        self.name = schema.name
        self.composite = has(KEYS.CompositeImplicitAutograd) and not has(KEYS.CPU)  # split into other operations
        self.factory = schema.name in FACTORIES
        self.empty = schema.name.startswith(("aten::empty", "aten::new_empty"))
        self.copies = schema.name == "aten::copy_"
        self.lifts = schema.name == "aten::lift_fresh"
        # It may return a view: the schema does not promise new memory.
        self.views = func.is_view or schema.name in (
            "aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh", "aten::detach",
        )  # fmt: skip
        self.arguments = [self._argument(a) for a in schema.arguments]
        self.writes = any(a.writes for a in self.arguments)
        # A pure view: nothing to record.
        self.looks = func.is_view and not self.writes and not self.lifts and not self.composite

    def _argument(self, a: Any) -> Argument:
        kind = str(a.type)
        writes = a.alias_info is not None and a.alias_info.is_write
        default = a.has_default_value()
        return Argument(
            a.name, a.is_out, writes, "Tensor" in kind, kind.endswith("number") and is_operand(self.op, a.name),
            a.name in SILENT, default, a.default_value if default else None,
            "Tensor" in kind and not a.is_out, a.is_out or (self.op in ("to", "fill") and a.name in ("self", "dst") and writes),
        )  # fmt: skip

    def given(self, args: Any, kwargs: Any) -> list[tuple[Argument, Any]]:
        """Return each given argument with its value, in the order of the schema."""
        out = list(zip(self.arguments, args, strict=False))
        if kwargs:
            out += [(a, kwargs[a.name]) for a in self.arguments[len(args) :] if a.name in kwargs]
        return out


def among(values: list[Any]) -> list[Any]:
    """Return the tensors of arguments, in order."""
    if all([isinstance(value, torch.Tensor) for value in values]):
        return values
    return [t for value in values for t in tensors(value)]


def tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors of an argument or a result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
