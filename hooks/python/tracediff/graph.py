"""Names for the tensors of an ONNX graph: each output of a module has the module's name.

torch.onnx.export(dynamo=True) writes the modules of a node into the node's metadata; older exporters make the modules a
part of the node's name, `/model/layers.0/self_attn/q_proj/MatMul`. A module's output is the tensor that is computed
inside the module and used outside. Where only one tensor is used outside, it gets the module's name, below the text
model as in transformers: `layers.0.self_attn.q_proj`, and `layers.0.out` for the output of a layer. The cache that the
model returns does not count. Several tensors get no module's name: the graph does not tell them apart.

Every other tensor has the module's name and then the node's: `layers.0.self_attn.Add_1`. Nodes of the newer exporter
are numbered through the whole model; here they get the kind of the node and its number within the module, which is the
same in every layer.

This file imports nothing of onnx and reads only the attributes of a model.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

SCOPES = "pkg.torch.onnx.name_scopes"

FLOATS = ("tensor(float)", "tensor(float16)", "tensor(double)", "tensor(bfloat16)")

# Nodes that read a tensor's shape and not its numbers.
SHAPES = ("Shape", "Size")

# Nodes that move elements and compute nothing. An exporter shares equal nodes of this kind between modules.
MOVES = ("Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose", "Expand")

# Nodes whose outputs after the first are not results of the module: statistics of the norm, and the sum before the
# norm.
NORMS = (
    "SkipSimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "LayerNormalization",
    "SimplifiedLayerNormalization",
)

LAYER = re.compile(r"(?:(.*)\.)?layers\.\d+")


class Named(NamedTuple):
    """A recorded tensor: its name in the graph, its name in the trace, whether the name in the trace is a module's."""

    value: str
    name: str
    certain: bool


