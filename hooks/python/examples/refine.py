"""An iterative refinement model that records its steps: one state, refined again and again until it is at rest.

    PYTHONPATH=hooks/python TRACEDIFF_DEBUG=1 python hooks/python/examples/refine.py --out refine.safetensors

Copy from this example. The model is a tied recurrence, s' = tanh(W s + e), over random weights; it stops when a step
changes the state by at most a hundredth, or after `--max-steps`. The recording is in `Refiner.forward`: `put` with a
name of the form SERIES.step.N. Debug mode then shows every step with its similarity to the step before, and the end of
every series: "converged at step k", or "hit the maximum of n steps", with confidence and loss. The end of the run has
the averages over both passes.

The first pass has tokens with a large embedding, which drives the state to a fixed point. The second pass has tokens
with a small embedding: there the recurrence does not settle, and runs to the last step.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence

import torch

from tracediff import trace

WIDTH, VOCABULARY, LOUD = 16, 32, 16  # ids from LOUD on have embeddings a twentieth as large
GAIN, QUIET = 1.2, 0.05
SETTLED = 0.01  # the last step changes the state by at most this share of its length
PASSES = ((3, 7, 11, 5), (18, 29, 21))

Put = Callable[[str, torch.Tensor], None]


class Refiner:
    """The model: an embedding, one matrix, and the embedding again as the head."""

    def __init__(self, seed: int, max_steps: int) -> None:
        """Draw the weights."""
        numbers = torch.Generator().manual_seed(seed)
        self.max_steps = max_steps
        self.embedding = 1.5 * torch.randn(VOCABULARY, WIDTH, generator=numbers)
        self.weight = GAIN * torch.randn(WIDTH, WIDTH, generator=numbers) / WIDTH**0.5
        self.scale = torch.ones(VOCABULARY, 1)
        self.scale[LOUD:] = QUIET

    def forward(self, ids: torch.Tensor, put: Put) -> torch.Tensor:
        """Return the logits [1, T, VOCABULARY] of token ids [1, T], and call `put` for every step."""
        put("input_ids", ids)
        drive = (self.embedding * self.scale)[ids]
        put("embed_tokens", drive)
        state = torch.tanh(drive)
        put("refine.state.step.0", state)
        for step in range(1, self.max_steps):
            before, state = state, torch.tanh(state @ self.weight.T + drive)
            put(f"refine.state.step.{step}", state)
            put(f"refine.confidence.step.{step}", self.confidence(state))
            put(f"refine.loss.step.{step}", self.loss(state, ids))
            if torch.linalg.vector_norm(state - before) <= SETTLED * torch.linalg.vector_norm(state):
                break
        logits = state @ self.embedding.T
        put("logits", logits)
        return logits

    def loss(self, state: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy between the state's logits and the tokens, a scalar."""
        return torch.nn.functional.cross_entropy((state @ self.embedding.T)[0], ids[0])

    def confidence(self, state: torch.Tensor) -> torch.Tensor:
        """Return the confidence of the model, a scalar: the mean over the tokens of the largest probability."""
        return torch.softmax(state @ self.embedding.T, dim=-1).amax(-1).mean()


def record(out: str, seed: int, max_steps: int, passes: Sequence[Sequence[int]] = PASSES) -> None:
    """Run all passes and leave a trace at `out`."""
    model = Refiner(seed, max_steps)
    manifest = {
        "tracediff.sequence": "execution",
        "tracediff.side": "local",
        "tracediff.producer": json.dumps({"name": "refine.py", "version": "1"}),
        "tracediff.dtype": "float32",
        "tracediff.passes": str(len(passes)),
    }
    with trace.Writer(out, manifest) as writer, torch.inference_mode():
        for index, ids in enumerate(passes):
            model.forward(
                torch.tensor([list(ids)]),
                lambda name, tensor, index=index: writer.append(trace.key(name, index), tensor),
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True, metavar="FILE", help="the trace to write, NAME.safetensors")
    p.add_argument("--max-steps", type=int, default=12, metavar="N", help="steps after which it stops (default 12)")
    p.add_argument("--seed", type=int, default=8, metavar="N", help="of the weights (default 8)")
    args = p.parse_args(argv)
    record(args.out, args.seed, args.max_steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
