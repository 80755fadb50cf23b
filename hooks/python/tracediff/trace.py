"""The trace file: named tensors in the order in which they were computed, and a manifest.

A trace is one `.safetensors` file that any safetensors library opens: 8 bytes of header length, little endian; a JSON
header; the data. Rules of a trace beyond the format:

- Keys are `[pass<k>/]<name>[#<n>]`; `pass0/` and `#0` are not written. `#n` is the n-th firing of a name in one pass.
- The tensors stand in the file, and in the header, in the order in which they were appended.
- `__metadata__` comes first and is the manifest: flat strings. It begins with `tracediff.version` and
  `tracediff.status`, which is padded with spaces to a fixed width and changed in place: "open", "complete" or
  "failed: why".

Writing takes constant memory, and between two appends the file can always be opened. The header has a reserve of spaces
after its closing brace. Data is appended first; then one small write replaces the brace by the tensor's entry and a new
brace. When the reserve is used up, the file is copied once with a larger reserve. The name ends in `.part` until close.

Neither torch nor numpy is imported here: tensors of both are recognised by their methods.
"""

import ctypes
import json
import os
import pathlib
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracediff import debug
from tracediff.errors import BadInput

VERSION = "1"
STATUS = "tracediff.status"
STATUS_WIDTH = 240  # bytes: "failed: " and a reason of a line and a half
ALIGN = 8  # data starts at a multiple of this, as the format asks
MAX_HEADER = 100_000_000  # bytes; the limit of the official library
CHUNK = 1 << 20  # bytes per step when a file is copied or hashed

# Bytes per element, by the format's name of the dtype.
SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip

# The format's names by the names of torch and numpy, which agree here; numpy has no bfloat16 and no float8.
DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16", "bfloat16": "BF16",
    "int32": "I32", "uint32": "U32", "float32": "F32", "int64": "I64", "uint64": "U64", "float64": "F64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip

# Names of dtypes for people, by the format's names.
NAMES = {name: dtype for dtype, name in DTYPES.items()}


class Info(NamedTuple):
    """The place of one tensor: byte offsets count from the start of the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def key(name: str, pass_index: int = 0, firing: int = 0) -> str:
    """Return the key of a tensor in the file."""
    prefix = f"pass{pass_index}/" if pass_index else ""
    suffix = f"#{firing}" if firing else ""
    return prefix + name + suffix


def count(shape: Iterable[int]) -> int:
    """Return the number of elements."""
    n = 1
    for size in shape:
        n *= size
    return n


def reserve(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> int:
    """Return how many bytes of header the tensors (key, dtype, shape) will take, appended in this order.

    The number is exact if every tensor is known in advance, so that a finished trace has no slack. The writer makes
    room when the number was too small.
    """
    total, end = 0, 0
    for name, dtype, shape in tensors:
        begin, end = end, end + SIZES[dtype] * count(shape)
        total += len(_entry(name, Info(dtype, shape, begin, end)))
    return total


def room(manifest: Mapping[str, str]) -> int:
    """Return how many bytes of header Writer.amend will take."""
    return len(_lines(manifest))


def _lines(manifest: Mapping[str, str]) -> bytes:
    return "".join(f",{json.dumps(k)}:{json.dumps(v)}" for k, v in manifest.items()).encode()


def _entry(name: str, info: Info) -> bytes:
    """Return the header's text for one tensor, with the comma before it."""
    value = {"dtype": info.dtype, "shape": list(info.shape), "data_offsets": [info.begin, info.end]}
    return f",{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}".encode()


def _host(tensor: Any) -> Any:
    """Return a torch tensor in the host's memory, row-major; a numpy array unchanged."""
    return tensor.detach().cpu().contiguous() if hasattr(tensor, "data_ptr") else tensor


def _bytes(tensor: Any) -> tuple[str, tuple[int, ...], Any]:
    """Return dtype, shape and row-major data of a result of `_host`."""
    shape = tuple(int(n) for n in tensor.shape)
    dtype = DTYPES.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:
        raise BadInput(f"writing a tensor: a trace cannot hold dtype {tensor.dtype}")
    if not hasattr(tensor, "data_ptr"):
        return dtype, shape, tensor.tobytes()  # numpy
    size = SIZES[dtype] * count(shape)
    if not size:
        return dtype, shape, b""
    # The memory of the tensor: numpy has no bfloat16, and torch may be installed without numpy. The bytes are copied,
    # because a view would outlive the tensor.
    return dtype, shape, (ctypes.c_char * size).from_address(tensor.data_ptr()).raw


