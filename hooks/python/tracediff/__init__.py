"""Reference captures for tracediff: transformers recorded tensor by tensor.

The package runs a checkpoint in transformers, records every tensor that TENSOR_ORDER names, and writes one
`.safetensors` trace that `tracediff compare` reads. The package needs torch and transformers (requirements.txt has the
versions that the goldens were made with) and nothing else of tracediff. Copy the folder and an order.json to the
machine that has the model, and run

    python -m tracediff.hf --model DIR --order order.json --prompt "Hello world" --dtype bfloat16 --out ref.safetensors

Modules, from the bottom:

    errors      what is told to a person, and the exit code
    lines, moments, steps
                values, statistics and series as debug mode shows them
    debug       debug mode: a line on standard error for each tensor
    trace       the trace file: writing it while a model runs, reading it back
    order       TENSOR_ORDER as `tracediff order --format json` prints it
    host        versions and machine, as a trace records them
    config      the configuration that transformers resolved, with the field names of an order
    model       loading a checkpoint so that it is the model that was published
    attention   the steps inside the eager attention function
    sources     hooks: where transformers shows each tensor
    derived     tensors that transformers does not show, recomputed
    record      one pass: what fired, checked and put in order
    capture     a whole run: passes, manifest, file
    hf          the command line
    graph       names for the tensors of an ONNX graph
    ort         ONNX models in ONNX Runtime
    onnx        the command line that records ONNX models; needs only onnx and onnxruntime
    training    losses and gradients of a training loop; needs only torch

No module names a tensor, except for the sections of `debug`: names, shapes and places come from the order. Any other
model, of transformers or of your own, is recorded as it runs, with the program that computed it:

    with tracediff.recording(model, "run.safetensors", checkpoint=DIR):
        model(ids)  # each call is one pass

    memory, vocabulary, program
                what a run computes: values, operations, steps
    attention_steps, called_names, names
                names of values, by module and inside attention
    recipes, templates, weights, program_file
                the program's file
    session, tracing
                a model under recording, and its trace

`trace`, `order`, `errors` and the modules of debug mode import neither torch nor numpy.
"""

import contextlib as _contextlib
import os as _os
from collections.abc import Iterator as _Iterator
from typing import Any as _Any


@_contextlib.contextmanager
def recording(
    model: _Any, out: str | _os.PathLike[str], checkpoint: str | _os.PathLike[str] = "", side: str = "local"
) -> _Iterator[None]:
    """Record every call of a PyTorch model within the block: the trace `out`, and its program in the same folder.

    Each outermost call of the model is one pass. `checkpoint` is the folder whose safetensors files the parameters come
    from; `side` is "local" or "reference". The trace is complete when the block ends, and failed when the block raises.
    """
    from tracediff import tracing as _tracing

    with _tracing.recording(model, out, checkpoint, side):
        yield
