"""Tensors that transformers does not show, recomputed from tensors that it shows.

Each function is one kind of operation of the order, with the torch calls of the model, on captured tensors. Where the
model's next tensor is captured too, that tensor follows from the recomputed one bit for bit. Still, recomputed tensors
are tracediff's own arithmetic on the side of the reference, so the manifest lists them and no comparison gates on them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tracediff.errors import CaptureFailed
from tracediff.order import Entry

# The order's operation as a dict, the tensors of the inputs and of the weights.
Function = Callable[[dict[str, Any], Sequence[Any], Sequence[Any]], Any]


def _lookup(op: dict[str, Any], inputs: Sequence[Any], weights: Sequence[Any]) -> Any:
    import torch

    (ids,), (table,) = inputs, weights
    if op.get("fallback"):
        ids = torch.where(torch.logical_and(ids >= 0, ids < op["rows"]), ids, 0)
    return torch.nn.functional.embedding(ids, table)


def _magnitude(op: dict[str, Any], inputs: Sequence[Any], _: Sequence[Any]) -> Any:
    import torch

    square = torch.mean(inputs[0] ** 2, dim=-1, keepdim=True)
    # The model writes the two cases differently, and the results may differ in the last bits.
    return torch.sqrt(square.clamp(min=op["floor"])) if "floor" in op else square**0.5


def _rescale(_: dict[str, Any], inputs: Sequence[Any], __: Sequence[Any]) -> Any:
    value, target, own = inputs
    return value * target / own


def _mean(_: dict[str, Any], inputs: Sequence[Any], __: Sequence[Any]) -> Any:
    import torch

    return torch.mean(inputs[0], dim=-1, keepdim=True)


def _std(_: dict[str, Any], inputs: Sequence[Any], __: Sequence[Any]) -> Any:
    import torch

    return torch.std(inputs[0], dim=-1, keepdim=True, unbiased=False)


def _cutoff(op: dict[str, Any], inputs: Sequence[Any], _: Sequence[Any]) -> Any:
    mean, std = inputs
    return mean + std * _constant(op["multiplier"], std)


def _constant(const: dict[str, Any], like: Any) -> Any:
    """Return a constant as the operation takes it: a number, or a tensor rounded to the dtype of `like`."""
    import torch

    if not const.get("cast"):
        return const["value"]
    return torch.tensor(const["value"], dtype=torch.float32, device=like.device).type(like.dtype)


FUNCTIONS: dict[str, Function] = {
    "lookup": _lookup,
    "magnitude": _magnitude,
    "rescale": _rescale,
    "mean": _mean,
    "std": _std,
    "cutoff": _cutoff,
    "add": lambda _, inputs, __: inputs[0] + inputs[1],
    "sub": lambda _, inputs, __: inputs[0] - inputs[1],
}


def compute(entry: Entry, inputs: Sequence[Any], weights: Sequence[Any]) -> Any:
    """Return the tensor of a derived entry."""
    return FUNCTIONS[entry.op["kind"]](entry.op, inputs, weights)


def check(entry: Entry) -> None:
    """Fail when an entry cannot be recomputed from the tensors of its own pass."""
    if entry.op["kind"] not in FUNCTIONS:
        raise CaptureFailed(f"{entry.name}: derived by {entry.op['kind']!r}, which is not recomputed here")
    if any(ref.prev for ref in entry.inputs):
        raise CaptureFailed(f"{entry.name}: derived from the pass before, which is not kept")
