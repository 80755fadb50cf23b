"""Runs with other prompt lengths, recorded after the wanted run, to show which sizes depend on the prompt's length.

One run cannot tell a size that is always 10 from a size that is the number of tokens. So short prompts and a long one
are run too, each with a few decode steps. Their passes follow the passes of the wanted run in the program. A reader
derives the sizes of lengths between them from what all runs have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tracediff.errors import CaptureFailed

if TYPE_CHECKING:  # session imports torch
    from tracediff.session import Session

MOST = 131  # tokens of the longest prompt by default; odd, so that no chunk of 2, 4, 8 ... fits into it
SHORT = (1, 2, 5)  # 1 is at times run as a decode step; no two others differ by a whole chunk
BETWEEN = 11  # the least of the prompt with twice the wanted tokens and one more
FURTHER = (31, 63)  # if the two longest prompts differ in operations: chunks are of 32, 64 ... tokens
BELOW = (9, 22)  # tokens fewer than the longest, in the same case: a reader needs three prompts
STEPS = 2  # decode steps after each prompt, one more after the longest, to show which earlier pass a third step reads
LEFT = 4  # tokens that a window, or the table of positions, has room for after the longest prompt

Call = Callable[[list[int], Any], Any]  # a forward call on token ids, after the output of the call before, or None


def record(session: Session, call: Call, ids: Sequence[int], most: int, config: Any) -> str:
    """Record the runs; return why no runs are recorded, or "".

    `ids` are the ids of the wanted prompt; the other prompts repeat them. The longest prompt has `most` tokens, or
    fewer where a window or the table of positions ends earlier and the wanted prompt fits.
    """
    longest = _longest(len(ids), most, config)
    prompts = [n for n in (*SHORT, max(2 * len(ids) + 1, BETWEEN)) if n != len(ids) and n < longest]
    why = ""
    todo = [*prompts, longest]
    while todo:
        n = todo.pop(0)
        if n == longest and (why := _grows(session)):
            session.alone(why)
            break
        session.again()
        try:
            _run(call, [ids[i % len(ids)] for i in range(n)], STEPS + (n == longest))
        except Exception as err:  # a model may raise anything for other lengths
            session.undo()
            why = f"a prompt of {n} tokens fails: {type(err).__name__}: {err}"
        else:
            todo += _further(session) if n == longest else []
    if why and not session.others():
        session.alone(why)
    return session.why_alone


def _run(call: Call, ids: list[int], steps: int) -> None:
    output = call(ids, None)
    for _ in range(steps):
        token = int(output.logits[0, -1].argmax())
        try:
            output = call([token], output)
        except CaptureFailed:  # no cache: the model runs one pass
            return


def _longest(tokens: int, most: int, config: Any) -> int:
    names = ("max_position_embeddings", "original_max_position_embeddings", "sliding_window", "attention_chunk_size")
    sizes = (getattr(config, name, None) for name in names)
    ends = [n - LEFT for n in sizes if isinstance(n, int) and n - LEFT > tokens]
    return max(min([max(most, 2 * tokens + 1), *ends]), max(SHORT))


def _further(session: Session) -> list[int]:
    """Return further prompts where the longest runs more or fewer operations than the next: it may have more chunks."""
    firsts = sorted((one for one in session.passes if one.past == 0), key=lambda one: one.tokens)
    a, b = firsts[-2:]
    if len(a.steps) == len(b.steps):
        return []
    return sorted({n for n in (*FURTHER, *(b.tokens - k for k in BELOW)) if a.tokens < n < b.tokens})


def _grows(session: Session) -> str:
    """Return how the operations grow with the tokens of the two longest prompts so far; "" where they do not."""
    firsts = sorted((one for one in session.passes if one.past == 0), key=lambda one: one.tokens)[-2:]
    if len(firsts) < 2 or len(firsts[0].steps) >= len(firsts[1].steps):
        return ""
    a, b = firsts
    return f"{len(a.steps)} operations for {a.tokens} tokens, and {len(b.steps)} for {b.tokens}"
