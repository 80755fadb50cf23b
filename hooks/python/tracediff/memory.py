"""The memory of a running model: which storage holds which value, and since which step.

A value is the memory of a tensor as one operation left it: `n` elements of one dtype. A tensor that the model hands to
an operation is a strided view of a storage's value at that moment. So views are no operations, and writing in place
makes a new value. Only weak references point to storages: memory that the model frees stays free.
"""

import dataclasses
import functools
import hashlib
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

MANY = 1024  # bytes; two constants of so many bytes are not equal by chance
PURGE = 4096  # operations after which freed storages are forgotten


@dataclasses.dataclass(eq=False, slots=True)
class Value:
    """The memory that an operation wrote, and the view through which the operation wrote."""

    dtype: str
    count: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    step: int = -1  # index of the step that wrote the value


@dataclasses.dataclass(eq=False)
class Leaf:
    """A parameter, or a buffer of floating-point numbers: memory from before the run."""

    name: str
    tensor: Any  # of the model, which keeps the tensor alive
    buffer: bool


@dataclasses.dataclass(eq=False)
class Constant:
    """Numbers that depend on no parameter. `origin` has the names of the inputs that the numbers depend on."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    origin: frozenset[str]
    line: str = ""  # last line of source that wrote the numbers


@dataclasses.dataclass(slots=True)
class Operand:
    """A strided view of a value, a leaf or a constant; `of` is None for memory that nobody has written.

    An operand never changes: several steps may share one.
    """

    of: Value | Leaf | Constant | None
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Storage:
    """State of one storage: leaves, or a value, or the origin of constants."""

    __slots__ = ("born", "copies", "key", "leaves", "line", "origin", "value", "weak")

    def __init__(self, storage: Any, born: int) -> None:
        self.weak = StorageWeakRef(storage)
        self.key = storage._cdata
        self.leaves: list[Leaf] = []
        self.value: Value | None = None
        self.origin: frozenset[str] = frozenset()
        self.line = ""  # line of source that wrote the constants
        self.born = born  # steps recorded when its constants were written
        self.copies: dict[Any, Operand] = {}  # of its constants, by view

    @property
    def computed(self) -> bool:
        """Report whether the contents depend on parameters or on buffers of floating-point numbers."""
        return self.value is not None or bool(self.leaves)


EMPTY = "empty"  # the origin of memory that nobody has written
OUTSIDE = "outside"  # the origin of numbers from before the recording


class Memory:
    """Every storage that the model uses."""

    def __init__(self) -> None:
        self._storages: dict[int, Storage] = {}
        self._constants: dict[Any, Constant] = {}
        self.clock = 0  # operations seen
        self.now = 0  # steps recorded

    def tick(self) -> None:
        """Count an operation; at times forget freed storages."""
        self.clock += 1
        if self.clock % PURGE == 0:
            self.purge()

    def purge(self) -> None:
        """Forget freed storages."""
        for key in [key for key, known in self._storages.items() if known.weak.expired()]:
            del self._storages[key]

    def forget(self) -> None:
        """Treat equal constants from now on as new ones, except constants of MANY bytes or more.

        A few numbers may be equal by chance: position 3 in one run, three keys in the next.
        """
        self._constants = {key: c for key, c in self._constants.items() if len(c.data) >= MANY}

    def find(self, tensor: Any) -> Storage:
        """Return the storage of a tensor; an unknown storage holds numbers from outside."""
        storage = tensor.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is None:
            known = self._storages[storage._cdata] = Storage(storage, self.now)
            known.origin = frozenset((OUTSIDE,))
        return known

    def alive(self, value: Value) -> Any:
        """Return the memory that holds a value now, as one axis; None for memory that was freed or overwritten."""
        for known in self._storages.values():
            if known.value is value and not known.weak.expired():
                storage = torch.UntypedStorage._new_with_weak_ptr(known.weak.cdata)
                if storage is not None:
                    return torch.empty(0, dtype=getattr(torch, value.dtype)).set_(storage, 0, (value.count,), (1,))
        return None

    def known(self, tensor: Any) -> bool:
        """Report whether a tensor's storage was seen before."""
        return tensor.untyped_storage()._cdata in self._storages

    def leaf(self, name: str, tensor: Any, buffer: bool) -> None:
        """Register a parameter or buffer; if one tensor has several names, the first stays."""
        found = self.find(tensor)
        if not any(same_place(tensor, one.tensor) for one in found.leaves):
            found.leaves.append(Leaf(name, tensor, buffer))

    def made(self, tensor: Any, origin: frozenset[str], line: str = "") -> None:
        """Note that a tensor holds constants now, written by a line of source."""
        found = self.find(tensor)
        found.line = line
        found.value, found.leaves, found.origin, found.born = None, [], origin, self.now
        found.copies.clear()

    def wrote(self, tensor: Any, value: Value) -> None:
        """Note that a tensor's storage holds a value now."""
        found = self.find(tensor)
        found.value, found.leaves = value, []

    def constant(self, tensor: Any, origin: frozenset[str], line: str) -> Constant:
        """Return a copy of numbers; equal numbers of one line of source share one object."""
        data = content(tensor)
        dtype, shape = dtype_name(tensor.dtype), tuple(tensor.shape)
        key = (dtype, shape, hashlib.sha256(data).digest(), origin, line)
        if key not in self._constants:
            self._constants[key] = Constant(dtype, shape, data, origin, line)
        return self._constants[key]

    def operand(self, tensor: Any) -> Operand:
        """Return the value, leaf or constant that a tensor is a view of now. The dtype of a value is not checked here.
        """
        found = self.find(tensor)
        shape, stride, offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        if found.value is not None:
            return Operand(found.value, shape, stride, offset)
        for leaf in found.leaves:
            start = offset - leaf.tensor.storage_offset()
            if start >= 0 and start + extent(shape, stride) <= extent(leaf.tensor.shape, leaf.tensor.stride()):
                return Operand(leaf, shape, stride, start)
        if EMPTY in found.origin and found.origin == {EMPTY}:
            return Operand(None, shape, stride, offset)
        key = (shape, stride, offset, tensor.dtype)
        if key not in found.copies:
            found.copies[key] = self._copy(tensor, found)
        return found.copies[key]

    def _copy(self, tensor: Any, storage: Storage) -> Operand:
        """Return a copy of constants; axes that only repeat elements (stride 0) are kept once."""
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        narrow = tensor
        for axis, step in enumerate(stride):
            if step == 0 and shape[axis] > 1:
                narrow = narrow.narrow(axis, 0, 1)
        whole = self.constant(narrow, storage.origin, storage.line)
        packed = row_major(whole.shape)
        kept = tuple(0 if narrow.shape[i] != n else packed[i] for i, n in enumerate(shape))
        return Operand(whole, shape, kept, 0)


