"""TENSOR_ORDER as `tracediff order --format json` prints it: the entries of one pass, in execution order.

The file has everything that a capture needs to know about a model: the resolved configuration, and for each tensor the
name, shape, dtype, operation, and the place where transformers shows the tensor.
"""

import dataclasses
import json
import os
import pathlib
from typing import Any

from tracediff.errors import BadInput
from tracediff.shown import inside, ranges
from tracediff.trace import DTYPES

VERSION = 1
KINDS = ("input", "in", "out", "call", "attn", "result", "derived")
SYMBOLS = ("T", "S.full", "S.sliding")


@dataclasses.dataclass(frozen=True)
class Source:
    """The place where transformers shows an entry.

    kind      input    an argument of the whole call, `name`
              in       the input of `module` that its forward calls `name`
              out      the output of `module`
              call     of the method `name` of `module`: the argument `arg`, else the result
              attn     inside the eager attention function called for `module`; `name` is the role
              result   the field `name` of the model's output
              derived  not shown by transformers: recomputed
    module    a path below the text model, "" the text model itself; "^x" is x below the outer model
    call      index of the call within the pass, from 0
    when      only the call whose argument layer_type has this value
    item      index of the item of a tuple
    last_t    only the last T positions of the axis before the last
    heads_first  the tensor is [1,heads,T,D] in transformers and [1,T,heads,D] in the entry
    """

    kind: str
    module: str = ""
    name: str = ""
    arg: str = ""
    call: int = 0
    when: str = ""
    item: int | None = None
    last_t: bool = False
    heads_first: bool = False

    def __str__(self) -> str:
        """Return a short form such as "out:layers.3.self_attn.q_norm", as `tracediff order` prints it."""
        if self.kind == "derived":
            return self.kind
        where = {
            "in": f"{self.module}({self.name})",
            "attn": f"{self.module}({self.name})",
            "call": f"{self.module + '.' if self.module else ''}{self.name}" + (f"({self.arg})" if self.arg else ""),
            "out": self.module,
        }.get(self.kind, self.name)
        extras = (f"[{self.when}]" if self.when else "") + (f".{self.item}" if self.item is not None else "")
        extras += (f"#{self.call}" if self.call else "") + ("[-T:]" if self.last_t else "")
        extras += ".transpose(1,2)" if self.heads_first else ""
        return f"{self.kind}:{where}{extras}"


@dataclasses.dataclass(frozen=True)
class Ref:
    """One input of an operation: an entry, or one `index` of its first axis; `prev` takes the entry of the pass before.
    """

    name: str
    index: int | None = None
    prev: bool = False


