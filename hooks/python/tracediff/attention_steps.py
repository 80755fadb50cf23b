"""Tensors inside attention, found in the steps about each softmax: queries and keys as they meet, scores,
probabilities, context, cached keys and values.
"""

import re
from collections.abc import Iterator
from typing import Any

from tracediff.memory import Operand, Value
from tracediff.program import Step

PRODUCTS = ("bmm", "mm", "baddbmm")
# Attention as one operation: queries, keys and values go in, and the context comes out.
FUSED = re.compile(r"_?scaled_dot_product_\w*attention\w*")
# Operations that may stand between the product of queries and keys, and the softmax.
BETWEEN = ("to", "mul", "div", "add", "tanh", "masked_fill", "where", "sub", "cat", "maximum", "max", "clamp")
Found = tuple[str, Operand | None, int, int]  # name, operand, level, and the step that the name follows


def _step(operand: Any, steps: list[Step], first: int) -> Step | None:
    """Return the step of this pass that made an operand."""
    if isinstance(operand, Operand) and isinstance(operand.of, Value):
        at = operand.of.step - first
        if 0 <= at < len(steps):
            return steps[at]
    return None


def _natural(value: Value) -> Operand:
    return Operand(value, value.shape, value.stride, 0)


def _moved(step: Step) -> bool:
    """Report whether a step copies its operand in the same dtype."""
    (operand,) = step.operands[:1] or (None,)
    return step.op == "to" and isinstance(operand, Operand) and _dtype(operand) == step.outs[0].dtype


def _dtype(operand: Operand) -> str:
    return getattr(operand.of, "dtype", "")


def _through(operand: Any, steps: list[Step], first: int) -> tuple[Any, Step | None]:
    """Follow copies back; return the operand before the copies and the step that made it."""
    step = _step(operand, steps, first)
    while step is not None and _moved(step):
        operand = step.operands[0]
        step = _step(operand, steps, first)
    return operand, step


def is_context(every: list[Step], operand: Operand, first: int) -> bool:
    """Report whether an operand is a product of probabilities, by a softmax of this pass or a fused kernel."""
    steps = every[first:]
    _, step = _through(operand, steps, first)
    if step is not None and FUSED.fullmatch(step.op):
        return True
    if step is None or step.op not in PRODUCTS:
        return False
    _, made = _through(step.operands[0], steps, first)
    if made is not None and made.op == "to":
        _, made = _through(made.operands[0], steps, first)
    return made is not None and made.op == "softmax"


def softmaxes(every: list[Step], scope: str, since: int) -> list[Step]:
    """Return the softmaxes that a module computed since step `since` of the run."""
    return [s for s in every[since:] if s.op == "softmax" and s.scope == scope] if scope else []


def fused(every: list[Step], scope: str, since: int) -> list[Step]:
    """Return the fused attentions that a module computed since step `since` of the run."""
    return [s for s in every[since:] if s.scope == scope and FUSED.fullmatch(s.op)] if scope else []


def operands(step: Step, steps: list[Step], first: int, tokens: int) -> Iterator[Found]:
    """Yield the names of the operands of a fused attention: queries and keys as they meet, cached keys and values."""
    if len(step.operands) < 3:
        return
    scope = step.scope
    query, key, value = step.operands[:3]
    for name, operand, level, at in _side(f"{scope}.q_rope", None, query, steps, first, step, False):
        if operand is not None and (unfolded := _unfolded(operand, tokens)) is not None:
            yield name, unfolded, level, at
    yield from _side(f"{scope}.k_rope", f"{scope}.keys", key, steps, first, step, False)
    yield from _side(None, f"{scope}.values", value, steps, first, step, False)


def _unfolded(query: Operand, tokens: int) -> Operand | None:
    """Return the queries of a pass as [1, heads, tokens, width]; None for another shape.

    For a single token torch may return the heads that share a KV head as rows: [1, KV heads, group, width].
    """
    one, heads, rows, width = query.shape
    if rows == tokens:
        return query
    outer, across, down, inner = query.stride
    if tokens != 1 or across != rows * down:
        return None
    return Operand(query.of, (one, heads * rows, 1, width), (outer, down, down, inner), query.offset)


def names(found: list[Step], steps: list[Step], first: int, missed: list[Step]) -> Iterator[Found]:
    """Yield the names of each attention about a softmax; softmaxes whose scores are not found are added to `missed`.

    The softmax of a router follows a product with a weight and is skipped. `steps` are the steps of the pass.
    """
    users: dict[int, list[Step]] = {}
    for step in steps[found[0].index - first :]:
        for operand in step.operands:
            if isinstance(operand, Operand) and isinstance(operand.of, Value):
                users.setdefault(operand.of.step, []).append(step)
    for step in found:
        chain = _chain(step, steps, first)
        if chain:
            yield from _one(step, chain, steps, first, users)
        elif chain is None:
            missed.append(step)