def content(tensor: Any) -> bytes:
    """Return the elements of a tensor, row-major."""
    # A tensor of one element counts as contiguous with any stride, and view() takes another dtype only with stride 1.
    flat = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1)
    return bytes(torch.as_strided(flat, flat.shape, (1,)).view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def same_place(a: Any, b: Any) -> bool:
    """Report whether two tensors are the same view of the same storage."""
    return (
        a.untyped_storage()._cdata == b.untyped_storage()._cdata
        and a.storage_offset() == b.storage_offset()
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.dtype == b.dtype
    )


def dtype_name(dtype: Any) -> str:
    """Return a dtype as torch spells it, without the module."""
    found = _DTYPES.get(dtype)
    if found is None:
        found = _DTYPES[dtype] = str(dtype).removeprefix("torch.")
    return found


_DTYPES: dict[Any, str] = {}


@functools.lru_cache(maxsize=1 << 14)
def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= size
    return tuple(reversed(out))


@functools.lru_cache(maxsize=1 << 14)
def extent(shape: Any, stride: Any) -> int:
    """Return the number of elements of memory from the first to the last element of a view."""
    if any(n == 0 for n in shape):
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


@functools.lru_cache(maxsize=1 << 14)
def plain(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Report whether a view is row-major without gaps; strides of axes of one element do not count."""
    return all(n == 1 or s == t for n, s, t in zip(shape, stride, row_major(shape), strict=True)) or 0 in shape


@functools.lru_cache(maxsize=1 << 14)
def dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Report whether a view has each element of its memory once."""
    step = 1
    for s, n in sorted((s, n) for n, s in zip(shape, stride, strict=True) if n != 1):
        if s != step:
            return False
        step *= n
    return True
