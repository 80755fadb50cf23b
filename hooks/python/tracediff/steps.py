"""Series of steps, SERIES.step.N, recorded by models that refine a state again and again."""

import math
from collections.abc import Callable
from typing import Any

from tracediff.lines import digits, ms, number, quoted, word
from tracediff.moments import Moments, doubles, strips

# A change from one step to the next, relative to the step's length, up to this limit counts as no change.
CONVERGED = 0.01

# The last parts of names of series about another series: the model's confidence, and its loss.
CONFIDENCE, LOSS = "confidence", "loss"


def split(name: str) -> tuple[str, int | None]:
    """Return the series and the number of a step; the name and None for a name without a step."""
    series, mark, n = name.rpartition(".step.")
    if not mark or not series or not digits(n):
        return name, None
    return series, int(n)


def last(name: str) -> str:
    """Return the last part of a name."""
    return name.rpartition(".")[2]


def is_loss(name: str) -> bool:
    """Report whether a name is the loss of a whole pass."""
    return name == "loss" or name.endswith(".loss")


def companion(name: str) -> bool:
    """Report whether a series is about another series."""
    return last(name) in (CONFIDENCE, LOSS)


class Mean:
    """The mean of a series of numbers, without NaN."""

    def __init__(self) -> None:
        self.n, self.sum, self.last = 0, 0.0, math.nan

    def add(self, x: float) -> None:
        """Take in a number."""
        if x == x:
            self.n, self.sum, self.last = self.n + 1, self.sum + x, x

    def mean(self) -> float:
        """Return the mean; NaN without numbers."""
        return self.sum / self.n if self.n else math.nan

    def merge(self, other: "Mean") -> None:
        """Take in the numbers of another mean."""
        self.n, self.sum = self.n + other.n, self.sum + other.sum
        if other.n:
            self.last = other.last


class Steps:
    """The series of one pass, and their averages over all passes. The last step of each series is kept whole."""

    def __init__(self, line: Callable[..., None]) -> None:
        """Begin; `line` prints a kind and its fields."""
        self._line = line
        self._series: dict[str, _Series] = {}
        self._about: dict[str, list[Mean]] = {}  # of confidences and losses, by name, then by chunk
        self._chunks: dict[str, int] = {}  # how often a series began in this pass
        self._averages: dict[str, _Average] = {}

    def step(self, index: int, name: str, n: int, dtype: str, tensor: Any, began: float, now: float, full: bool) -> None:
        """Show what a step changed.

        `began` and `now` are times of the pass, before the step and at it; a line is printed only where `full`.
        """
        if name in self._series and n <= self._series[name].last:  # the series starts again
            self._end(index, self._series.pop(name), full)
        if name not in self._series:
            chunk = self._chunks.get(name, 0)
            self._chunks[name] = chunk + 1
            self._series[name] = _Series(name, chunk, began)
        series = self._series[name]
        before = str(series.last) if series.count else "-"
        similarity = change = math.nan
        if series.count and not companion(name):
            similarity, change = series.compare(dtype, tensor)
            series.settle(n, change)
        value = said(name, tensor)
        self._of(name, series.chunk).add(value)
        if full:
            lost = last(name) == LOSS
            self._line(
                "step", ("pass", index), ("series", word(name)), ("step", n), ("before", before),
                ("similarity", number(similarity)), ("change", number(change)),
                ("confidence", number(math.nan if lost else value)), *([("loss", number(value))] if lost else []),
            )  # fmt: skip
        series.keep(n, dtype, tensor)
        series.done = now

    def _of(self, name: str, chunk: int) -> Mean:
        known = self._about.setdefault(name, [])
        while len(known) <= chunk:
            known.append(Mean())
        return known[chunk]

    def end(self, index: int, full: bool) -> None:
        """Print how the series of a pass ended, and forget the series."""
        for series in self._series.values():
            self._end(index, series, full)
        self._series, self._about, self._chunks = {}, {}, {}

    def _end(self, index: int, series: "_Series", full: bool) -> None:
        """Print how a series ended: confidence and loss at the last step, and the time of all steps."""
        if companion(series.name):
            return
        base = series.name.removesuffix(last(series.name))
        sure, lost = (self._of(base + part, series.chunk) for part in (CONFIDENCE, LOSS))
        if not sure.n:
            sure = self._of(series.name, series.chunk)  # of logits
        self._averages.setdefault(series.name, _Average()).add(series, sure, lost)
        if not full:
            return
        settled = series.settled
        outcome = f"hit the maximum of {series.count} steps" if settled is None else f"converged at step {settled}"
        self._line(
            "series", ("pass", index), ("series", word(series.name)), ("steps", series.count),
            ("outcome", quoted(outcome)), ("confidence", number(sure.last)), ("loss", number(lost.last)),
            ms("ms", series.done - series.began),
        )  # fmt: skip

    def summary(self) -> None:
        """Print the averages of all series."""
        for name, average in self._averages.items():
            average.show(name, self._line)