def _one(
    softmax: Step, chain: list[Step], steps: list[Step], first: int, users: dict[int, list[Step]]
) -> Iterator[Found]:
    product, scope = chain[0], softmax.scope
    scores, capped = _scores(chain)
    yield from _side(f"{scope}.q_rope", None, product.operands[-2], steps, first, product, False)
    yield from _side(f"{scope}.k_rope", f"{scope}.keys", product.operands[-1], steps, first, product, True)
    probs = softmax
    context = None
    for user in users.get(softmax.index, ()):
        if user.op == "to":
            probs = user
    for user in users.get(probs.index, ()):
        if user.op in PRODUCTS and isinstance(user.operands[0], Operand) and user.operands[0].of is probs.outs[0]:
            context = user
    if context is not None:
        yield from _side(None, f"{scope}.values", context.operands[1], steps, first, product, False)
    shape = softmax.outs[0].shape
    yield f"{scope}.scores", _shaped(scores, shape), 3, scores.index
    if capped is not None:
        yield f"{scope}.scores_softcap", _shaped(capped, shape), 3, capped.index
    masked, made = softmax.operands[0], _step(softmax.operands[0], steps, first)
    while made is not None and made.op in ("to", "sub", "cat") and made is not product:
        # A conversion to float32, the subtracted maximum, and sinks next to the keys are part of the softmax.
        masked = max((o for o in made.operands if isinstance(o, Operand)), key=lambda o: getattr(o.of, "count", 0))
        made = _step(masked, steps, first)
    yield f"{scope}.scores_masked", _four_scores(masked, shape), 3, softmax.index - 1
    yield f"{scope}.probs_f32", _natural(softmax.outs[0]), 3, softmax.index
    yield f"{scope}.probs", _shaped(probs, shape), 2, probs.index


def _shaped(step: Step, shape: tuple[int, ...]) -> Operand:
    """Return a step's value in the shape of the scores; a product has no first axis."""
    value = step.outs[0]
    if len(value.shape) == 3 and len(shape) == 4 and value.shape[0] == shape[0] * shape[1] and shape[0] == 1:
        return Operand(value, shape, (0, *value.stride), 0)
    return _natural(value)


def _four_scores(operand: Operand, shape: tuple[int, ...]) -> Operand:
    """Return scores in their four axes."""
    if len(operand.shape) == 3 and len(shape) == 4 and shape[0] == 1:
        return Operand(operand.of, shape, (0, *operand.stride), operand.offset)
    return operand


def _chain(softmax: Step, steps: list[Step], first: int) -> list[Step] | None:
    """Return the steps from the product of queries and keys up to the softmax.

    The list is empty for a router, where the product is with a weight or the largest values are picked. None where no
    product is found.
    """
    chain: list[Step] = []
    operand = softmax.operands[0]
    while len(chain) < 12:
        step = _step(operand, steps, first)
        if step is None:
            return None
        chain.append(step)
        if step.op in (*PRODUCTS, "addmm"):
            both = step.op != "addmm" and all(isinstance(getattr(o, "of", None), Value) for o in step.operands[-2:])
            return chain[::-1] if both else []
        if step.op in ("topk", "sort", "gather"):
            return []  # of a router that picks first
        if step.op not in BETWEEN:
            return None
        from_values = [o for o in step.operands if _step(o, steps, first) is not None]
        if not from_values:
            return None
        operand = max(from_values, key=lambda o: o.of.count)
    return None


def _scores(chain: list[Step]) -> tuple[Step, Step | None]:
    """Return the step that made the scores before a soft cap and the mask, and the step that capped the scores."""
    kinds = [step.op for step in chain]
    at, capped = 0, None
    stop = len(chain)
    if "tanh" in kinds:
        cap = kinds.index("tanh")
        stop = cap - 1 if kinds[cap - 1] in ("div", "mul") and cap > 1 else cap
        capped = chain[cap + 1] if cap + 1 < len(chain) and kinds[cap + 1] == "mul" else chain[cap]
    while at + 1 < stop and kinds[at + 1] in ("mul", "div", "to") and not _tensor(chain[at + 1]):
        at += 1
    return chain[at], capped


def _tensor(step: Step) -> bool:
    """Report whether a step has a second operand that is more than one number."""
    return any(isinstance(o, Operand) and len(o.shape) > 0 and max(o.shape, default=1) > 1 for o in step.operands[1:])