class Writer:
    """A trace being written. Use as a context manager: leaving it normally completes the trace.

    An exception that passes through marks the trace as failed and leaves the `.part` name; an earlier trace with the
    final name stays.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        manifest: Mapping[str, str],
        reserved: int = 1 << 16,
        log: debug.Log | None = None,
    ) -> None:
        """Begin `path`.part with a manifest (its status is set here) and room for `reserved` bytes of header.

        `log` shows appended tensors; without `log`, the environment decides.
        """
        if sys.byteorder != "little":
            raise BadInput("writing a trace: this machine is big-endian, and safetensors files are not")
        self.path = pathlib.Path(path)
        self.part = self.path.with_name(self.path.name + ".part")
        self._header = bytearray(_BEGIN + b"open".ljust(STATUS_WIDTH) + b'"}}')
        for name, value in manifest.items():
            self._header[-2:] = f",{json.dumps(name)}:{json.dumps(value)}}}}}".encode()
        self._size = 0  # bytes of data
        self._capacity = _padded(len(self._header) + reserved)
        self._keys: set[str] = set()
        if self.path.is_dir():
            raise BadInput(f"{self.path}: a folder, not a file", "name the trace itself: NAME.safetensors")
        try:
            self._file = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError as err:
            raise BadInput(f"{self.part}: {err.strerror}", "choose with --out a folder that exists") from err
        self._put(self._file, self._head(), 0)
        self._log = log or debug.from_environment()

    def _head(self) -> bytes:
        return struct.pack("<Q", self._capacity) + bytes(self._header).ljust(self._capacity)

    @staticmethod
    def _put(file: int, data: Any, at: int) -> None:
        view = memoryview(data)
        while view:
            n = os.pwrite(file, view, at)
            view, at = view[n:], at + n

    def append(self, name: str, tensor: Any) -> None:
        """Add a torch tensor or numpy array under a new key."""
        if name in self._keys or name == "__metadata__":
            raise ValueError(f"{name!r} is in the trace already")
        tensor = _host(tensor)
        if self._log:
            self._log.arrive()
        dtype, shape, data = _bytes(tensor)
        info = Info(dtype, shape, self._size, self._size + len(data))
        entry = _entry(name, info)
        if len(self._header) + len(entry) > self._capacity:
            self._grow(len(entry))
        self._put(self._file, data, 8 + self._capacity + info.begin)
        # One write, over the closing brace. Before it the file is the old trace with extra bytes, after it the new
        # trace.
        self._put(self._file, entry + b"}", 8 + len(self._header) - 1)
        self._header[-1:] = entry + b"}"
        self._size = info.end
        self._keys.add(name)
        if self._log:
            self._log.show(name, NAMES[dtype], tensor)
            self._log.leave()

    def _grow(self, need: int) -> None:
        """Copy the file with twice the header, so that few copies are needed."""
        old_start = 8 + self._capacity
        self._capacity = _padded(2 * (len(self._header) + need))
        grown = self.part.with_name(self.part.name + ".grow")
        file = os.open(grown, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._put(file, self._head(), 0)
        at = 0
        while at < self._size:
            data = os.pread(self._file, min(CHUNK, self._size - at), old_start + at)
            if not data:
                raise BadInput(f"{self.part}: cut off by somebody else while it was written")
            self._put(file, data, 8 + self._capacity + at)
            at += len(data)
        os.replace(grown, self.part)
        os.close(self._file)
        self._file = file

    def amend(self, manifest: Mapping[str, str]) -> None:
        """Add fields that are known only at the end to the manifest; existing keys stay unchanged."""
        known = json.loads(bytes(self._header))["__metadata__"]
        text = _lines({k: v for k, v in manifest.items() if k not in known})
        at = len(_BEGIN) + STATUS_WIDTH + 1  # after the status and its quotes
        if len(self._header) + len(text) > self._capacity:
            self._grow(len(text))
        self._header[at:at] = text
        self._put(self._file, self._head(), 0)

    def _set_status(self, status: str) -> None:
        # Characters that JSON would escape, or that take several bytes in UTF-8, would change the width.
        text = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "'" for c in status)
        slot = text.encode()[:STATUS_WIDTH].ljust(STATUS_WIDTH)
        self._header[len(_BEGIN) : len(_BEGIN) + STATUS_WIDTH] = slot
        self._put(self._file, slot, 8 + len(_BEGIN))

    def close(self) -> None:
        """Mark the trace complete and give it its final name."""
        os.fsync(self._file)  # data first, then the status "complete"
        self._set_status("complete")
        os.fsync(self._file)
        os.close(self._file)
        self._file = -1
        os.replace(self.part, self.path)
        if self._log:
            self._log.end()

    def fail(self, why: str) -> None:
        """Mark the trace failed; it keeps its `.part` name."""
        self._set_status(f"failed: {why}")
        os.close(self._file)
        self._file = -1
        if self._log:
            self._log.end()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: Any, err: BaseException | None, _tb: Any) -> None:
        if self._file < 0:
            return
        if err is None:
            self.close()
        else:
            self.fail(f"{kind.__name__}: {err}")


# The header of every trace begins so; the status follows.
_BEGIN = f'{{"__metadata__":{{"tracediff.version":"{VERSION}","{STATUS}":"'.encode()


def _padded(size: int) -> int:
    return size + -(8 + size) % ALIGN


class Reader:
    """A trace, or another safetensors file, opened for reading. Only the header is read until a tensor is requested.

    The file may be hostile: every number in the header is checked before use. Bytes after the last tensor are refused,
    unless the trace is marked as not complete: then the bytes are an append that was cut off.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        try:
            self._file = self.path.open("rb", buffering=0)  # a buffer would keep an old part of the file
        except OSError as err:
            raise BadInput(f"{self.path}: {err.strerror}") from err
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _bad(self, why: str) -> BadInput:
        return BadInput(f"{self.path}: not a safetensors file: {why}")

    def _at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes, or fewer at the end of the file."""
        data = bytearray()
        while len(data) < size and (more := os.pread(self._file.fileno(), size - len(data), offset + len(data))):
            data += more
        return bytes(data)

    def _read_header(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        head = self._at(0, 8)
        if len(head) < 8:
            raise self._bad("shorter than its first 8 bytes")
        (length,) = struct.unpack("<Q", head)
        if length > min(MAX_HEADER, size - 8):
            raise self._bad(f"a header of {length} bytes in a file of {size}")
        try:
            header = json.loads(self._at(8, length), object_pairs_hook=_no_duplicates)
        except (ValueError, RecursionError) as err:
            raise self._bad(f"header: {err}") from err
        if not isinstance(header, dict):
            raise self._bad("the header is not a JSON object")
        metadata = header.pop("__metadata__", None) or {}
        if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
            raise self._bad("__metadata__ is not an object of strings")
        self.metadata: dict[str, str] = metadata
        self.tensors: dict[str, Info] = {name: self._info(name, value) for name, value in header.items()}
        self._start = 8 + length
        self._check_data(size - self._start)

    def _info(self, name: str, value: Any) -> Info:
        try:
            dtype, shape, (begin, end) = value["dtype"], tuple(value["shape"]), value["data_offsets"]
        except (TypeError, KeyError, ValueError) as err:
            raise self._bad(f"{name!r} has no dtype, shape and data_offsets") from err
        if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
            raise self._bad(f"{name!r} has a size or offset that is not a whole number")
        if dtype not in SIZES or end - begin != SIZES[dtype] * count(shape):
            raise self._bad(f"{name!r}: {dtype} {list(shape)} does not take {end - begin} bytes")
        return Info(dtype, shape, begin, end)

    def _check_data(self, size: int) -> None:
        end = 0
        for name, info in sorted(self.tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
            if info.begin != end:
                raise self._bad(f"{name!r} starts at byte {info.begin}, the tensor before ends at {end}")
            end = info.end
        if end > size or (end < size and self.status not in ("open", "failed")):
            raise self._bad(f"{size} bytes of data, the header describes {end}")

    @property
    def status(self) -> str:
        """The first word of the status: "open", "complete" or "failed"; empty for a file that is no trace."""
        return self.metadata.get(STATUS, "").split(":")[0].strip()

    def read(self, name: str) -> bytes:
        """Return the data of one tensor, row-major, little endian."""
        info = self.tensors[name]
        data = self._at(self._start + info.begin, info.end - info.begin)
        if len(data) != info.end - info.begin:
            raise BadInput(f"{self.path}: became shorter while it was read")
        return data

    def array(self, name: str) -> Any:
        """Return one tensor as a numpy array; bfloat16 as float32, which is exact."""
        import numpy  # here: the rest of the module works without numpy

        info = self.tensors[name]
        if info.dtype == "BF16":
            bits = numpy.frombuffer(self.read(name), "<u2").astype("<u4") << 16
            return bits.view("<f4").reshape(info.shape)
        if info.dtype.startswith("F8"):
            raise BadInput(f"{self.path}: {name!r} is {NAMES[info.dtype]}, which numpy does not have")
        kinds = {"F": "f", "I": "i", "U": "u", "B": "?"}
        kind = kinds[info.dtype[0]]
        code = kind if kind == "?" else f"<{kind}{SIZES[info.dtype]}"
        return numpy.frombuffer(self.read(name), code).reshape(info.shape)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice")
    return out
