"""The configuration that transformers resolved, with the field names of an order.

A setting has one name in transformers' class of a family and one in an order; resolve() turns the first into the
second. So an order and a checkpoint are compared field by field: a field that only one side has is a difference.
"""

from collections.abc import Iterator
from typing import Any

SLIDING, FULL = "sliding_attention", "full_attention"

# Fields of only one family stand in a group of their own.
GROUPS = {
    "gemma3n_text": (
        "gemma3n",
        (
            "vocab_size_per_layer_input",
            "hidden_size_per_layer_input",
            "num_kv_shared_layers",
            "activation_sparsity_pattern",
            "laurel_rank",
            "altup_num_inputs",
            "altup_active_idx",
            "altup_coef_clip",
            "altup_correct_scale",
        ),
    )
}


def resolve(outer: Any) -> dict[str, Any]:
    """Return the text model's settings from a checkpoint's configuration, without settings that are off."""
    c = outer.get_text_config()
    kind, layers, widths = c.model_type, c.num_hidden_layers, c.intermediate_size
    out = {
        "model_type": kind,
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "intermediate_size": list(widths) if isinstance(widths, list | tuple) else [widths] * layers,
        "num_hidden_layers": layers,
        "num_attention_heads": c.num_attention_heads,
        "num_key_value_heads": c.num_key_value_heads,
        "head_dim": getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads,
        # Gemma has both fields and reads only hidden_act.
        "hidden_activation": c.hidden_act if hasattr(c, "hidden_act") else c.hidden_activation,
        "max_position_embeddings": c.max_position_embeddings,
        "rms_norm_eps": c.rms_norm_eps,
        "rope_parameters": _ropes(c.rope_parameters),
        "layer_types": list(getattr(c, "layer_types", None) or [FULL] * layers),
        "sliding_window": getattr(c, "sliding_window", None),
        # Qwen2's q, k and v have a bias that no field switches.
        "attention_bias": kind == "qwen2" or getattr(c, "attention_bias", False),
        "mlp_bias": getattr(c, "mlp_bias", False),
        # Files of Gemma 3n hold the field, and transformers' class does not know it.
        "query_pre_attn_scalar": None if kind == "gemma3n_text" else getattr(c, "query_pre_attn_scalar", None),
        # Gemma 3 has the field and never hands it to the attention.
        "attn_logit_softcapping": c.attn_logit_softcapping if kind == "gemma2" else None,
        # The multimodal class of Gemma 3 returns the logits of the head, without a soft cap of its text settings.
        "final_logit_softcapping": None
        if outer.model_type == "gemma3"
        else getattr(c, "final_logit_softcapping", None),
    }
    out = {name: value for name, value in out.items() if value}
    out["tie_word_embeddings"] = c.tie_word_embeddings
    if kind in GROUPS:
        group, names = GROUPS[kind]
        out[group] = {name: getattr(c, name) for name in names}
    return out


def _ropes(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the rotary settings by layer type; a model with one setting for all layers has it under full attention."""
    if SLIDING in settings:
        return {kind: _rope(settings[kind]) for kind in (SLIDING, FULL)}
    return {FULL: _rope(settings)}


def _rope(settings: dict[str, Any]) -> dict[str, Any]:
    names = ["rope_type", "rope_theta"]
    if settings["rope_type"] != "default":
        names.append("factor")
    if settings["rope_type"] == "llama3":
        names += ["low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]
    return {name: settings.get(name) for name in names}


_ABSENT = object()


def differences(wanted: dict[str, Any], found: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yield, by name, each field of an order's configuration that differs from the checkpoint.

    `where` is the path of the group, and stands before the names.
    """
    for name in dict.fromkeys([*wanted, *found]):
        ours, theirs = wanted.get(name, _ABSENT), found.get(name, _ABSENT)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            yield from differences(ours, theirs, f"{where}{name}.")
        elif not _same(ours, theirs):
            yield f"{where}{name} is {_shown(ours)}, the checkpoint has {_shown(theirs)}"


MOST_SHOWN = 60  # characters of a value: a list has one element a layer


def _shown(value: Any) -> str:
    text = "not set" if value is _ABSENT else repr(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def _same(a: Any, b: Any) -> bool:
    """Compare values of JSON: 30 is 30.0, true is not 1."""
    if isinstance(a, list) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, bool) == isinstance(b, bool) and a == b
