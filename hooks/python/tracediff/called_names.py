"""Names that no module path gives: tensors from methods of the text model of Gemma 3n, named as in its order."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tracediff.memory import Operand
from tracediff.program_file import Name


class Method(NamedTuple):
    """A method of the modules whose path matches; the argument `arg` is named, or the result where `arg` is empty."""

    modules: str
    method: str
    arg: str
    name: str  # with the groups of `modules`
    level: int


class Rename(NamedTuple):
    """A name found by path, and the name that replaces it."""

    found: str
    name: str
    level: int


class Names(NamedTuple):
    """Names of one kind of model that no path gives. The last axis of the names in `split` is layers times width."""

    methods: tuple[Method, ...]
    renames: tuple[Rename, ...]
    copies: dict[str, str]
    split: tuple[str, ...]


LAYER = r"(layers\.\d+)"
KINDS: dict[str, Names] = {
    "gemma3n_text": Names(
        methods=(
            Method("", "project_per_layer_inputs", "inputs_embeds", "inputs_embeds", 2),
            Method("", "project_per_layer_inputs", "", "per_layer_inputs", 1),
            Method(LAYER + r"\.altup", "predict", "", r"\1.altup.predict", 1),
            Method(LAYER + r"\.altup", "correct", "", r"\1.altup.correct", 1),
        ),
        renames=(
            Rename(r"per_layer_projection_norm\.in", "per_layer_model_projection.scaled", 3),
            Rename(LAYER + r"\.altup\.router_norm", r"\1.altup.predict.router_norm", 3),
            Rename(LAYER + r"\.altup\.router_norm#1", r"\1.altup.correct.router_norm", 3),
            Rename(LAYER + r"\.altup\.router_norm\.in#1", r"\1.attn_ffw_laurel_gated", 1),
            Rename(LAYER + r"\.altup\.modality_router\.in", r"\1.altup.predict.router_input", 3),
            Rename(LAYER + r"\.altup\.modality_router\.in#1", r"\1.altup.correct.router_input", 3),
            Rename(LAYER + r"\.altup\.modality_router", r"\1.altup.predict.modality_router", 3),
            Rename(LAYER + r"\.altup\.modality_router#1", r"\1.altup.correct.modality_router", 3),
            Rename(LAYER + r"\.altup\.prediction_coefs\.in", r"\1.altup.predict.modalities", 2),
            Rename(LAYER + r"\.altup\.correction_coefs\.in", r"\1.altup.correct.modalities", 2),
            Rename(LAYER + r"\.input_layernorm\.in", r"\1.active_prediction", 2),
            Rename(LAYER + r"\.pre_feedforward_layernorm\.in", r"\1.attn_laurel", 1),
            Rename(LAYER + r"\.mlp\.act_fn\.in", r"\1.mlp.gate_sparse", 2),
            Rename(LAYER + r"\.per_layer_input_gate\.in", r"\1.altup.scale_corrected_output", 2),
            Rename(LAYER + r"\.per_layer_projection\.in", r"\1.per_layer_gated", 2),
            Rename(LAYER + r"\.laurel", r"\1.laurel", 1),
            Rename(r"norm\.in", "altup.final.mean", 1),
        ),
        copies={"altup.init": "layers.0.in"},
        split=("embed_tokens_per_layer.lookup", "embed_tokens_per_layer", "per_layer_model_projection",
               "per_layer_model_projection.scaled"),
    )
}  # fmt: skip


def renamed(name: str, kind: Names) -> tuple[str, int] | None:
    """Return the order's name for a name, and its level; None where the name stays."""
    for one in kind.renames:
        if found := re.fullmatch(one.found, name):
            return found.expand(one.name), one.level
    return None


def split(name: Name, kind: Names, config: Any) -> None:
    """Split the last axis of the names in `kind.split` into layers and width."""
    if name.name in kind.split:
        name.operand = _split(name.operand, config.num_hidden_layers, config.hidden_size_per_layer_input)


def _split(operand: Operand, layers: int, width: int) -> Operand:
    if operand.shape[-1] != layers * width:
        return operand
    step = operand.stride[-1]
    shape, stride = (*operand.shape[:-1], layers, width), (*operand.stride[:-1], width * step, step)
    return Operand(operand.of, shape, stride, operand.offset)


@contextlib.contextmanager
def watched(kind: Names, modules: dict[str, Any], show: Callable[[str, Any, int], None]) -> Iterator[None]:
    """Show arguments and results of methods within the block: name, tensor, level."""
    with contextlib.ExitStack() as undo:
        for path, module in modules.items():
            for method in {m.method for m in kind.methods if re.fullmatch(m.modules, path)}:
                mine = [m for m in kind.methods if m.method == method and re.fullmatch(m.modules, path)]
                setattr(module, method, _wrapped(getattr(module, method), mine, path, show))
                undo.callback(delattr, module, method)
        yield


def _wrapped(original: Any, methods: list[Method], path: str, show: Callable[[str, Any, int], None]) -> Any:
    import inspect

    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for m in methods:
            if m.arg:
                show(re.sub(m.modules, m.name, path) if path else m.name, given[m.arg], m.level)
        out = original(*args, **kwargs)
        for m in methods:
            if not m.arg:
                show(re.sub(m.modules, m.name, path) if path else m.name, out, m.level)
        return out

    return call
