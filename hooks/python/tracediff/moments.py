"""Statistics of a tensor: one pass over its memory, in float64.

Neither torch nor numpy is imported: tensors of both are used by their common methods. Warnings of numpy about sums that
overflow would appear between the lines on standard error, so they are off: results are checked here.
"""

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

STRIP = 1 << 16  # elements converted at a time: half a megabyte, which stays in a cache
NARROW = ("torch.bfloat16", "torch.float16", "torch.float32")  # extremes are found twice as fast as in float64
NEAR = 1e-6  # of a sum of squares; after subtracting the mean, a larger rest has at least ten correct digits


def doubles(tensor: Any) -> Any:
    """Return the elements as float64, in the library of the tensor."""
    if not hasattr(tensor, "double"):
        return tensor.astype("float64")
    return tensor.float().double() if str(tensor.dtype) == "torch.float16" else tensor.double()  # ten times as fast


def finite(tensor: Any) -> bool:
    """Report whether every element of a torch tensor is known to be finite, by one sum.

    False also where the sum overflows, for numpy, which warns of overflow, and for dtypes outside NARROW: no sum is
    taken.
    """
    return str(tensor.dtype) in NARROW and abs(float(tensor.sum())) < math.inf


def strips(tensor: Any) -> Iterator[Any]:
    """Yield the elements as float64, in row-major order, a strip at a time."""
    return map(doubles, pieces(tensor))


def pieces(tensor: Any) -> Iterator[Any]:
    """Yield the elements as they are, in row-major order, a strip at a time."""
    flat = tensor.reshape(-1)
    size = flat.shape[0]
    if 0 < size <= STRIP:
        yield flat
        return
    for at in range(0, size, STRIP):
        yield flat[at : at + STRIP]


class Moments:
    """Extremes, mean and standard deviation of the finite elements; the numbers of NaN, +Inf and -Inf.

    Strips are merged by the formula of Chan, Golub and LeVeque (1979). In a strip, the squares about the mean are the
    sum of squares less n times the squared mean; where little would remain, each element's distance is squared instead.
    """

    def __init__(self, tensor: Any, least: float = -math.inf) -> None:
        """Take in all elements of a torch tensor in the host's memory, or of a numpy array.

        Finite elements of `least` or below are masked: counted and left out.
        """
        self.n, self.mean, self.squares = 0, 0.0, 0.0
        self.masked = 0
        self.low, self.high = math.inf, -math.inf
        self.not_finite = [0, 0, 0]
        with _silent(tensor):
            for strip in pieces(tensor):
                self._add(strip if least == -math.inf else self._unmasked(strip, least))

    def _unmasked(self, x: Any, least: float) -> Any:
        x = doubles(x)
        masked = (x <= least) & (x > -math.inf)
        self.masked += int(masked.sum())
        return x[~masked]

    def _add(self, strip: Any) -> None:
        x = doubles(strip)
        n, total = x.shape[0], float(x.sum())
        if not abs(total) < math.inf:  # a finite sum proves that the strip has no NaN and no infinity
            for i, found in enumerate((x != x, x == math.inf, x == -math.inf)):
                self.not_finite[i] += int(found.sum())
            strip = x = x[abs(x) < math.inf]
            n, total = x.shape[0], float(x.sum())
        if not n:
            return
        mean = total / n if abs(total) < math.inf else float((x / n).sum())  # a sum overflows before its mean does
        whole = float(x.dot(x))
        squares = whole - total * mean
        if not NEAR * whole < squares < math.inf:
            away = x - mean
            squares = float(away.dot(away))
        low, high = _extremes(strip if str(strip.dtype) in NARROW else x)
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        share, distance = n / (self.n + n), mean - self.mean
        self.squares += squares + distance * distance * self.n * share
        self.mean += distance * share
        self.n += n

    def certain(self) -> float:
        """Return the mean where every element is finite; NaN otherwise."""
        return math.nan if any(self.not_finite) else self.summary()[2]

    def summary(self) -> tuple[float, float, float, float]:
        """Return minimum, maximum, mean and the population's standard deviation; NaN when nothing is finite.

        The standard deviation is also NaN where float64 does not hold the sum of squares.
        """
        if not self.n:
            return math.nan, math.nan, math.nan, math.nan
        if self.low == self.high:  # the sum of equal numbers may be rounded, and give a standard deviation above 0
            return self.low + 0.0, self.high + 0.0, self.low + 0.0, 0.0
        std = math.sqrt(self.squares / self.n) if self.squares < math.inf else math.nan
        return self.low + 0.0, self.high + 0.0, self.mean, std


def _extremes(x: Any) -> Any:
    return x.aminmax() if hasattr(x, "aminmax") else (x.min(), x.max())


def _silent(tensor: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context that silences numpy's warnings; torch does not warn."""
    numpy = sys.modules.get("numpy")
    return contextlib.nullcontext() if numpy is None or hasattr(tensor, "double") else numpy.errstate(all="ignore")
