"""Which modules are the layers of a model: a list of modules, found by its elements, whatever its name."""

import re
from collections.abc import Mapping
from typing import Any

CALLED = re.compile(r"(?P<list>(?:[A-Za-z_]\w*\.)*(?:layers|h|blocks|block|layer|blk))\.\d+(?:\..+)?")
IN_A_LIST = re.compile(r"(^|.*\.)\d+(\..*|$)")


def path(paths: Mapping[Any, str]) -> str:
    """Return the path of the list of layers; "layers" where no list is found.

    `paths` has each module's path. A list with a usual name of layers wins. Otherwise the longest candidate wins, and
    among candidates of equal length the one with the most parameters.
    """
    for one in paths.values():
        if found := CALLED.fullmatch(one):
            return found["list"]
    return max(_lists(paths), default=(0, 0, 0, "layers"))[3]


def _lists(paths: Mapping[Any, str]) -> list[tuple[int, int, int, str]]:
    """Return length, parameters, place from the end and path of each list whose modules could be layers.

    Each module of a candidate has modules in it, and at least two are of one class. A candidate is in no other list.
    Two lists of the same length in one module are no candidates: the work of one layer is spread over both lists.
    """
    lengths: dict[tuple[str, int], int] = {}  # lists by the module that they are in, and length
    found = []
    for module, one in paths.items():
        elements = list(module.children())
        if len(elements) < 2 or IN_A_LIST.fullmatch(one) or not _numbered(module):
            continue
        parent = one.rpartition(".")[0]
        lengths[parent, len(elements)] = lengths.get((parent, len(elements)), 0) + 1
        if all(any(True for _ in e.children()) for e in elements) and len({type(e) for e in elements}) < len(elements):
            size = sum(p.numel() for p in module.parameters())
            found.append((len(elements), size, -len(found), one))
    return [f for f in found if lengths[f[3].rpartition(".")[0], f[0]] == 1]


def _numbered(module: Any) -> bool:
    return all(name == str(i) for i, (name, _) in enumerate(module.named_children()))
