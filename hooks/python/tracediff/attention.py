"""The steps inside the eager attention function, recorded without changing the function.

Scores and probabilities exist only inside `eager_attention_forward`. The wrapper calls the original function and
returns its result. Then the wrapper performs the same steps with the same torch operations and shows their results. If
its probabilities or its output differ from the original in any bit, the steps are not those of the model, and the
capture fails.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from tracediff.errors import CaptureFailed
from tracediff.model import VERSION_HINT

FUNCTION = "eager_attention_forward"
# # Tensors that a call shows; scores_softcap too where the scores are capped.
ROLES = ("query", "key", "value", "scores", "scores_masked", "probs_f32", "probs")

# Shows the steps of one call: the attention module, then tensors by role.
Show = Callable[[Any, dict[str, Any]], None]


def steps(repeat: Callable[[Any, int], Any], call: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Perform the attention of one call; return the tensors by role, and the output.

    `call` has the arguments by name. `repeat` is the model's own function that gives each query head its KV head.
    """
    import torch

    module, query, key, value = call["module"], call["query"], call["key"], call["value"]
    scaling = module.head_dim**-0.5 if call.get("scaling") is None else call["scaling"]
    groups = module.num_key_value_groups
    scores = torch.matmul(query, repeat(key, groups).transpose(2, 3)) * scaling
    shown = {"query": query, "key": key, "value": value, "scores": scores}
    if (cap := call.get("softcap")) is not None:
        # Three operations, each rounded to the model's dtype.
        scores = shown["scores_softcap"] = torch.tanh(scores / cap) * cap
    masked = scores if call["attention_mask"] is None else scores + call["attention_mask"]
    probs_f32 = torch.nn.functional.softmax(masked, dim=-1, dtype=torch.float32)
    probs = probs_f32.to(query.dtype)
    output = torch.matmul(probs, repeat(value, groups)).transpose(1, 2).contiguous()
    return shown | {"scores_masked": masked, "probs_f32": probs_f32, "probs": probs}, output


def same_bits(a: Any, b: Any) -> bool:
    """Report whether two tensors are equal in dtype, shape and every bit: NaN equals itself, 0 is not -0."""
    import torch

    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return torch.equal(a.contiguous().view(bits), b.contiguous().view(bits))


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Keep operations of the capture itself, within the block, out of recordings of the model.

    Other dispatch modes go on: an engine that replaces operations replaces these operations too. A recording on top of
    the stack of modes is taken off, so that no call goes through Python; a recording below another mode ignores what it
    hears.
    """
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

    stack = _get_current_dispatch_mode_stack()
    recordings = [mode for mode in stack if hasattr(mode, "quiet")]
    before = [mode.quiet for mode in recordings]
    taken: list[Any] = []
    try:
        for mode in recordings:
            mode.quiet = True
        while stack and hasattr(stack.pop(), "quiet"):
            taken.append(_pop_mode())
        yield
    finally:
        while taken:
            _push_mode(taken.pop())
        for mode, quiet in zip(recordings, before, strict=True):
            mode.quiet = quiet


def wrap(original: Callable[..., Any], repeat: Callable[[Any, int], Any], show: Show) -> Callable[..., Any]:
    """Return a function with the result of `original` that also shows the steps."""
    signature = inspect.signature(original)

    def shown(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        with unseen():
            tensors, output = steps(repeat, bound.arguments)
            expected = {"output": (output, result[0]), "probs": (tensors["probs"], result[1])}
            for name, (ours, theirs) in expected.items():
                if not same_bits(ours, theirs):
                    where = f"{type(bound.arguments['module']).__name__} {bound.arguments['module'].layer_idx}"
                    raise CaptureFailed(f"{where}: the {name} of the steps is not the model's", VERSION_HINT)
        show(bound.arguments["module"], tensors)
        return result

    return shown
