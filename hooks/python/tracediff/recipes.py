"""Recipes that make a constant again from token ids, positions and lengths.

Every recipe that gives the constant of this run is listed. Where several recipes fit, a run of other lengths may use
one only if all recipes agree there: a window longer than the prompt cannot be told from no window.
"""

from collections.abc import Iterator
from typing import Any

import torch

from tracediff.memory import Constant

Recipe = dict[str, Any]


class Lengths:
    """The sizes of a pass: its tokens, the tokens before it, and the windows of the configuration."""

    def __init__(self, ids: Any, past: int, windows: tuple[int, ...] = ()) -> None:
        """`ids` are the token ids of the pass, a tensor [1, T]."""
        self.ids, self.past, self.windows = ids, past, windows
        self.tokens = int(ids.shape[-1])


def tensor(c: Constant) -> Any:
    """Return a constant as a tensor."""
    dtype = getattr(torch, c.dtype)
    if not c.data:
        return torch.empty(c.shape, dtype=dtype)
    return torch.frombuffer(bytearray(c.data), dtype=dtype).reshape(c.shape)


def of(c: Constant, at: Lengths) -> list[Recipe]:
    """Return the recipes that give a constant."""
    return list(_recipes(c, tensor(c), at))


def _recipes(c: Constant, t: Any, at: Lengths) -> Iterator[Recipe]:
    if c.origin - {"input_ids"}:
        return
    if "input_ids" in c.origin:
        ids = at.ids.reshape(-1)
        # Ids of several codebooks are not a row of a pass's ids and stay numbers.
        if t.numel() == ids.numel() == at.tokens and torch.equal(t.reshape(-1), ids.to(t.dtype)):
            yield {"kind": "ids"}
        return
    if t.numel() == 0:
        yield {"kind": "fill", "value": 0}
        return
    positions = torch.arange(at.past, at.past + at.tokens)
    keys = at.past + at.tokens
    flat = t.reshape(-1)
    lengthy = [n for n in c.shape if n != 1]
    if lengthy == [at.tokens] or (not lengthy and at.tokens == 1 and len(c.shape) > 0):
        if torch.equal(flat.to(torch.float64), positions.to(torch.float64)):
            yield {"kind": "positions"}
    if len(lengthy) == 1 and torch.equal(flat.to(torch.float64), torch.arange(len(flat)).to(torch.float64)):
        yield {"kind": "count"}
    if bool((flat == flat[0]).all()) or bool(torch.isnan(flat.to(torch.float64)).all()):
        yield {"kind": "fill", "value": _number(flat[0])}
    if len(c.shape) >= 2 and c.shape[-2] == at.tokens and t.numel() == c.shape[-1] * c.shape[-2]:
        yield from _masks(t.reshape(c.shape[-2:]), positions, keys, at)


def _masks(t: Any, positions: Any, keys: int, at: Lengths) -> Iterator[Recipe]:
    """Yield the masks that equal a matrix [T, S]: visible keys have one value, and hidden keys another."""
    seen_keys = torch.arange(keys)[-t.shape[1] :] if t.shape[1] <= keys else torch.arange(t.shape[1])
    shapes = [("causal", None), *(("sliding", w) for w in at.windows), ("all", None)]
    for kind, window in shapes:
        allowed = torch.ones(t.shape, dtype=torch.bool)
        if kind != "all":
            allowed = seen_keys[None, :] <= positions[:, None]
        if window:
            allowed = allowed & (seen_keys[None, :] > positions[:, None] - window)
        see, hide = t[allowed], t[~allowed]
        if len(see) == 0 or not bool((see == see[0]).all()) or (len(hide) and not bool((hide == hide[0]).all())):
            continue
        if len(hide) and bool(hide[0] == see[0]):
            continue
        recipe: Recipe = {"kind": "mask", "of": kind, "seen": _number(see[0])}
        recipe |= {"window": window} if window else {}
        yield recipe | ({"hidden": _number(hide[0])} if len(hide) else {})


def _number(x: Any) -> Any:
    value = x.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"number": "nan" if value != value else "inf" if value > 0 else "-inf"}
    return value
