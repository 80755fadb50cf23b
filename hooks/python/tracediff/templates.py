"""Templates: equal lines of layers and passes are written once.

A block is a run of lines of one layer. Blocks that differ only in numbers, weights, constants, names and values from
outside share a template. The template has a hole at each difference, and each use of the template lists the values of
the holes.
"""

import dataclasses
import json
from typing import Any


@dataclasses.dataclass
class Block:
    """A run of lines; `values` has the block's own number of each value that the lines make, by identity."""

    layer: int
    lines: list[dict[str, Any]]
    values: dict[int, int] = dataclasses.field(default_factory=dict)


class _Leaf:
    """A place in a block that may differ from block to block."""

    def __init__(self, value: Any) -> None:
        self.value = value


def share(blocks: list[Block], prefix: str) -> tuple[list[Any], list[list[Any]]]:
    """Return the templates, and for each block its call: the template, the layer, and the values of the holes."""
    taken = [_take(block, prefix) for block in blocks]
    groups: dict[str, list[int]] = {}
    for i, (skeleton, _) in enumerate(taken):
        groups.setdefault(json.dumps(skeleton, separators=(",", ":"), default=_mark), []).append(i)
    templates: list[Any] = []
    calls: list[list[Any]] = [[] for _ in blocks]
    for members in groups.values():
        columns = list(zip(*(taken[i][1] for i in members), strict=True))
        holes: dict[str, int] = {}
        places: list[Any] = []
        for column in columns:
            if all(_equal(value, column[0]) for value in column):
                places.append(column[0])
            else:
                places.append(f"${holes.setdefault(json.dumps(column), len(holes))}")
        kept = [json.loads(column) for column in holes]
        templates.append(_fill(taken[members[0]][0], iter(places)))
        for n, i in enumerate(members):
            calls[i] = [len(templates) - 1, blocks[i].layer, [column[n] for column in kept]]
    return templates, calls


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _mark(leaf: _Leaf) -> str:
    value = leaf.value
    return "\x00" + (value[0] if isinstance(value, str) else "0")


def _take(block: Block, prefix: str) -> tuple[Any, list[Any]]:
    """Return a block's lines with its leaves marked, and the leaves in order."""
    leaves: list[Any] = []
    layer = f"{prefix}.{block.layer}." if block.layer >= 0 else ""

    def text(value: str) -> str:
        return value.replace(layer, f"{prefix}.{{layer}}.", 1) if layer else value

    def leaf(value: Any) -> _Leaf:
        leaves.append(value)
        return _Leaf(value)

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v, key) for v in value]
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return leaf(value)
        if key == "name" or (key in ("in", "of") and value[0] in "vcw"):
            return leaf(text(value))
        return value

    return walk(block.lines, ""), leaves


def _fill(skeleton: Any, places: Any) -> Any:
    if isinstance(skeleton, dict):
        return {k: _fill(v, places) for k, v in skeleton.items()}
    if isinstance(skeleton, list):
        return [_fill(v, places) for v in skeleton]
    return next(places) if isinstance(skeleton, _Leaf) else skeleton
