"""Series of steps, SERIES.step.N, as models record them that refine a state again and again."""

import math
from collections.abc import Callable
from typing import Any

from tracediff.lines import digits, number, quoted, word
from tracediff.moments import Moments, doubles, strips

# The change from one step to the next, relative to the step's length, up to which it counts as none.
CONVERGED = 0.01

CONFIDENCE = "confidence"  # the last part of a series' name that records how sure the model is


def split(name: str) -> tuple[str, int | None]:
    """Return the series and the number of a step; the name and None for what is no step."""
    series, mark, n = name.rpartition(".step.")
    if not mark or not series or not digits(n):
        return name, None
    return series, int(n)


def last(name: str) -> str:
    """Return the last part of a name."""
    return name.rpartition(".")[2]


class Steps:
    """The series of one pass. Of each its last step is kept, whole."""

    def __init__(self, line: Callable[..., None]) -> None:
        """Begin; `line` prints a kind and its fields."""
        self._line = line
        self._series: dict[str, _Series] = {}

    def step(self, index: int, name: str, n: int, dtype: str, tensor: Any) -> None:
        """Show what a step changed."""
        if name in self._series and n <= self._series[name].last:  # it starts anew
            self._end(index, self._series.pop(name))
        before, similarity, change = "-", math.nan, math.nan
        series = self._series.get(name)
        if series is not None:
            before = str(series.last)
            similarity, change = series.compare(dtype, tensor)
            series.settle(n, change)
        else:
            series = self._series[name] = _Series(name)
        self._line(
            "step", ("pass", index), ("series", word(name)), ("step", n), ("before", before),
            ("similarity", number(similarity)), ("change", number(change)),
            ("confidence", number(sureness(name, tensor))),
        )  # fmt: skip
        series.keep(n, dtype, tensor)

    def end(self, index: int) -> None:
        """Say how the series of a pass ended, and forget them."""
        for series in self._series.values():
            self._end(index, series)
        self._series = {}

    def _end(self, index: int, series: "_Series") -> None:
        if last(series.name) == CONFIDENCE:
            return
        settled = series.settled
        outcome = f"hit the maximum of {series.count} steps" if settled is None else f"converged at step {settled}"
        self._line(
            "series", ("pass", index), ("series", word(series.name)), ("steps", series.count),
            ("outcome", quoted(outcome)),
        )  # fmt: skip


class _Series:
    def __init__(self, name: str) -> None:
        self.name, self.last, self.count = name, -1, 0
        self.settled: int | None = None  # the step from which on nothing has changed
        self._dtype, self._tensor = "", None

    def compare(self, dtype: str, b: Any) -> tuple[float, float]:
        """Return the cosine of the step before and this one, and the length of their difference by this one's.

        Of whole numbers, such as tokens, the shares of elements that stayed and that changed; NaN for tensors of
        different shape or dtype, and where an element is no finite number.
        """
        a: Any = self._tensor
        if last(self.name) == CONFIDENCE:
            return math.nan, math.nan  # it is about another series
        if dtype != self._dtype or tuple(a.shape) != tuple(b.shape) or 0 in b.shape:
            return math.nan, math.nan
        count = equal = 0
        before = now = cross = difference = 0.0
        for x, y in zip(strips(a), strips(b), strict=True):
            if not ((abs(x) < math.inf).all() and (abs(y) < math.inf).all()):
                return math.nan, math.nan
            count += x.shape[0]
            equal += int((x == y).sum())
            before += float((x * x).sum())
            now += float((y * y).sum())
            cross += float((x * y).sum())
            difference += float(((y - x) ** 2).sum())
        if "float" not in dtype:
            return equal / count, 1 - equal / count
        length = now if before == now else math.sqrt(before) * math.sqrt(now)
        similarity = max(-1.0, min(1.0, cross / length)) if length else math.nan
        if difference == 0:
            return similarity, 0.0  # also of zeros, which have no direction
        return similarity, math.sqrt(difference / now) if now else math.inf

    def settle(self, n: int, change: float) -> None:
        """Note whether a step still changed anything; NaN is not at rest."""
        if not change <= CONVERGED:
            self.settled = None
        elif self.settled is None:
            self.settled = n

    def keep(self, n: int, dtype: str, tensor: Any) -> None:
        """Remember a step for the next one: the model may go on to change the tensor."""
        self.last, self._dtype = n, dtype
        self._tensor = tensor.clone() if hasattr(tensor, "clone") else tensor.copy()
        self.count += 1


def sureness(name: str, tensor: Any) -> float:
    """Return what a series records of its confidence.

    That is the mean of a tensor of this name; of logits the mean, over the rows, of the largest probability; NaN of any
    other.
    """
    if last(name) == CONFIDENCE:
        moments = Moments(tensor)
        return math.nan if any(moments.not_finite) else moments.summary()[2]
    if last(name) != "logits" or not len(tensor.shape) or 0 in tensor.shape:
        return math.nan
    total = 0.0
    rows = tensor.reshape(-1, tensor.shape[-1])
    for i in range(rows.shape[0]):
        row = doubles(rows[i])
        top = float(row.max())
        total += 1 / float((math.e ** (row - top)).sum()) if abs(top) < math.inf else math.nan
    return total / rows.shape[0]
