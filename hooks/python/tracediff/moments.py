"""Statistics of a tensor: one pass over its memory, in float64.

Neither torch nor numpy is imported: tensors of both are used by the methods that they share. numpy warns of sums that
overflow, on standard error, between the lines: what they come to is looked at here.
"""

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

STRIP = 1 << 15  # elements converted at a time: a quarter of a megabyte, which stays in a cache


def doubles(tensor: Any) -> Any:
    """Return the elements as float64, in the library of the tensor."""
    return tensor.double() if hasattr(tensor, "double") else tensor.astype("float64")


def strips(tensor: Any) -> Iterator[Any]:
    """Yield the elements as float64, in row-major order, a strip at a time."""
    flat = tensor.reshape(-1)
    if 0 < flat.shape[0] <= STRIP:
        yield doubles(flat)
        return
    for at in range(0, flat.shape[0], STRIP):
        yield doubles(flat[at : at + STRIP])


class Moments:
    """Extremes, mean and standard deviation of the finite elements; how many are NaN, +Inf and -Inf.

    Strips are merged by the formula of Chan, Golub and LeVeque (1979), which takes no difference of large sums.
    """

    def __init__(self, tensor: Any, least: float = -math.inf) -> None:
        """Take in all elements of a torch tensor in the host's memory, or of a numpy array.

        Finite ones of `least` or below are masked: they are counted and left out.
        """
        self.n, self.mean, self.squares = 0, 0.0, 0.0
        self.masked = 0
        self.low, self.high = math.inf, -math.inf
        self.not_finite = [0, 0, 0]
        with _silent(tensor):
            for strip in strips(tensor):
                self._add(strip if least == -math.inf else self._unmasked(strip, least))

    def _unmasked(self, x: Any, least: float) -> Any:
        masked = (x <= least) & (x > -math.inf)
        self.masked += int(masked.sum())
        return x[~masked]

    def _add(self, x: Any) -> None:
        n, total = x.shape[0], float(x.sum())
        if not abs(total) < math.inf:  # else there is nothing to look for: a sum shows NaN and infinities
            for i, found in enumerate((x != x, x == math.inf, x == -math.inf)):
                self.not_finite[i] += int(found.sum())
            x = x[abs(x) < math.inf]
            n, total = x.shape[0], float(x.sum())
        if not n:
            return
        mean = total / n if abs(total) < math.inf else float((x / n).sum())  # a sum overflows before its mean does
        away = x - mean
        squares = float(away.dot(away))
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        share, distance = n / (self.n + n), mean - self.mean
        self.squares += squares + distance * distance * self.n * share
        self.mean += distance * share
        self.n += n

    def certain(self) -> float:
        """Return the mean of what is finite throughout; NaN of anything else."""
        return math.nan if any(self.not_finite) else self.summary()[2]

    def summary(self) -> tuple[float, float, float, float]:
        """Return minimum, maximum, mean and the population's standard deviation; NaN when nothing is finite.

        The standard deviation is NaN, too, where float64 does not hold the sum of squares.
        """
        if not self.n:
            return math.nan, math.nan, math.nan, math.nan
        if self.low == self.high:  # the sum of equal numbers may be rounded, and so miss that they are equal
            return self.low + 0.0, self.high + 0.0, self.low + 0.0, 0.0
        std = math.sqrt(self.squares / self.n) if self.squares < math.inf else math.nan
        return self.low + 0.0, self.high + 0.0, self.mean, std


def _silent(tensor: Any) -> contextlib.AbstractContextManager[Any]:
    """Return what keeps numpy from warning; torch does not warn."""
    numpy = sys.modules.get("numpy")
    return contextlib.nullcontext() if numpy is None or hasattr(tensor, "double") else numpy.errstate(all="ignore")