class Graph:
    """The nodes of one model, and the modules of each node."""

    def __init__(self, model: Any, types: Mapping[str, str], cache: Collection[str] = ()) -> None:
        """Read a ModelProto.

        `types` has the type of each tensor, as onnxruntime writes it; `cache` has the outputs that are fed to the next
        pass.
        """
        graph = model.graph
        self.types = types
        self.nodes = list(graph.node)
        self.outputs = [value.name for value in graph.output]
        self.returned = [name for name in self.outputs if name not in cache]
        self.chains = [_chain(node) for node in self.nodes]
        self.modules = {path for chain in self.chains for path in chain}
        self.prefix = _prefix(self.modules)
        self.same = self._same(model)
        weights = {weight.name for weight in graph.initializer}
        self.fed = self._fed({value.name for value in graph.input} - weights)

    @property
    def fused(self) -> list[str]:
        """The kinds of nodes outside the ONNX standard: each fuses several operations and shows only one result."""
        return sorted({node.op_type for node in self.nodes if node.domain not in ("", "ai.onnx", "ai.onnx.ml")})

    @property
    def nested(self) -> int:
        """The number of nodes inside branches and loops, whose results are no tensors of the graph."""
        return sum(len(a.g.node) for node in self.nodes for a in node.attribute if a.HasField("g"))

    def _same(self, model: Any) -> dict[str, str]:
        """Return unchanged copies (of Identity, and of casts to the same dtype) with the tensor that each one copies.
        """
        same: dict[str, str] = {}
        weights = {weight.name for weight in model.graph.initializer}
        for node in self.nodes:
            if node.op_type not in ("Identity", "Cast") or node.domain or len(node.output) != 1:
                continue
            source = node.input[0]
            typed = self.types.get(source)
            if source not in weights and typed is not None and typed == self.types.get(node.output[0]):
                same[node.output[0]] = same.get(source, source)
        return same

    def _fed(self, inputs: set[str]) -> set[str]:
        """Return the tensors that depend on the inputs; the remaining tensors are constants."""
        fed = set(inputs)
        for node in self.nodes:
            if fed.intersection(node.input) or _captures(node, fed):
                fed.update(node.output)
        return fed

    def named(self, everything: bool) -> list[Named]:
        """Return the recorded tensors, in the order of execution.

        Recorded is each floating-point tensor that depends on the inputs and is not an unchanged copy; `everything`
        adds the remaining tensors that depend on the inputs. Constants are never recorded.
        """
        modules = self._module_outputs()
        named, taken, numbers = [], {"input_ids", "position_ids"}, Counter()
        for node, chain in zip(self.nodes, self.chains, strict=True):
            own = self._own(node, chain, numbers)
            for i, value in enumerate(node.output):
                wanted = value in self.fed and (
                    everything or value not in self.same and self.types.get(value) in FLOATS
                )
                if not value or not wanted:
                    continue
                name, certain = modules.get(value), True
                if value in self.outputs and (value == "logits" or name == "lm_head"):
                    name = "logits"
                elif name is None:
                    certain = False
                    name = value if value in self.outputs else own + (f".{i}" if i else "")
                name = re.sub(r"[/#]", ".", name)  # these mean something in a key
                while name in taken:
                    name, certain = name + "~", False
                taken.add(name)
                named.append(Named(value, name, certain))
        return named

    def _own(self, node: Any, chain: list[str], numbers: Counter[str]) -> str:
        """Return a name for a node that stays the same from layer to layer."""
        if "/" in node.name:
            kind = node.name.rpartition("/")[2]
            return f"{self._below(chain[-1])}.{kind}".lstrip(".") if chain else kind
        module = self._below(chain[-1]) if chain else ""
        kind = f"{module}.{node.op_type}" if module else node.op_type
        numbers[kind] += 1
        return kind if numbers[kind] == 1 else f"{kind}_{numbers[kind] - 1}"

    def _module_outputs(self) -> dict[str, str]:
        """Return names of modules by the one tensor that a module returns; of several modules the innermost counts."""
        made = {v: chain for node, chain in zip(self.nodes, self.chains, strict=True) for v in _results(node) if v}
        moved = {node.output[0]: node.input[0] for node in self.nodes if node.op_type in MOVES}
        leaves: dict[str, set[str]] = {}  # by module, the tensors that are used outside

        def use(value: str, chain: Iterable[str]) -> None:
            value = source = self.same.get(value, value)
            while source in moved:
                source = moved[source]
            if self.types.get(value) in FLOATS and value in self.fed:
                for module in set(made.get(value, ())).intersection(made.get(source, ())).difference(chain):
                    leaves.setdefault(module, set()).add(value)

        for node, chain in zip(self.nodes, self.chains, strict=True):
            if node.op_type not in SHAPES and not self.same.keys() & set(node.output):
                for value in [*node.input, *_captured(node)]:
                    use(value, chain)
        for value in self.returned:
            use(value, ())
        found: dict[str, str] = {}
        for module in sorted(leaves, key=len, reverse=True):
            if len(leaves[module]) == 1:
                (value,) = leaves[module]
                found.setdefault(value, self._reference(module))
        return {value: name for value, name in found.items() if name}

    def _reference(self, module: str) -> str:
        """Return the reference's name for the output of a module."""
        below = self._below(module)
        return f"{below}.out" if re.fullmatch(r"layers\.\d+", below) else below

    def _below(self, module: str) -> str:
        """Return a module's path below the text model; outside of the text model the whole path, or lm_head."""
        if self.prefix is None:
            return module
        if module == self.prefix:
            return ""
        if not self.prefix or module.startswith(self.prefix + "."):
            return module[len(self.prefix) + 1 if self.prefix else 0 :]
        return "lm_head" if module.rpartition(".")[2] == "lm_head" else module


def _results(node: Any) -> list[str]:
    return list(node.output[:1] if node.op_type in NORMS else node.output)


def _captured(node: Any) -> list[str]:
    """Return the names that the branches of a node use, including names of tensors inside the branches."""
    return [
        value
        for a in node.attribute
        if a.HasField("g")
        for inner in a.g.node
        for value in [*inner.input, *_captured(inner)]
    ]


def _captures(node: Any, fed: set[str]) -> bool:
    return bool(fed.intersection(_captured(node)))


def _chain(node: Any) -> list[str]:
    """Return the paths of the modules in which a node stands, from the outermost on."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            return _scopes(entry.value)
    parts = [part for part in node.name.split("/")[:-1] if part]
    return [".".join(parts[: i + 1]) for i in range(len(parts))] if node.name.startswith("/") else []


def _scopes(text: str) -> list[str]:
    """Read "['', 'model', 'model.layers.0', 'add_14']": the modules, and the node itself."""
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    if not isinstance(scopes, list) or not all(isinstance(s, str) for s in scopes):
        return []
    return [s for s in scopes[:-1] if s and not s.startswith("_empty_nn_module_stack")]


def _prefix(modules: set[str]) -> str | None:
    """Return the path of the text model: the module that has layers, and a norm or an embedding.

    None where no module or several modules have them: then paths stay whole.
    """
    have = {m[1] or "" for path in modules if (m := LAYER.fullmatch(path))}
    if len(have) > 1:
        have = {p for p in have if {f"{p}.{name}".lstrip(".") for name in ("embed_tokens", "norm")} & modules}
    return have.pop() if len(have) == 1 else None
