"""Hooks: each kind of source of an order, attached to a model and taken off again.

One hook is attached per place, for all entries of that place: a module's input, its output, a method, the attention
function. Each place counts its calls within a pass, because some modules run twice in a layer. A call beyond the
order's number fails the capture: the model then does something that the order does not describe.
"""

import contextlib
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tracediff import attention
from tracediff.errors import CaptureFailed
from tracediff.model import VERSION_HINT, Loaded
from tracediff.order import Entry

Fire = Callable[[Entry, Any], None]
WHEN = "layer_type"  # the parameter that Source.when refers to


class Place(NamedTuple):
    """The place of one hook; `before` tells the arguments of a method from its result."""

    kind: str
    module: str
    name: str
    before: bool

    def __str__(self) -> str:
        return f"{self.kind}:{self.module}" + ("." * bool(self.module and self.name)) + self.name


class Site:
    """One watched place: the entries that it shows, by call."""

    def __init__(self, where: str, entries: Sequence[Entry], known: Iterable[Entry], fire: Fire) -> None:
        """Watch for `entries`; `known` has all entries of the order here, and so the number of calls."""
        self.where, self._entries, self._fire = where, entries, fire
        known = list(known)
        self._by_argument = any(e.source.when for e in known)
        self._most = 1 + max(e.source.call for e in known)
        self.calls = 0

    def seen(self, value: Callable[[Entry], Any], arguments: Mapping[str, Any]) -> None:
        """Fire the entries of one call; `value` gets the tensor of an entry."""
        call, self.calls = self.calls, self.calls + 1
        if not self._by_argument and call >= self._most:
            raise CaptureFailed(f"{self.where}: call {call + 1} in one pass, the order has {self._most}", VERSION_HINT)
        for entry in self._entries:
            source = entry.source
            if arguments.get(WHEN) == source.when if source.when else source.call == call:
                self._fire(entry, value(entry))


def arguments_of(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by parameter name, for arguments by position and by keyword."""
    bound = signature.bind_partial(*args, **kwargs)
    out = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            out.update(out.pop(name, {}))
    return out


def _argument(entry: Entry, name: str, arguments: Mapping[str, Any]) -> Any:
    if name not in arguments:
        raise CaptureFailed(f"{entry.name}: {entry.source}: the call has no argument {name!r}", VERSION_HINT)
    return arguments[name]


def _item(entry: Entry, output: Any) -> Any:
    """Return the tensor in an output that may be a tuple."""
    if not isinstance(output, tuple | list):
        return output
    at = entry.source.item or 0
    if at >= len(output):
        raise CaptureFailed(f"{entry.name}: {entry.source}: the output has {len(output)} items", VERSION_HINT)
    return output[at]


class Hooks:
    """All hooks of a capture, attached within a `with` block.

    begin() starts a pass and shows its arguments, result() shows the model's output; all other entries fire from inside
    the model.
    """

    def __init__(self, loaded: Loaded, known: Sequence[Entry], wanted: Sequence[Entry], fire: Fire) -> None:
        """Prepare hooks for the entries `wanted` out of `known`."""
        self._loaded, self._known, self._fire = loaded, known, fire
        self._wanted: dict[Place, list[Entry]] = defaultdict(list)
        for entry in wanted:
            self._wanted[self._place(entry)].append(entry)
        self._sites: list[Site] = []
        self._attention: dict[Any, Site] = {}  # by attention module
        self._undo = contextlib.ExitStack()

    @staticmethod
    def _place(entry: Entry) -> Place:
        """Return the hooked place: all inputs of a module share one place, and so do the arguments of a method."""
        s = entry.source
        return Place(s.kind, s.module, s.name if s.kind in ("call", "input", "result") else "", bool(s.arg))

    def __enter__(self) -> "Hooks":
        attach = {"in": self._attach_in, "out": self._attach_out, "call": self._attach_call, "attn": self._attach_attn}
        known: dict[Place, list[Entry]] = defaultdict(list)
        for entry in self._known:
            known[self._place(entry)].append(entry)
        try:
            for place, entries in self._wanted.items():
                if place.kind in attach:
                    site = Site(str(place), entries, known[place], self._fire)
                    self._sites.append(site)
                    attach[place.kind](self._loaded.module(place.module), place, site)
            if self._attention:
                self._wrap_attention()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._undo.close()

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Start a pass: count calls from 0, and show the arguments of the whole call."""
        for site in self._sites:
            site.calls = 0
        self._show("input", arguments)

    def result(self, output: Mapping[str, Any]) -> None:
        """Show the model's output."""
        self._show("result", output)

    def _show(self, kind: str, values: Mapping[str, Any]) -> None:
        for place, entries in self._wanted.items():
            for entry in entries if place.kind == kind else ():
                self._fire(entry, _argument(entry, place.name, values))

    def _attach_in(self, module: Any, _: Place, site: Site) -> None:
        signature = inspect.signature(module.forward)

        def hook(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            arguments = arguments_of(signature, args, kwargs)
            site.seen(lambda entry: _argument(entry, entry.source.name, arguments), arguments)

        self._undo.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)

    def _attach_out(self, module: Any, _: Place, site: Site) -> None:
        signature = inspect.signature(module.forward)

        def hook(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            site.seen(lambda entry: _item(entry, output), arguments_of(signature, args, kwargs))

        self._undo.callback(module.register_forward_hook(hook, with_kwargs=True).remove)

    def _attach_call(self, module: Any, place: Place, site: Site) -> None:
        """Wrap a method on the instance, where Python finds the wrapper before the method of the class."""
        method = getattr(module, place.name, None)
        if method is None:
            raise CaptureFailed(f"{place}: {type(module).__name__} has no such method", VERSION_HINT)
        signature = inspect.signature(method)

        @functools.wraps(method)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            arguments = arguments_of(signature, args, kwargs)
            if place.before:
                site.seen(lambda entry: _argument(entry, entry.source.arg, arguments), arguments)
            result = method(*args, **kwargs)
            if not place.before:
                site.seen(lambda entry: _item(entry, result), arguments)
            return result

        self._replace(module, place.name, wrapper)

    def _attach_attn(self, module: Any, _: Place, site: Site) -> None:
        """Remember a layer's attention module: one function serves all modules."""
        self._attention[module] = site

    def _wrap_attention(self) -> None:
        code, sites = self._loaded.code, self._attention
        original = getattr(code, attention.FUNCTION, None)
        if original is None:
            raise CaptureFailed(f"{code.__name__} has no {attention.FUNCTION}", VERSION_HINT)

        def show(module: Any, tensors: dict[str, Any]) -> None:
            if module in sites:
                sites[module].seen(lambda entry: _argument(entry, entry.source.name, tensors), {})

        self._replace(code, attention.FUNCTION, attention.wrap(original, code.repeat_kv, show))

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute until the hooks are taken off."""
        if name in vars(owner):
            self._undo.callback(setattr, owner, name, vars(owner)[name])
        else:
            self._undo.callback(delattr, owner, name)
        setattr(owner, name, value)
