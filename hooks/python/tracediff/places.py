"""The place in a model's source that called torch: the line, and the expression on that line."""

import itertools
import linecache
import sys
from types import CodeType
from typing import Any

import torch

MAX_EXPRESSION = 80  # characters
MAX_ROWS = 32  # lines of source that an expression may span

_HERE = __file__.rsplit("/", 1)[0]
_TORCH = torch.__file__.rsplit("/", 1)[0]
# Source files by path, in the form of recorded lines; "" for files of torch and of this package.
_FILES: dict[str, str] = {}
# Expressions by the identity of their code and the offset in it; the code itself hashes slowly. The code is kept, so
# that no other code gets the same identity.
_EXPRESSIONS: dict[tuple[int, int], tuple[CodeType, str]] = {}


def line() -> str:
    """Return the line of source that called torch: "net.py:7"; "" where no such line exists."""
    found = _caller()
    return f"{found[1]}:{found[0].f_lineno}" if found else ""


def place() -> tuple[str, str]:
    """Return the line of source that called torch, and the expression there; "" for unknown parts."""
    found = _caller()
    if found is None:
        return "", ""
    frame, file = found
    code, at = frame.f_code, frame.f_lasti
    known = _EXPRESSIONS.get((id(code), at))
    if known is None:
        known = _EXPRESSIONS[id(code), at] = code, expression(code, at)
    return f"{file}:{frame.f_lineno}", known[1]


def _caller() -> tuple[Any, str] | None:
    """Return the nearest frame outside of torch and this package, and the name of its file in recorded lines."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        short = _FILES.get(name)
        if short is None:
            short = _FILES[name] = "" if name.startswith((_TORCH, _HERE, "<")) else _short(name)
        if short:
            return frame, short
        frame = frame.f_back
    return None


def _short(path: str) -> str:
    """Return a source file's path below the folder of installed packages; otherwise only the file's name."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in path:
            return path.rsplit(mark, 1)[1]
    return path.rsplit("/", 1)[1]


def expression(code: CodeType, at: int) -> str:
    """Return the text of the expression whose instruction is at an offset, on one line; "" where it is unknown."""
    where = next(itertools.islice(code.co_positions(), at // 2, None), None)
    if where is None or None in where:
        return ""
    first, last, start, end = where
    if not 0 < first <= last < first + MAX_ROWS:  # type: ignore[operator]
        return ""
    # Columns count bytes of UTF-8.
    numbers = range(first, last + 1)  # type: ignore[arg-type, operator]
    rows = [linecache.getline(code.co_filename, n).encode() for n in numbers]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    text = " ".join(b" ".join(rows).decode(errors="replace").split())
    # Replace characters that a reader with an older Unicode table may not print.
    text = "".join(c if c.isprintable() and c < "\U00010000" else "?" for c in text)
    return text if len(text) <= MAX_EXPRESSION else text[: MAX_EXPRESSION - 1].rstrip() + "…"