@dataclasses.dataclass(frozen=True)
class Weight:
    """A checkpoint tensor by its name below the text model, with a fallback name."""

    name: str
    shape: tuple[int, ...]
    fallback: str = ""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One named tensor of a pass."""

    name: str
    layer: int  # -1 before and after the layers
    level: int  # 1 block boundaries, 2 module outputs, 3 internals
    op: dict[str, Any]
    inputs: tuple[Ref, ...]
    weights: tuple[Weight, ...]
    shape: tuple[int | str, ...]
    dtype: str  # torch's name; "" for the dtype of the model
    source: Source

    def size(self, tokens: int, past: int, window: int) -> tuple[int, ...]:
        """Return the shape in a pass of `tokens` tokens after `past`: sliding layers keep the last window-1 keys."""
        sizes = {"T": tokens, "S.full": past + tokens, "S.sliding": min(past, max(window - 1, 0)) + tokens}
        return tuple(sizes[n] if isinstance(n, str) else n for n in self.shape)


@dataclasses.dataclass(frozen=True)
class Scope:
    """The part of a run to capture: entries up to a level, and only some layers. An empty text means all layers."""

    level: int = 3
    layers: str = ""

    def select(self, entries: tuple[Entry, ...]) -> list[Entry]:
        """Return the entries in scope, in order. With layers, entries after the last layer are left out."""
        if not self.layers:
            return [e for e in entries if e.level <= self.level]
        wanted = ranges(self.layers, "--layers")
        chosen = [i for i, e in enumerate(entries) if e.layer >= 0 and inside(wanted, e.layer)]
        if not chosen:
            raise BadInput(f"--layers {self.layers}: the model has no such layer", "layers count from 0")
        first = next(i for i, e in enumerate(entries) if e.layer >= 0)
        keep = set(chosen) | set(range(first))
        return [e for i, e in enumerate(entries) if i in keep and e.level <= self.level]


@dataclasses.dataclass(frozen=True)
class Order:
    """The list for one configuration. `config_text` is the text of the configuration in the file, for the manifest."""

    config: dict[str, Any]
    config_text: str
    entries: tuple[Entry, ...]

    @property
    def window(self) -> int:
        """The sliding window, 0 when the model has none."""
        return self.config.get("sliding_window", 0)


def load(path: str | os.PathLike[str]) -> Order:
    """Read an order file."""
    hint = "make one with: tracediff order --model DIR --format json > order.json"
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as err:
        raise BadInput(f"--order {path}: {err.strerror}", hint) from err
    except ValueError as err:
        raise BadInput(f"--order {path}: {err}", hint) from err
    try:
        return parse(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        why = f"{err} is missing" if isinstance(err, KeyError) else str(err)
        raise BadInput(f"--order {path}: not an order: {why}", hint) from err


def parse(text: str) -> Order:
    """Parse the text of an order file; ValueError, KeyError, TypeError or AttributeError for any other text."""
    data = json.loads(text)
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']}, this program reads version {VERSION}")
    if not isinstance(data["config"], dict):
        raise ValueError("it has no config: a list of names does not say where transformers shows them")
    sizes = {name: data["config"][name] for name in ("vocab_size", "max_position_embeddings")}
    if not all(type(n) is int for n in sizes.values()):
        raise ValueError(f"its config has {sizes}")
    entries = tuple(_entry(e) for e in data["entries"])
    before: set[str] = set()
    for entry in entries:
        missing = [r.name for r in entry.inputs if not r.prev and r.name not in before]
        if missing or entry.name in before:
            raise ValueError(f"{entry.name!r} stands twice, or before its input {missing}")
        before.add(entry.name)
    if not entries:
        raise ValueError("it lists nothing")
    return Order(data["config"], _member(text, "config"), entries)


def _entry(e: dict[str, Any]) -> Entry:
    source = Source(**e["hf"])
    if source.kind not in KINDS:
        raise ValueError(f"{e['name']!r}: source kind {source.kind!r} is not one of {', '.join(KINDS)}")
    if not isinstance(e["op"]["kind"], str) or e.get("dtype", "int64") not in DTYPES:
        raise ValueError(f"{e['name']!r}: op {e['op']}, dtype {e.get('dtype')!r}")
    if not type(e["layer"]) is type(e["level"]) is int:
        raise ValueError(f"{e['name']!r}: layer {e['layer']!r}, level {e['level']!r}")
    shape = tuple(e["shape"])
    if not all((type(n) is int and n >= 0) or n in SYMBOLS for n in shape):
        raise ValueError(f"{e['name']!r}: shape {list(shape)}")
    return Entry(
        name=e["name"],
        layer=e["layer"],
        level=e["level"],
        op=e["op"],
        inputs=tuple(Ref(**r) for r in e.get("inputs", ())),
        weights=tuple(Weight(w["name"], tuple(w["shape"]), w.get("fallback", "")) for w in e.get("weights", ())),
        shape=shape,
        dtype=e.get("dtype", ""),
        source=source,
    )


def _member(text: str, wanted: str) -> str:
    """Return the text of one member of a JSON object, so that numbers keep the spelling of the file."""
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    skip = " \t\r\n,:"
    while True:
        while text[at] in skip:
            at += 1
        name, at = decoder.raw_decode(text, at)
        while text[at] in skip:
            at += 1
        start = at
        _, at = decoder.raw_decode(text, at)
        if name == wanted:
            return text[start:at]
