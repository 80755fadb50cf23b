"""One pass after the other: tensors that fired, checked against the order, put in sequence, written.

Hooks fire in the order of execution. A list has to fix choices that a model leaves open (streams interleaved or not,
sliding before full), so a tensor waits until the entries before it have come. Inputs of derived entries wait until the
derived entries are computed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracediff import attention, derived
from tracediff.errors import CaptureFailed
from tracediff.model import VERSION_HINT, Loaded
from tracediff.order import Entry, Order
from tracediff.trace import count


class Recorder:
    """Takes the tensors of one pass at a time and hands them on in the order of the list.

    Every tensor is copied when it fires, because models change tensors in place later. `put` receives (entry, tensor)
    for each entry of the plan, and may keep the tensor.
    """

    def __init__(self, loaded: Loaded, order: Order, plan: Sequence[Entry], put: Callable[[Entry, Any], None]) -> None:
        """Plan the capture of some entries of an order."""
        self._loaded, self._window, self._plan, self._put = loaded, order.window, plan, put
        by_name = {entry.name: entry for entry in order.entries}
        self._uses: Counter[str] = Counter()
        for entry in plan:
            if entry.source.kind == "derived":
                derived.check(entry)
                self._uses.update(ref.name for ref in entry.inputs)
        planned = {entry.name for entry in plan}
        extra = [by_name[name] for name in self._uses if name not in planned]
        # A derived input outside of the plan would have to be planned too; no order has such an input.
        if any(entry.source.kind == "derived" for entry in extra):
            raise CaptureFailed(f"{extra[0].name}: needed for a derived entry and derived itself")
        self.wanted = [entry for entry in plan if entry.source.kind != "derived"] + extra
        self._planned = planned
        self._in_pass = False

    def begin(self, tokens: int, past: int) -> None:
        """Start a pass of `tokens` tokens after `past` cached ones."""
        self._tokens, self._past, self._in_pass = tokens, past, True
        self._next = 0  # the first entry of the plan that is not written
        self._waiting: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}  # inputs of derived entries to come
        self._left = Counter(self._uses)
        self._fired: set[str] = set()

    def fire(self, entry: Entry, tensor: Any) -> None:
        """Take one tensor from its source."""
        if not self._in_pass:
            raise CaptureFailed(f"{entry.name}: {entry.source} fired outside a pass")
        if entry.name in self._fired:
            raise CaptureFailed(f"{entry.name}: {entry.source} fired twice in one pass", VERSION_HINT)
        self._fired.add(entry.name)
        with attention.unseen():
            value = self._fitted(entry, tensor)
            if entry.name in self._left:
                self._kept[entry.name] = value
            if entry.name in self._planned:
                self._waiting[entry.name] = value
            self._flush()

    def _fitted(self, entry: Entry, tensor: Any) -> Any:
        """Return a copy with the entry's shape and dtype, or fail."""
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise CaptureFailed(f"{entry.name}: {entry.source} is {type(tensor).__name__}, not a tensor", VERSION_HINT)
        if entry.source.last_t:
            tensor = tensor[..., -self._tokens :, :]
        if entry.source.heads_first:
            tensor = tensor.transpose(1, 2)
        want = entry.size(self._tokens, self._past, self._window)
        if not _splits(tuple(tensor.shape), want):
            raise CaptureFailed(f"{entry.name}: {entry.source} has shape {list(tensor.shape)}, want {list(want)}")
        dtype = getattr(torch, entry.dtype or self._loaded.dtype)
        if tensor.dtype != dtype:
            raise CaptureFailed(f"{entry.name}: {entry.source} is {tensor.dtype}, want {dtype}")
        copy = tensor.detach().clone(memory_format=torch.contiguous_format)
        return copy.reshape(want)

    def _flush(self) -> None:
        """Write every entry that is next in the plan."""
        while self._next < len(self._plan):
            entry = self._plan[self._next]
            if entry.source.kind == "derived" and all(ref.name in self._kept for ref in entry.inputs):
                value = self._derive(entry)
            elif entry.name in self._waiting:
                value = self._waiting.pop(entry.name)
            else:
                return
            self._next += 1
            self._put(entry, value)

    def _derive(self, entry: Entry) -> Any:
        inputs = [self._kept[r.name] if r.index is None else self._kept[r.name][r.index] for r in entry.inputs]
        weights = [self._loaded.weight(w.name, w.fallback) for w in entry.weights]
        value = derived.compute(entry, inputs, weights)
        want = entry.size(self._tokens, self._past, self._window)
        if value.numel() != count(want):
            raise CaptureFailed(f"{entry.name}: recomputed with shape {list(value.shape)}, want {list(want)}")
        value = value.reshape(want)
        if entry.name in self._left:
            self._kept[entry.name] = value
        for ref in entry.inputs:
            self._left[ref.name] -= 1
            if not self._left[ref.name]:
                del self._kept[ref.name]
        return value

    def end(self) -> None:
        """Finish the pass; fail when an entry did not come."""
        self._in_pass = False
        missing = [entry for entry in self.wanted if entry.name not in self._fired]
        if missing:
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise CaptureFailed(f"{missing[0].name}: {missing[0].source} never fired{more}", VERSION_HINT)


def _splits(have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Report whether the shapes are equal, or differ only in a last axis that is split into several.

    A capture makes no other reshape: it could hide transposed axes.
    """
    if have == want:
        return True
    return 0 < len(have) < len(want) and have[:-1] == want[: len(have) - 1] and have[-1] == count(want[len(have) - 1 :])
