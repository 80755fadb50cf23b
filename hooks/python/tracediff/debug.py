"""Debug mode: a line on standard error as each tensor is recorded.

Every line is "debug: KIND key=value ...", as the Go program and the C recorder print it; docs/inside.md lists the
kinds. `trace.Writer` prints the lines when TRACEDIFF_DEBUG, or DEBUG where TRACEDIFF_DEBUG is not set, is 1, true, yes
or on, in any case; other values of DEBUG belong to other tools. TRACEDIFF_DEBUG_PASSES=N shows N passes in full
(default 3), TRACEDIFF_DEBUG_LAYERS=N shows N layers of each pass (default 2).

A tensor's time runs from the tensor before, without the time of the lines and the file. Where a GPU computes, time of
operations still running is added to the next tensor that is copied from the GPU.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from tracediff.lines import counts, digits, ms, number, quoted, word
from tracediff.moments import Moments, doubles, finite
from tracediff.shown import Shown, inside
from tracediff.steps import Mean, Steps, is_loss, split

PASSES = 3  # shown tensor by tensor; later passes have a line each
LAYERS = 2  # shown tensor by tensor in such a pass; later layers have a line each
EVERY = 1 << 31  # layers: every layer
TOKENS = 32  # ids listed of a sequence of a pass
TOP = 5  # most likely tokens listed of a sequence of a pass
SEQUENCES = 4  # of a batch that are listed
SLOWEST = 5  # sections in the summary
SHORT = "from here on one line a pass; --passes or TRACEDIFF_DEBUG_PASSES show more of them in full"
BRIEF = "from layer {} on one line a layer; --layers or TRACEDIFF_DEBUG_LAYERS show more of them in full"

# Elements of masks and scores count as masked at these numbers and below, by dtype: -1e8, or half of the lowest number
# where that is nearer to zero. Ports mask with -1e9, -1e30 or the lowest number; no model has such scores.
MASKED = {
    "float64": -1e8, "float32": -1e8, "bfloat16": -1e8, "float16": -32752.0, "float8_e5m2": -28672.0,
    "float8_e4m3fn": -224.0,
}  # fmt: skip

# Steps of a forward pass outside the layers, by the first part of their tensors' names.
SECTIONS = (
    ("input_ids", "input"), ("position_ids", "input"), ("mask", "mask"), ("attention_mask", "mask"),
    ("embed_tokens", "embedding"), ("inputs_embeds", "embedding"), ("per_layer_", "embedding"),
    ("altup.init", "embedding"), ("altup_projections", "embedding"), ("rotary", "rotary"), ("norm", "final"),
    ("altup.final", "final"), ("altup_unembed_projections", "final"), ("lm_head", "logits"), ("logits", "logits"),
    ("loss", "loss"), ("grad/", "gradients"),
)  # fmt: skip
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
UNKNOWN = "TRACEDIFF_DEBUG is neither on (1, true, yes, on) nor off (0, false, no, off): debug mode is off"
WRONG = "TRACEDIFF_DEBUG_{} is not a number of {}, 1 or more: the first {} are shown in full"


def wanted(env: Mapping[str, str] = os.environ) -> bool:
    """Report whether an environment asks for debug mode."""
    value = env.get("TRACEDIFF_DEBUG") or env.get("DEBUG", "")
    return value.lower() in ON


def from_environment(env: Mapping[str, str] = os.environ) -> "Log | None":
    """Return a log where an environment asks for one; print a note on standard error for an unknown value."""
    if wanted(env):
        return Log()
    if env.get("TRACEDIFF_DEBUG", "").lower() not in OFF:
        print(f"debug: note text={quoted(UNKNOWN)}", file=sys.stderr, flush=True)
    return None


def passes_wanted(env: Mapping[str, str] = os.environ) -> int:
    """Return how many passes an environment wants to see in full; 0 for a value that is not a number."""
    return _count(env.get("TRACEDIFF_DEBUG_PASSES", ""), PASSES)


def layers_wanted(env: Mapping[str, str] = os.environ) -> int:
    """Return how many layers of a pass an environment wants to see; 0 for a value that is not a number."""
    return _count(env.get("TRACEDIFF_DEBUG_LAYERS", ""), LAYERS)


def _count(text: str, otherwise: int) -> int:
    text = text or str(otherwise)
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


def least(name: str, dtype: str) -> float:
    """Return the largest number that counts as masked in a tensor; -inf for a tensor without masked elements."""
    name = name.lower()
    return MASKED.get(dtype, -math.inf) if "mask" in name or "scores" in name else -math.inf


def section(name: str) -> str:
    """Return the step of a forward pass that a tensor belongs to, only by its name."""
    _, n = split(name)
    if n is not None:
        return f"step.{name.rpartition('.')[2]}"
    parts = name.split(".")
    if parts[0] == "layers" and len(parts) > 1 and digits(parts[1]):
        return f"layer.{parts[1]}"
    return next((found for prefix, found in SECTIONS if name.startswith(prefix)), parts[0] or "-")


class Log:
    """Prints the lines of one run whose tensors are recorded from one thread."""

    def __init__(
        self,
        out: TextIO | None = None,
        passes: int = 0,
        text: Callable[[int], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        only: Shown | None = None,
        layers: int = 0,
    ) -> None:
        """Log to `out`, standard error by default; `text` gives the text of a token id, `only` limits what is shown.

        Each tensor of the first `passes` passes is shown, in the first `layers` layers; 0 takes the environment's
        number, or the default.
        """
        self._only, self._hidden = only, 0.0  # the model's time up to tensors that were not shown
        self._out, self._text, self._clock = out or sys.stderr, text, clock
        limit, layers = passes or passes_wanted(), layers or layers_wanted()
        wrong = ((limit, "passes", PASSES), (layers, "layers", LAYERS))
        self._wrong = [WRONG.format(what.upper(), what, shown) for given, what, shown in wrong if not given]
        self._limit, self._layers = limit or PASSES, layers or LAYERS
        self._begun, self._noted, self._brief, self._left = False, False, False, 0.0
        self._pass: _Pass | None = None
        self._seen = 0  # tokens of a sequence in the passes before
        self._losses = Mean()
        self._first, self._lowest = math.nan, math.inf  # losses
        self._passes, self._short, self._tensors, self._elapsed, self._hooks = 0, 0, 0, 0.0, 0.0
        self._not_finite = [0, 0, 0]
        self._sections: dict[str, float] = {}
        self._steps = Steps(self._line)

    def _line(self, kind: str, *fields: tuple[str, object]) -> None:
        self._lines.append(" ".join(["debug:", kind, *(f"{key}={value}" for key, value in fields)]) + "\n")

    def _flush(self) -> None:
        try:
            self._out.write("".join(self._lines))  # at once: the process may end at any time, and leaves whole lines
            self._out.flush()
        except (OSError, ValueError):
            pass  # a run does not fail because the reader of its lines is gone

    def arrive(self) -> None:
        """Say that the model has handed over a tensor: its time ends here."""
        self._arrived = self._clock()

    def leave(self) -> None:
        """Say that the model goes on."""
        self._left = self._clock()
        self._hooks += self._left - self._arrived

    def show(self, key: str, dtype: str, tensor: Any) -> None:
        """Show a torch tensor in the host's memory, or a numpy array, by its key in the trace."""
        self._lines: list[str] = []
        elapsed = self._hidden + self._arrived - self._left if self._begun else 0.0
        prefix, slash, name = key.partition("/")
        index = int(prefix[4:]) if slash and prefix.startswith("pass") and digits(prefix[4:]) else 0
        name = name if index else key
        if self._only:
            tensor = self._only.part(index, name, tensor)
        self._hidden = elapsed if tensor is None else 0.0
        if tensor is None:
            return
        self._begin()
        if self._pass is None or index != self._pass.number:
            self._end_pass()
            self._begin_pass(index)
        here = self._pass
        assert here is not None
        base = name.partition("#")[0]
        self._enter(here, section(base), elapsed)
        here.tensors += 1
        listed = here.full and not self._later(here)
        if listed or is_loss(base) or not finite(tensor):  # otherwise no statistics of the tensor are shown
            moments = Moments(tensor, least(base, dtype))
            began = here.count(name, moments.not_finite)
            if listed or here.full and began:
                self._tensor(index, name, dtype, tensor, moments, elapsed)
            if is_loss(base):
                here.loss = moments.certain()
        self._contents(here, base, dtype, tensor, elapsed)
        self._flush()

    def _tensor(self, index: int, name: str, dtype: str, tensor: Any, moments: Moments, elapsed: float) -> None:
        """Print the line of one tensor. Most lines are of this kind: one string is faster than a list of fields."""
        low, high, mean, std = moments.summary()
        nan, inf, neg_inf = moments.not_finite
        masked = f" masked={moments.masked}" if moments.masked else ""
        self._lines.append(
            f"debug: tensor pass={index} name={word(name)} shape=[{','.join(map(str, tensor.shape))}] dtype={dtype} "
            f"min={number(low)} max={number(high)} mean={number(mean)} std={number(std)} "
            f"nan={nan} inf={inf} neg_inf={neg_inf} ms={1000 * elapsed:.3f}{masked}\n"
        )

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._line("begin", ("passes", self._limit), ("tokens", TOKENS), ("top", TOP), ("layers", self._layers))
            for text in self._wrong:
                self._line("note", ("text", quoted(text)))

    def _begin_pass(self, index: int) -> None:
        self._pass = _Pass(index, index < self._limit)
        self._passes += 1
        if self._pass.full:
            return
        self._short += 1
        if not self._noted:
            self._noted = True
            self._note(index, SHORT)

    def _note(self, index: int, text: str) -> None:
        self._line("note", ("pass", index), ("text", quoted(text)))

    def _later(self, here: "_Pass") -> bool:
        """Report whether the tensors of a section are not listed, as of a later layer; print a note the first time."""
        if not here.section.startswith("layer.") or not digits(here.section[6:]) or int(here.section[6:]) < self._layers:
            return False
        if not self._brief:
            self._brief = True
            self._note(here.number, BRIEF.format(self._layers))
        return True

    def _enter(self, here: "_Pass", name: str, elapsed: float) -> None:
        if name != here.section:
            self._end_section(here)
            here.section = name
        here.in_section += 1
        here.section_time += elapsed
        here.elapsed += elapsed

    def _end_section(self, here: "_Pass") -> None:
        if not here.section:
            return
        if here.full:
            self._line(
                "section", ("pass", here.number), ("section", word(here.section)),
                ("tensors", here.in_section), ms("ms", here.section_time),
            )  # fmt: skip
        if not here.slowest or here.section_time > here.longest:
            here.slowest, here.longest = here.section, here.section_time
        self._sections[here.section] = self._sections.get(here.section, 0.0) + here.section_time
        here.section, here.in_section, here.section_time = "", 0, 0.0

    def _end_pass(self) -> None:
        here = self._pass
        if here is None:
            return
        self._end_section(here)
        self._steps.end(here.number, here.full)
        self._line(
            "pass", ("pass", here.number), ("tensors", here.tensors), *counts(here.not_finite),
            ("first_nan", word(here.first_nan)), ("slowest", word(here.slowest)),
            ms("slowest_ms", here.longest), ms("ms", here.elapsed), *here.top,
            *([] if here.loss is None else [("loss", number(here.loss))]),
        )  # fmt: skip
        self._tensors += here.tensors
        self._elapsed += here.elapsed
        self._not_finite = [a + b for a, b in zip(self._not_finite, here.not_finite, strict=True)]
        self._seen += here.tokens
        if here.loss is not None and here.loss == here.loss:
            self._first = self._first if self._losses.n else here.loss
            self._lowest = min(self._lowest, here.loss)
            self._losses.add(here.loss)
        self._pass = None

    def _contents(self, here: "_Pass", name: str, dtype: str, tensor: Any, elapsed: float) -> None:
        """Show the contents of tensors that a person reads: step series, token ids, logits."""
        series, n = split(name)
        if n is not None:
            now = here.elapsed
            self._steps.step(here.number, series, n, dtype, tensor, now - elapsed, now, here.full)
        elif name == "input_ids" and dtype == "int64":
            self._ids(here, tensor)
        elif name == "logits" or name.endswith(".logits"):
            self._logits(here, tensor)

    def _ids(self, here: "_Pass", tensor: Any) -> None:
        """List the tokens of a pass, [T] or [sequences, T], each at its position of the sequence."""
        if 0 in tensor.shape:
            return
        here.tokens = tensor.shape[-1] if len(tensor.shape) else 1
        sequences = tensor.reshape(-1, here.tokens).tolist()
        here.batch = len(sequences)
        if not here.full:
            return
        count = 0
        for b, ids in enumerate(sequences[:SEQUENCES]):
            listed = list(enumerate(map(int, ids), self._start(here)))
            if self._only and self._only.positions:
                listed = [(at, token) for at, token in listed if inside(self._only.positions, at)]
            else:
                listed = listed[:TOKENS]
            count += len(listed)
            for position, token in listed:
                self._line(
                    "token", ("pass", here.number), ("position", position), ("id", token), *self._text_of(token),
                    *([("sequence", b)] if here.batch > 1 else []),
                )  # fmt: skip
        if left := here.batch * here.tokens - count:
            self._note(here.number, f"{left} more tokens are not listed")

    def _start(self, here: "_Pass") -> int:
        """Return where in its sequence the pass starts."""
        return self._only.starts[here.number] if self._only else self._seen

    def _text_of(self, token: int) -> list[tuple[str, object]]:
        return [("text", quoted(self._text(token)))] if self._text else []

    def _logits(self, here: "_Pass", tensor: Any) -> None:
        """List the most likely tokens by the last row of each sequence; the pass keeps the first of the last one."""
        if not len(tensor.shape) or 0 in tensor.shape:
            return
        rows = tensor.reshape(-1, tensor.shape[-1])
        batch = here.batch or math.prod(tensor.shape[:-2])
        batch = batch if len(rows) % batch == 0 else 1
        for b in range(batch):
            if b < SEQUENCES or b == batch - 1:
                self._likely(here, rows, b, batch)
        if batch > SEQUENCES and here.full:
            left = batch - SEQUENCES
            self._note(here.number, f"the most likely tokens of {left} more sequences are not listed")

    def _likely(self, here: "_Pass", rows: Any, b: int, batch: int) -> None:
        """List the most likely tokens of one sequence. Of equal logits the lower id comes first; NaN has no rank."""
        each = len(rows) // batch
        at = (b + 1) * each - 1
        row = doubles(rows[at])
        left = row + 0.0
        left[left != left] = -math.inf
        best: list[int] = []
        for _ in range(min(TOP, int((row == row).sum()))):
            best.append(int(left.argmax()))
            left[best[-1]] = -math.inf
        if not best:
            return
        several: list[tuple[str, object]] = [("sequence", b)] if batch > 1 else []
        here.top = [("top", best[0]), *self._text_of(best[0]), *several]
        if not here.full or b >= SEQUENCES:
            return
        if several:
            several = [*several, ("position", self._start(here) + (here.tokens or each) - 1)]
        top = float(row[best[0]])
        total = float((math.e ** (row - top)).sum()) if abs(top) < math.inf else math.nan
        for rank, token in enumerate(best, 1):
            logit = float(row[token])
            self._line(
                "top", ("pass", here.number), ("row", at), ("rank", rank), ("id", token), ("logit", number(logit)),
                ("probability", number(math.exp(logit - top) / total)), *self._text_of(token), *several,
            )  # fmt: skip

    def end(self) -> None:
        """Print the summary, once, however the run ended."""
        self._lines = []
        self._begin()
        self._end_pass()
        slowest = sorted(self._sections.items(), key=lambda item: (-item[1], item[0]))
        for name, seconds in slowest[:SLOWEST]:
            percent = f"{100 * seconds / self._elapsed:.1f}" if self._elapsed else "-"
            self._line("slowest", ("section", word(name)), ms("ms", seconds), ("percent", percent))
        self._steps.summary()
        if self._losses.n:
            self._line(
                "losses", ("passes", self._losses.n), ("first", number(self._first)),
                ("last", number(self._losses.last)), ("lowest", number(self._lowest)),
                ("mean", number(self._losses.mean())),
            )  # fmt: skip
        self._line(
            "end", ("passes", self._passes), ("short", self._short), ("tensors", self._tensors),
            *counts(self._not_finite), ms("ms", self._elapsed), ms("hooks_ms", self._hooks),
        )  # fmt: skip
        self._flush()


class _Pass:
    """State of the pass that is running."""

    def __init__(self, number: int, full: bool) -> None:
        self.number, self.full = number, full
        self.tensors, self.elapsed = 0, 0.0
        self.batch, self.tokens = 0, 0  # sequences, and the tokens of each; 0 before the ids
        self.loss: float | None = None
        self.not_finite = [0, 0, 0]
        self.first_nan, self.slowest, self.longest = "", "", 0.0
        self.section, self.in_section, self.section_time = "", 0, 0.0
        self.top: list[tuple[str, object]] = []

    def count(self, name: str, not_finite: list[int]) -> bool:
        """Count the elements of a tensor that are not finite, and report whether it is the first tensor with NaN."""
        if any(not_finite):
            self.not_finite = [a + b for a, b in zip(self.not_finite, not_finite, strict=True)]
        if not not_finite[0] or self.first_nan:
            return False
        self.first_nan = name
        return True