class _Average:
    """Averages of a series over all its chunks: the number of runs, and the values of its steps."""

    def __init__(self) -> None:
        self.chunks = 0
        self.steps, self.sure, self.lost, self.surest, self.lowest, self.time = (Mean() for _ in range(6))

    def add(self, series: "_Series", sure: Mean, lost: Mean) -> None:
        self.chunks += 1
        if series.settled is not None:
            self.steps.add(float(series.settled))
        self.sure.merge(sure)
        self.lost.merge(lost)
        self.surest.add(sure.last)
        self.lowest.add(lost.last)
        self.time.add(series.done - series.began)

    def show(self, name: str, line: Callable[..., None]) -> None:
        line(
            "average", ("series", word(name)), ("chunks", self.chunks), ("converged", self.steps.n),
            ("steps", number(self.steps.mean())), ("confidence", number(self.sure.mean())),
            ("loss", number(self.lost.mean())), ("last_confidence", number(self.surest.mean())),
            ("last_loss", number(self.lowest.mean())), ms("ms", self.time.mean()),
        )  # fmt: skip


class _Series:
    def __init__(self, name: str, chunk: int, began: float) -> None:
        self.name, self.chunk, self.last, self.count = name, chunk, -1, 0
        self.began = self.done = began  # times in the pass: before the first step, and at the last step
        self.settled: int | None = None  # the first step since which nothing has changed
        self._dtype, self._tensor = "", None

    def compare(self, dtype: str, b: Any) -> tuple[float, float]:
        """Return the cosine of the step before and this step, and the length of their difference by this step's length.

        For whole numbers, such as tokens: the shares of equal and of changed elements. NaN for tensors of different
        shape or dtype, and where an element is not finite.
        """
        a: Any = self._tensor
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
            return similarity, 0.0  # also for zeros, which have no direction
        return similarity, math.sqrt(difference / now) if now else math.inf

    def settle(self, n: int, change: float) -> None:
        """Note whether a step still changed anything; a change of NaN counts as a change."""
        if not change <= CONVERGED:
            self.settled = None
        elif self.settled is None:
            self.settled = n

    def keep(self, n: int, dtype: str, tensor: Any) -> None:
        """Keep a copy of a step for the next one: the model may change the tensor later."""
        self.last, self._dtype = n, dtype
        self.count += 1
        if not companion(self.name):
            self._tensor = tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def said(name: str, tensor: Any) -> float:
    """Return the value of a step for its series.

    The value is the mean of a confidence or a loss; for logits the mean, over the rows, of the largest probability; NaN
    for any other series.
    """
    if companion(name):
        return Moments(tensor).certain()
    if last(name) != "logits" or not len(tensor.shape) or 0 in tensor.shape:
        return math.nan
    total = 0.0
    rows = tensor.reshape(-1, tensor.shape[-1])
    for i in range(rows.shape[0]):
        row = doubles(rows[i])
        top = float(row.max())
        total += 1 / float((math.e ** (row - top)).sum()) if abs(top) < math.inf else math.nan
    return total / rows.shape[0]
