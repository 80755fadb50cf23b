"""Record a run of an ONNX model in ONNX Runtime: python -m tracediff.onnx --help."""

import argparse
import json
import pathlib
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracediff import hf, host, trace
from tracediff.errors import BadInput, command
from tracediff.graph import FLOATS, Graph, Named
from tracediff.ort import DTYPES, Feeder, Model, tensor

EPILOG = """\
example:
  python -m tracediff.onnx model.onnx --tokens "2,513,88;17;29" --out port.safetensors
  tracediff map port.safetensors ref.safetensors > map.toml
  tracediff compare port.safetensors ref.safetensors --map map.toml

Every node's result becomes an output of the model, in memory: the file is not changed. A tensor that a module of the
exported model returns has that module's name (layers.0.self_attn.q_proj). Every other tensor has the module's name and
then the node's (layers.0.self_attn.Add_1), and a map says which entries these tensors are. The metadata onnx.values of
the trace has the name of each tensor in the ONNX file. torch.onnx.export writes the modules into the metadata or the
names of nodes; a file that onnxruntime or another optimiser wrote often has lost the modules.

Passes of --tokens are forward calls: "2,513,88;17;29" runs a prompt of three tokens and then two tokens one at a time.
More than one pass needs a model with a cache: inputs past_key_values.0.key and so on, outputs present.0.key and so on.
Other known inputs: input_ids, attention_mask, position_ids, cache_position, logits_to_keep.

The trace is computed without onnxruntime's optimisations of the graph, which would leave few of the nodes. The
unchanged model also runs with the optimisations; a note names each output whose bits differ.

At most --at-once tensors of a pass are held in memory. For more tensors, the model is loaded again for each group of
tensors, in each pass.

exit code: 0 the trace is written; 1 the model did not run (OUT.part has the tensors up to the error); 2 arguments,
files or packages are not usable.
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    p = hf.Parser(
        prog="python -m tracediff.onnx",
        description="Run an ONNX model on token ids and record the result of each of its nodes, into one trace.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("model", metavar="MODEL", help="the model, NAME.onnx")
    p.add_argument("--tokens", required=True, metavar="IDS", help='token ids, one pass or several: "2,513,88;17;29"')
    p.add_argument("--out", required=True, metavar="FILE", help="the trace to write, NAME.safetensors")
    p.add_argument("--all", action="store_true", help="integers, masks and copies, too; never constants")
    p.add_argument("--own-names", action="store_true", help="accept a model whose nodes name no modules")
    p.add_argument("--at-once", type=int, default=2000, metavar="N", help="tensors held in memory (default 2000)")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="CPU threads (default: onnxruntime's choice)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return command("tracediff.onnx", lambda: run(parser().parse_args(argv)))


def run(args: argparse.Namespace) -> None:
    """Do what the arguments say."""
    if args.threads < 0 or args.at_once < 1:
        raise BadInput("--threads is not negative, and --at-once is at least 1")
    passes = hf.read_ids(args.tokens)
    model = Model(pathlib.Path(args.model), args.threads)
    feeder = Feeder(model, passes)
    graph = Graph(model.proto, model.types, feeder.cache.values())
    named = _choose(graph, args)
    plain = _as_it_is(model, feeder, {n.value: n.name for n in named}, len(passes))
    differ: dict[str, float] = {}
    with trace.Writer(args.out, _manifest(model, named, len(passes))) as writer:
        for index, name, value in _record(model, feeder, named, len(passes), args.at_once):
            writer.append(trace.key(name, index), value)
            if (index, name) in plain and (far := _distance(value, plain[index, name])):
                differ[name] = max(far, differ.get(name, 0.0))
    for text in _notes(graph, differ):
        print(f"tracediff.onnx: note: {text}", file=sys.stderr)
    modules = sum(n.certain for n in named)
    print(f"{args.out}: {hf.counted(len(passes))}, {len(named)} tensors each, {modules} of them named after modules")


def _choose(graph: Graph, args: argparse.Namespace) -> list[Named]:
    """Return the tensors to record; fail where no node names its module."""
    named = graph.named(args.all)
    if not any(n.certain and n.name != "logits" for n in named) and not args.own_names:
        fused = f": {', '.join(graph.fused[:3])} are fused nodes" if graph.fused else ""
        raise BadInput(
            f"{args.model}: its nodes do not say in which modules they stand{fused}",
            "record what torch.onnx.export wrote, before any optimiser; or go on with --own-names",
        )
    return named


def _notes(graph: Graph, differ: dict[str, float]) -> Iterator[str]:
    """Return notes for a reader of the trace."""
    if graph.prefix is None:
        yield "no module has layers, or several have: paths of modules stay whole"
    if graph.fused:
        yield f"only the results of fused nodes are recorded: {', '.join(graph.fused)}"
    if graph.nested:
        yield f"{graph.nested} nodes inside of branches or loops are not recorded"
    for name, far in differ.items():
        yield f"{name} differs with onnxruntime's optimisations, which are off here: relative L2 {far:.1e}"


def _as_it_is(model: Model, feeder: Feeder, names: Mapping[str, str], passes: int) -> dict[tuple[int, str], Any]:
    """Return the outputs of the optimised model, without the cache, by pass and name in the trace."""
    session, cache, kept = model.session(optimised=True), feeder.start(), {}
    for index in range(passes):
        fetched = dict(zip(model.outputs, model.fetch(session, model.outputs, feeder.feeds(index, cache)), strict=True))
        cache = {past: fetched.pop(present) for past, present in feeder.cache.items()}
        kept |= {(index, names[n]): tensor(n, value) for n, value in fetched.items() if n in names}
    return kept


def _record(
    model: Model, feeder: Feeder, named: Sequence[Named], passes: int, at_once: int
) -> Iterator[tuple[int, str, Any]]:
    """Run the passes; yield (pass, name, tensor) in the order of execution."""
    groups = [named[i : i + at_once] for i in range(0, len(named), at_once)]
    session, cache = None, feeder.start()
    for index in range(passes):
        yield index, "input_ids", feeder.tokens(index)
        yield index, "position_ids", feeder.positions(index)
        feeds, following = feeder.feeds(index, cache), {}
        for group in groups:
            values = [n.value for n in group]
            if session is None or len(groups) > 1:
                session = None  # frees the memory before the next session is made
                session = model.session(values)
            wanted = list(dict.fromkeys(values + ([] if following else list(feeder.cache.values()))))
            fetched = dict(zip(wanted, model.fetch(session, wanted, feeds), strict=True))
            following = following or {past: fetched[present] for past, present in feeder.cache.items()}
            for n in group:
                yield index, n.name, tensor(n.name, fetched[n.value])
        cache = following


def _distance(a: Any, b: Any) -> float:
    """Return the relative L2 distance of two arrays, 0 only for the same bits."""
    import numpy

    if a.tobytes() == b.tobytes():
        return 0.0
    if not isinstance(a, numpy.ndarray):
        return float("inf")
    a, b = a.astype(float), b.astype(float)
    return float(max(numpy.linalg.norm(a - b) / max(numpy.linalg.norm(a), 1e-30), 5e-324))


def _manifest(model: Model, named: Sequence[Named], passes: int) -> dict[str, str]:
    """Return the manifest of the trace."""
    kinds = Counter(kind for n in named if (kind := model.types[n.value]) in FLOATS)
    details = {
        "exporter": f"{model.proto.producer_name} {model.proto.producer_version}".strip(),
        "optimisations": "off",
        "python": platform.python_version(),
        **host.cpu(),
    }
    producer = {"name": "onnxruntime", "version": model.version, "details": details}
    about = {
        "sequence": "execution",
        "side": "local",
        "producer": json.dumps(producer),
        "device": "cpu",
        "passes": str(passes),
    }
    if kinds:
        about["dtype"] = DTYPES[kinds.most_common(1)[0][0]]
    manifest = {f"tracediff.{name}": value for name, value in about.items()}
    return manifest | {"onnx.values": json.dumps({n.name: n.value for n in named}, separators=(",", ":"))}


if __name__ == "__main__":
    sys.exit(main())
