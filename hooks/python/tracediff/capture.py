"""A whole run: token ids through the model, pass by pass, into one trace."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracediff import debug, host, trace
from tracediff.errors import BadInput, CaptureFailed
from tracediff.model import Loaded
from tracediff.order import Entry, Order, Scope
from tracediff.record import Recorder
from tracediff.sources import Hooks

# Errors of a model that cannot go on (too little memory, a shape that does not fit), and of a full disk.
RUN_ERRORS = (RuntimeError, MemoryError, TypeError, ValueError, AttributeError, LookupError, OSError)


@dataclasses.dataclass(frozen=True)
class Job:
    """What to run, and which tensors to record.

    passes   token ids of each forward call; the first is the prompt
    decode   number of decode steps, each fed the most likely token of the call before
    prompt   the text that was tokenized, "" when ids were given
    """

    passes: Sequence[Sequence[int]]
    decode: int = 0
    prompt: str = ""
    scope: Scope = Scope()

    def lengths(self) -> list[int]:
        """Return the number of tokens of each pass."""
        return [len(ids) for ids in self.passes] + [1] * self.decode


def run(
    loaded: Loaded,
    order: Order,
    job: Job,
    out: str | os.PathLike[str],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    log: debug.Log | None = None,
    program: bool = False,
) -> list[list[int]]:
    """Run the job, write the trace `out` and return the ids that each pass was fed.

    `progress` gets the number of finished passes and of all passes; `log` shows tensors as they are written. With
    `program` the run is recorded too, as NAME.program.json in the folder of NAME.safetensors. CaptureFailed when the
    model stops or does not show what the order says; the trace then keeps its `.part` name and is marked as failed.
    """
    check_ids(order, job)
    plan = job.scope.select(order.entries)
    reserved = trace.reserve(_expected(plan, job.lengths(), order.window, loaded.dtype))
    if program:  # or the whole trace is copied to make room for its digest
        reserved += trace.room({"tracediff.program": f"sha256:{0:064}"})
    fed: list[list[int]] = []
    with trace.Writer(out, manifest(loaded, order, job, plan), reserved, log) as writer:
        recorder = Recorder(loaded, order, plan, lambda e, tensor: writer.append(trace.key(e.name, len(fed)), tensor))
        try:
            with _recorded(loaded, writer, program), Hooks(loaded, order.entries, recorder.wanted, recorder.fire) as hooks:
                for ids in _passes(loaded, job, hooks, recorder, program):
                    fed.append(ids)
                    progress(len(fed), len(job.lengths()))
        except RUN_ERRORS as err:
            raise CaptureFailed(f"pass {len(fed)}: {type(err).__name__}: {err}") from err
    return fed


@contextlib.contextmanager
def _recorded(loaded: Loaded, writer: trace.Writer, program: bool) -> Iterator[None]:
    """Record the program of the operations within the block, in the folder of the trace."""
    if not program:
        yield
        return
    from tracediff import session as sessions

    session = sessions.Session(loaded.outer, loaded.folder)
    with session.running():
        yield
    writer.amend({"tracediff.program": session.save(sessions.beside(writer.path), {})})


def _passes(loaded: Loaded, job: Job, hooks: Hooks, recorder: Recorder, program: bool) -> Iterator[list[int]]:
    """Run every pass and yield its ids when it is done."""
    import torch

    cache: Any = None
    output: Any = None
    past = 0
    for index in range(len(job.passes) + job.decode):
        given = index < len(job.passes)
        # Where logits are equal, argmax takes the lowest id; in 16-bit types ties are common.
        ids = list(job.passes[index]) if given else [int(output.logits[0, -1].argmax())]
        tensor = torch.tensor([ids], dtype=torch.int64, device=loaded.device)
        # inference_mode keeps compositions whole, and a recording would take each apart in Python.
        with torch.no_grad() if program else torch.inference_mode():
            recorder.begin(len(ids), past)
            hooks.begin({"input_ids": tensor})
            # logits_to_keep 0 keeps all. use_cache also in a single pass, so that keys always come from the same place.
            output = loaded.outer(input_ids=tensor, past_key_values=cache, use_cache=True, logits_to_keep=0)
            hooks.result(output)
            recorder.end()
        cache, past = output.past_key_values, past + len(ids)
        yield ids


def check_ids(order: Order, job: Job) -> None:
    """Fail without tokens, for an id outside the vocabulary, and for more tokens than max_position_embeddings."""
    vocabulary, limit = order.config["vocab_size"], order.config["max_position_embeddings"]
    if not job.passes or not all(job.passes):
        raise BadInput("no tokens: every pass needs at least one", "give --prompt TEXT or --tokens '2,513,88'")
    for ids in job.passes:
        for token in ids:
            if not 0 <= token < vocabulary:
                why = f"token {token} is not in the vocabulary of {vocabulary}"
                raise BadInput(why, f"ids are 0 to {vocabulary - 1}")
    if sum(job.lengths()) > limit:
        raise BadInput(f"{sum(job.lengths())} tokens: the model is made for {limit}", "shorten the prompt")


def _expected(
    plan: Sequence[Entry], lengths: Sequence[int], window: int, dtype: str
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield key, dtype and shape of every tensor that the run will write."""
    past = 0
    for index, tokens in enumerate(lengths):
        for entry in plan:
            yield trace.key(entry.name, index), trace.DTYPES[entry.dtype or dtype], entry.size(tokens, past, window)
        past += tokens


def manifest(loaded: Loaded, order: Order, job: Job, plan: Sequence[Entry]) -> dict[str, str]:
    """Return the trace's manifest, which does not depend on the time, place or user of the run."""
    scope: dict[str, Any] = {"level": job.scope.level}
    if job.scope.layers:
        scope["layers"] = job.scope.layers
    producer = {
        "name": "transformers",
        "version": loaded.versions["transformers"],
        "details": host.details(loaded.versions, loaded.device),
    }
    out = {
        "sequence": "execution",
        "side": "reference",
        "producer": _json(producer),
        "model": loaded.name,
        "config": order.config_text,
        "weights": loaded.weights,
        "port": host.port(loaded.folder),
        "scope": _json(scope),
        "entries": _json([entry.name for entry in plan]),
        "derived": _json([entry.name for entry in plan if entry.source.kind == "derived"]),
        "prompt": job.prompt,
        "dtype": loaded.dtype,
        "device": loaded.device,
        "passes": str(len(job.lengths())),
    }
    # An empty text would be a declaration; a missing key declares nothing.
    return {f"tracediff.{name}": value for name, value in out.items() if value}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
