"""The part of a recorded run that debug mode shows."""

import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracediff.errors import BadInput

if TYPE_CHECKING:
    from tracediff.order import Order  # order imports this module

Ranges = list[tuple[int, int]]  # first and last numbers; an empty list limits nothing
MOST_DIGITS = 20  # of a range


def ranges(text: str, flag: str) -> Ranges:
    """Read "0-3,7,12-", the value of a flag."""
    out = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or len(part) > MOST_DIGITS:
            raise BadInput(f"{flag} {text}: {part!r} is not a number or range", f"for example: {flag} 0-3,7")
        out.append((int(first), int(last) if last else (1 << 31 if dash else int(first))))
    return out


def inside(ranges: Ranges, n: int) -> bool:
    """Report whether ranges have a number."""
    return not ranges or any(first <= n <= last for first, last in ranges)


class Shown:
    """The part of a run that a person asked for: some names, passes and positions of the sequence."""

    def __init__(self, path: str, listed: "Order", tokens: Sequence[int]) -> None:
        """Read JSON {"names":[...],"passes":"0-3,7","positions":""}; `tokens` has the number of tokens of each pass."""
        try:
            with open(path, encoding="utf-8") as file:
                value = json.load(file)
            names = set(value["names"])
            self._passes, self.positions = (
                ranges(value[key], "--debug-only") if value[key] else [] for key in ("passes", "positions")
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
            raise BadInput(f"--debug-only {path}: {err}") from err
        # The axis of tokens by name, for all shown names; -1 for names without the axis, and for input_ids, which are
        # listed by their positions.
        self._axes = {
            e.name: e.shape.index("T") if "T" in e.shape and e.name != "input_ids" else -1
            for e in listed.entries
            if e.name in names
        }
        self.starts = list(itertools.accumulate(tokens, initial=0))

    def part(self, index: int, name: str, tensor: Any) -> Any:
        """Return the rows of a tensor that are shown; None for no rows."""
        axis = self._axes.get(name)
        if axis is None or not inside(self._passes, index):
            return None
        if not self.positions or axis < 0:
            return tensor
        start = self.starts[index]
        rows = [t for t in range(tensor.shape[axis]) if inside(self.positions, start + t)]
        return tensor[(slice(None),) * axis + (rows,)] if rows else None