def _view(operand: Any, steps: list[Step], first: int, turned: bool) -> tuple[Operand | None, Step | None]:
    """Return queries, keys or values as they were before copies, [1, heads, rows, width], and the step that made them.

    An operand of a product has the rows last where the operand is `turned`. Axes that only repeat elements are dropped.
    """
    step = _step(operand, steps, first)
    last = -2 if turned else -1  # the axis of the width
    while step is not None and _moved(step):
        value = step.outs[0]
        at = [
            i for i, s in enumerate(value.stride) if s == operand.stride[last] and value.shape[i] == operand.shape[last]
        ]
        operand = step.operands[0]
        if not at:
            return None, step
        last = at[-1] - len(operand.shape)
        step = _step(operand, steps, first)
    if not isinstance(operand.of, Value) or len(operand.shape) < 2:
        return None, step
    axes = list(zip(operand.shape, operand.stride, strict=True))
    if last == -2:
        axes[-1], axes[-2] = axes[-2], axes[-1]
    kept = [(n, s) for n, s in axes[:-2] if not (n > 1 and s == 0)] + axes[-2:]
    while len(kept) > 4 and (1 in [n for n, _ in kept[:-2]]):
        kept.pop(next(i for i, (n, _) in enumerate(kept) if n == 1))
    kept = [(1, 0)] * (4 - len(kept)) + kept
    return Operand(operand.of, tuple(n for n, _ in kept), tuple(s for _, s in kept), operand.offset), step


def _side(
    fresh: str | None, cached: str | None, operand: Any, steps: list[Step], first: int, product: Step, turned: bool
) -> Iterator[Found]:
    """Yield one side of a product: `fresh` for the rows of this pass, `cached` for every row in the cache."""
    whole, step = _view(operand, steps, first, turned)
    if whole is None:
        return
    scope = product.scope
    if fresh is not None and step is not None and step.scope.startswith(scope):
        made = _added(step, whole)
        if isinstance(made, Operand):
            yield fresh, made, 2, step.index if made is whole else step.index - 1
    if cached is not None:
        yield cached, whole, 3, product.index - 1


INTO = ("index_copy", "index_put", "write")  # how a cache with room for later tokens is written, instead of growing


def _added(step: Step, whole: Operand) -> Any:
    """Return what a step adds to a cache of keys [1, heads, rows, width]; `whole` where the step writes no cache."""
    if step.op == "cat" and step.attrs.get("dim", 0) in (-2, len(step.outs[0].shape) - 2):
        return step.operands[-1]
    new = step.operands[-1] if step.op in INTO and step.operands else None
    if not isinstance(new, Operand) or not 2 <= len(new.shape) <= 4 or new.shape[-1] != whole.shape[-1]:
        return whole
    ones = 4 - len(new.shape)
    shape = (1,) * ones + new.shape
    if shape[:2] != whole.shape[:2]:
        return whole
    return Operand(new.of, shape, (0,) * ones + new.stride, new.offset)


EARLY = re.compile(r".*\.(q_rope|k_rope|[qkv]_norm|[qkv]_layernorm)")


def in_sequence(names: list[Any], steps: list[Step], first: int) -> list[Any]:
    """Put queries and keys, normed and rotated, right after the last named value that they were made from.

    Rotary tables do not count. Tables of sliding layers stand before tables of full layers.
    """
    full = [n for n in names if n.name.startswith("rotary.full.")]
    sliding = [i for i, n in enumerate(names) if n.name.startswith("rotary.sliding.")]
    if full and sliding:
        at = names[sliding[-1]]
        names = [n for n in names if n not in full]
        names[names.index(at) + 1 : names.index(at) + 1] = full
    out = [n for n in names if not EARLY.fullmatch(n.name)]
    held = [_held(n) for n in out]  # the values of the names in out, in the same order
    known = set(held)
    for name in (n for n in names if EARLY.fullmatch(n.name)):
        todo, seen, found = list(_inputs(name.operand, steps, first)), set(), set()
        while todo:
            of = todo.pop().of
            if id(of) in seen or not isinstance(of, Value):
                continue
            seen.add(id(of))
            if id(of) in known:
                found.add(id(of))
            elif of.step >= first:
                todo.extend(o for o in steps[of.step].operands if isinstance(o, Operand))
        last = next((i for i in range(len(held) - 1, -1, -1) if held[i] in found), -1)
        at = last + 1 if last >= 0 else names.index(name)
        out.insert(at, name)
        held.insert(at, _held(name))
        known.add(_held(name))
    return out


def _held(name: Any) -> int | None:
    """Return the identity of the value that a name stands for; None for rotary tables."""
    return None if name.name.startswith("rotary") else id(name.operand.of)


def _inputs(operand: Operand, steps: list[Step], first: int) -> list[Operand]:
    if not isinstance(operand.of, Value) or operand.of.step < first:
        return [operand]
    return [o for o in steps[operand.of.step].operands if isinstance(o, Operand)]
