"""Recording what a model computes, as it runs: every floating-point operation, its operands and its rounding.

A dispatch mode sees each call that torch makes. An operation on a parameter, or on a buffer of floating-point numbers,
or on their results, is a step. Values that depend only on token ids, positions and sizes are folded to constants; views
are operands. Recording changes no result of the model, and keeps no tensor alive.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tracediff import places
from tracediff.memory import EMPTY, Memory, Operand, Value, dense, dtype_name, plain, row_major, same_place
from tracediff.overloads import Overload, among, tensors

NOTHING: frozenset[str] = frozenset()


@dataclasses.dataclass(eq=False, slots=True)
class Step:
    """One operation: operands, attributes by name, the written values, and the call in the source."""

    op: str
    operands: list[Any]  # Operand, a Python number, or None for an omitted operand
    attrs: dict[str, Any]
    outs: list[Value]
    line: str
    expression: str  # on that line; "" where it is unknown
    index: int
    scope: str  # the path of the calling module


class Recording(TorchDispatchMode):
    """The steps of a run, in the order in which they were computed.

    Use running() around each forward call. Its knowledge of memory stays from call to call, so that the next call reads
    a cache that one call wrote.
    """

    def __init__(self, model: Any) -> None:
        """Prepare to record a model: its parameters and buffers are the leaves."""
        super().__init__()
        self.memory = Memory()
        self.steps: list[Step] = []
        self.before: Callable[[list[Any]], None] = lambda _: None  # receives tensors before a write
        self.after: Callable[[list[Any]], None] = lambda _: None  # receives tensors after an operation wrote them
        self.scope = ""  # the path of the running module, kept by the hooks on modules
        self.quiet = False  # operations now are the recorder's own
        self._overloads: dict[Any, Overload] = {}
        self._bits: dict[tuple[int, str], tuple[Value | None, Value]] = {}
        for name, tensor in model.named_parameters(remove_duplicate=False):
            self.memory.leaf(name, tensor, False)
        for name, tensor in model.named_buffers(remove_duplicate=False):
            if tensor.is_floating_point() or tensor.is_complex():
                self.memory.leaf(name, tensor, True)
            else:
                self.memory.made(tensor, frozenset((f"buffer {name}",)))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record what torch computes within the block."""
        with _lists(self), self:
            yield

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.quiet:
            return func(*args, **kwargs)
        form = self._overloads.get(func)
        if form is None:
            form = self._overloads[func] = Overload(func)
        if form.composite:
            with self, torch._C.DisableTorchFunction():
                return func.decompose(*args, **kwargs)
        if form.looks:
            return func(*args, **kwargs)
        self.memory.tick()
        given = form.given(args, kwargs)
        inputs = [] if form.factory else among([value for a, value in given if a.reads])
        written = among([value for a, value in given if a.writes]) if form.writes else []
        find = self.memory.find
        found = [find(t) for t in inputs]
        before = {known.key for known in found}
        if any([known.computed for known in found]) or any([find(t).computed for t in written]):
            return self._computed(form, func, args, kwargs, given, before, written)
        origin = frozenset().union(*[known.origin for known in found])
        out = func(*args, **kwargs)
        fresh = [t for t in tensors(out) if t.untyped_storage()._cdata not in before]
        if form.empty:
            origin |= {EMPTY}
        elif written or fresh:
            origin -= {EMPTY}
        line = places.line() if fresh or written else ""
        for t in (*fresh, *written):
            self.memory.made(t, origin, line)
        if form.lifts:
            for t in tensors(out):
                if not self.memory.known(t) or self.memory.find(t).origin == {"outside"}:
                    self.memory.made(t, NOTHING)
        return out

    def _computed(
        self, form: Overload, func: Any, args: Any, kwargs: Any, given: Any, before: set[int], written: Any
    ) -> Any:
        """Run an operation on values that depend on parameters; `before` has the keys of the storages that it reads."""
        if form.views and not written:
            out = func(*args, **kwargs)
            if all(t.untyped_storage()._cdata in before for t in tensors(out)):
                return out
        operands, attrs = self._read(form, given)
        olds = [self._old(t) for t in written]
        if written:
            self.before(written)
        out = func(*args, **kwargs)
        if form.op == "guard":
            self._add(form.op, operands, {"value": out}, [])
            return out
        fresh = [t for t in tensors(out) if t.untyped_storage()._cdata not in before] if not written else []
        if not written and not fresh:
            return out  # a view
        if written and form.copies and same_place(args[0], args[1]):
            return out
        results = written or fresh
        whole = [self._whole(t) for t in results]
        values = [_value(t, w) for t, w in zip(results, whole, strict=True)]
        self._add(form.op, operands, attrs, values)
        for t, w, old, value in zip(results, whole, olds or [None] * len(results), values, strict=True):
            self.memory.wrote(t, value if w else self._write(t, old, value))
        self.after(results)
        return out

    def _read(self, form: Overload, given: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return operands and attributes of a call, from the memory before the call."""
        operands: list[Any] = []
        attrs: dict[str, Any] = {}
        for argument, value in given:
            if argument.left_out:
                continue
            if argument.tensor:
                many = value if isinstance(value, list | tuple) else (value,)
                operands += [self.operand(t) if isinstance(t, torch.Tensor) else t for t in many]
            elif argument.silent or (argument.has_default and value == argument.default):
                continue
            elif argument.number:
                operands.append(value)
            elif value is not None:
                attrs[argument.name] = list(value) if isinstance(value, tuple) else value
        while operands and operands[-1] is None:
            operands.pop()
        return (operands or [0]) if form.op == "fill" else operands, attrs

    def operand(self, tensor: Any) -> Operand | None:
        """Return a tensor as a view of its memory now; a value in another dtype is read by a step of its own."""
        found = self.memory.operand(tensor)
        dtype = dtype_name(tensor.dtype)
        if isinstance(found.of, Value) and found.of.dtype != dtype:
            found = dataclasses.replace(found, of=self._as(found.of, tensor))
        if tensor.is_neg() or tensor.is_conj():
            value = Value(dtype, tensor.numel(), tuple(tensor.shape), row_major(tuple(tensor.shape)))
            self._add("conj" if tensor.is_conj() else "neg", [found], {}, [value])
            found = Operand(value, value.shape, value.stride, 0)
        return found

    def _as(self, value: Value, tensor: Any) -> Value:
        """Return a value whose bytes are read in a tensor's dtype, by a step of its own."""
        dtype = dtype_name(tensor.dtype)
        if (id(value), dtype) not in self._bits:
            count = tensor.untyped_storage().nbytes() // tensor.element_size()
            made = Value(dtype, count, (count,), (1,))
            self._add("bits", [Operand(value, (value.count,), (1,), 0)], {}, [made])
            self._bits[id(value), dtype] = value, made  # keeps the value, so that its identity is not used again
        return self._bits[id(value), dtype][1]

    @staticmethod
    def _whole(tensor: Any) -> bool:
        """Report whether a tensor has each element of its storage exactly once."""
        if tensor.untyped_storage().nbytes() != tensor.nbytes:
            return False
        return tensor.is_contiguous() or dense(tuple(tensor.shape), tuple(tensor.stride()))

    def _old(self, tensor: Any) -> Operand | None:
        """Return the whole memory of a tensor's storage before a write; None where the write covers the whole."""
        if self._whole(tensor):
            return None
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        return self.operand(torch.as_strided(tensor.detach(), (count,), (1,), 0))

    def _write(self, tensor: Any, old: Operand | None, value: Value) -> Value:
        """Return memory after a write to a part of it, by a step of its own."""
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        made = Value(value.dtype, count, (count,), (1,))
        where = {
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "offset": tensor.storage_offset(),
        }
        self._add("write", [old, Operand(value, value.shape, value.stride, 0)], where, [made])
        return made

    def _add(self, op: str, operands: Any, attrs: Any, outs: list[Value]) -> None:
        step = Step(op, operands, attrs, outs, *places.place(), len(self.steps), self.scope)
        for value in outs:
            value.step = step.index
        self.steps.append(step)
        self.memory.now = len(self.steps)

    def guard(self, tensor: Any, value: Any) -> None:
        """Note that Python read numbers of a tensor, and may branch on them."""
        if self.memory.find(tensor).computed:
            self._add("guard", [self.operand(tensor)], {"value": value}, [])


@contextlib.contextmanager
def _lists(recording: Recording) -> Iterator[None]:
    """Record numbers that leave torch without an operation within the block: tolist.

    A TorchFunctionMode would record them too, and would turn each look at a shape or a storage into a call of Python.
    """
    own = torch.Tensor.__dict__.get("tolist")
    original: Any = torch.Tensor.tolist

    def tolist(tensor: Any) -> Any:
        out = original(tensor)
        if not recording.quiet:
            recording.guard(tensor, out)
        return out

    torch.Tensor.tolist = tolist  # type: ignore[method-assign]
    try:
        yield
    finally:
        if own is None:
            del torch.Tensor.tolist
        else:
            torch.Tensor.tolist = own


def _value(tensor: Any, whole: bool) -> Value:
    """Return the value that a tensor holds: its whole storage, or a copy of its part of a storage."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    if not whole or plain(shape, stride):
        stride = row_major(shape)
    return Value(dtype_name(tensor.dtype), tensor.numel(), shape, stride)
