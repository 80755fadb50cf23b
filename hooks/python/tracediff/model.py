"""Loading a checkpoint so that the model that runs is the model that was published.

Each step here prevents a capture of a wrong model: weights that stayed random because their names did not fit, a
guessed class, constants rounded by a cast after loading, an attention kernel that skips the recorded steps, a
configuration that differs from the order.
"""

import dataclasses
import os
import pathlib
import sys
import types
from typing import Any

from tracediff import config, host
from tracediff.errors import BadInput, CaptureFailed
from tracediff.order import Order

DTYPES = ("float32", "bfloat16", "float16")

# The class by model_type, never an automatic one. A multimodal Gemma 3n would get the multimodal class, which runs more
# than the text model and needs more packages; the text class reads the same file. For a multimodal Gemma 3 the text
# class finds no weights and runs random ones: there the multimodal class is used, fed with text.
CLASSES = {
    "gemma3n": "Gemma3nForCausalLM",
    "gemma3n_text": "Gemma3nForCausalLM",
    "gemma3": "Gemma3ForConditionalGeneration",
    "gemma3_text": "Gemma3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


@dataclasses.dataclass
class Loaded:
    """A model ready to run: `outer` has the head, `text` is the decoder that names are relative to."""

    outer: Any
    text: Any
    code: types.ModuleType  # the module that defines the text model, and holds its attention function
    name: str  # the checkpoint's name, as the caller gave it
    weights: str  # the digest of the weights
    versions: dict[str, str]  # of the packages
    dtype: str
    device: str
    folder: str = ""  # of the checkpoint

    def module(self, path: str) -> Any:
        """Return the module of a path in an order; CaptureFailed when the model has no such module."""
        root, rest = (self.outer, path[1:]) if path.startswith("^") else (self.text, path)
        try:
            return root.get_submodule(rest)
        except AttributeError:
            raise CaptureFailed(f"{type(root).__name__} has no module {rest!r}", VERSION_HINT) from None

    def weight(self, name: str, fallback: str = "") -> Any:
        """Return a parameter of the text model by name, or else by the fallback."""
        for candidate in filter(None, (name, fallback)):
            try:
                return self.text.get_parameter(candidate)
            except AttributeError:
                pass
        raise CaptureFailed(f"{type(self.text).__name__} has no parameter {name!r}", VERSION_HINT)


VERSION_HINT = "the order describes transformers 5.23: compare the installed version"


def set_up(threads: int = 0) -> None:
    """Make torch compute without shortcuts; call it before a model is loaded. With 0 threads torch chooses."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    # float32 on a GPU is float32, not TF32, and sums of 16-bit products are float32 sums.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def load(folder: str | os.PathLike[str], dtype: str, device: str, order: Order, name: str = "") -> Loaded:
    """Load the checkpoint in a folder; traces call it `name`, or by default the folder's name as it was given.

    BadInput when packages are missing, the folder is no checkpoint of a known family, a weight is missing, or the
    configuration differs from the order.
    """
    versions, _ = host.versions()
    transformers, path = _checkpoint(folder)
    settings = _config(transformers, path)
    check_config(order, settings)
    if not any(path.glob("*.safetensors")):
        raise BadInput(f"--model {folder}: no *.safetensors files are there")
    cls = getattr(transformers, CLASSES[settings.model_type])
    outer = _loaded(cls, folder, dtype, device, use_kernels=False)
    text = outer.get_decoder()
    code = sys.modules[type(text).__module__]
    return Loaded(outer, text, code, name or str(folder), host.weights_digest(path), versions, dtype, device, str(path))


def load_any(folder: str | os.PathLike[str], dtype: str, device: str, remote: bool = False) -> Any:
    """Load a checkpoint of any kind that transformers can run, by the class that its config.json names.

    `remote` lets transformers run code from the checkpoint's folder. BadInput as for load().
    """
    host.versions()
    transformers, path = _checkpoint(folder)
    try:
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=remote)
    except Exception as err:  # strict classes raise their own errors for a field of a wrong type
        if not remote and '"auto_map"' in (path / "config.json").read_text(errors="replace"):
            raise BadInput(
                f"--model {path}: the code of this model lies in the checkpoint, and is not run unless you say so",
                "read its *.py files, then add --trust-remote-code",
            ) from err
        raise BadInput(f"--model {path}: config.json: {err}") from err
    named = next(iter(config.architectures or ()), "")
    cls = getattr(transformers, named, None) or transformers.AutoModelForCausalLM
    arguments: dict[str, Any] = {"trust_remote_code": True} if remote else {}
    # batched_mm is the plain form of grouped_mm, equal to the bit
    return _loaded(cls, folder, dtype, device, experts_implementation="batched_mm", **arguments)


def _checkpoint(folder: str | os.PathLike[str]) -> tuple[Any, pathlib.Path]:
    """Return transformers, made silent, and the path of a checkpoint."""
    import transformers

    path = pathlib.Path(folder)
    if not (path / "config.json").is_file():
        raise BadInput(f"--model {folder}: no checkpoint folder: config.json is not there")
    quiet(transformers)
    return transformers, path


def _loaded(cls: Any, folder: str | os.PathLike[str], dtype: str, device: str, **arguments: Any) -> Any:
    """Load a checkpoint by a class, all its weights, onto a device."""
    import torch

    try:
        # dtype here and never model.to(dtype) later, which would also round the rotary frequencies.
        outer, report = cls.from_pretrained(
            pathlib.Path(folder),
            dtype=getattr(torch, dtype),
            attn_implementation="eager",
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **arguments,
        )
    except Exception as err:  # a damaged file fails in many ways, deep in several libraries
        raise BadInput(f"--model {folder}: does not load: {err}") from err
    _check_report(folder, report)
    return _to_device(outer, device).eval()


def quiet(transformers: Any) -> None:
    """Silence messages of transformers; its loading report is checked instead."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _config(transformers: Any, path: pathlib.Path) -> Any:
    """Return the configuration; for a multimodal checkpoint the outer one."""
    try:
        found = transformers.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # strict classes raise their own errors for a field of a wrong type
        raise BadInput(f"--model {path}: config.json: {err}") from err
    if found.model_type not in CLASSES:
        known = ", ".join(CLASSES)
        raise BadInput(f"--model {path}: model_type {found.model_type!r} is not supported", f"supported: {known}")
    return found


def _to_device(model: Any, device: str) -> Any:
    """Move the model to a device. Only the device: a dtype in this call would round the rotary frequencies."""
    try:
        return model.to(device=device)
    except (RuntimeError, AssertionError) as err:  # torch without CUDA asserts
        raise BadInput(f"--device {device}: {err}") from err


def _check_report(folder: str | os.PathLike[str], report: dict[str, Any]) -> None:
    """Fail when a weight was not in the file and is now random."""
    for what in ("missing_keys", "mismatched_keys", "error_msgs"):
        names = sorted(str(name) for name in report.get(what) or ())
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            raise BadInput(
                f"--model {folder}: weights that do not fit ({what}): {', '.join(names[:4])}{more}",
                "the model would run with random numbers there: complete the checkpoint",
            )


def check_config(order: Order, outer: Any) -> None:
    """Fail, by name, when a field of the order's configuration differs from transformers' configuration."""
    found = list(config.differences(order.config, config.resolve(outer)))
    if found:
        raise BadInput(
            f"the order was made for another configuration: {'; '.join(found[:4])}",
            "make the order again from this checkpoint: tracediff order --model DIR --format json > order.json",
        )
