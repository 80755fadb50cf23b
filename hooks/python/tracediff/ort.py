"""ONNX models in ONNX Runtime: sessions in which every tensor can be fetched, and the inputs of each pass."""

import ctypes
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracediff import trace
from tracediff.errors import BadInput, CaptureFailed

PACKAGES = "pip install onnx==1.23.2 onnxruntime==1.31.1"
UNDERSTOOD = "understood are input_ids, attention_mask, position_ids, cache_position, logits_to_keep, past_key_values.*"

# The names of the trace's writer, by onnxruntime's names of dtypes.
DTYPES = {f"tensor({name})": name for name in trace.DTYPES} | {"tensor(float)": "float32", "tensor(double)": "float64"}

SMALL = 1 << 12  # bytes of a weight that is read with the model

Feeds = dict[str, Any]


class Bits(NamedTuple):
    """A tensor in a dtype unknown to numpy, as bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def tobytes(self) -> bytes:
        """Return the data, row-major."""
        return self.data


class Model:
    """A model file, and sessions of onnxruntime on it."""

    def __init__(self, path: pathlib.Path, threads: int) -> None:
        """Read a file; weights in other files are not read."""
        try:
            import onnx
            import onnxruntime
        except ImportError as err:
            raise BadInput(f"{err.name or err}: not installed", PACKAGES) from err
        self.path, self._ort, self._threads = path, onnxruntime, threads
        self.version = onnxruntime.__version__
        if not path.is_file():
            raise BadInput(f"{path}: no such file")
        try:
            self.proto = onnx.load(path, load_external_data=False)
        except Exception as err:  # the parser raises errors of another library
            raise BadInput(f"{path}: not an ONNX model: {err}") from err
        if not self.proto.graph.node:
            raise BadInput(f"{path}: not an ONNX model: it has no nodes")
        self._weights(onnx)
        self.outputs = [value.name for value in self.proto.graph.output]
        session = self.session([v for node in self.proto.graph.node for v in node.output if v])
        self.inputs = session.get_inputs()
        self.types = {value.name: value.type for value in [*self.inputs, *session.get_outputs()]}

    def _weights(self, onnx: Any) -> None:
        """Check that files of weights exist, and read small weights: shapes are computed from some."""
        for weight in self.proto.graph.initializer:
            about = {entry.key: entry.value for entry in weight.external_data}
            if not about:
                continue
            location = about.get("location", "")
            if not (self.path.parent / location).is_file():
                raise BadInput(
                    f"{self.path}: its weights are in {location or 'another file'}, which is not there",
                    "copy that file to the folder of the model, where the exporter wrote it",
                )
            if int(about.get("length", SMALL)) < SMALL:
                onnx.external_data_helper.load_external_data_for_tensor(weight, str(self.path.parent))
                weight.data_location = onnx.TensorProto.DEFAULT
                del weight.external_data[:]

    def session(self, outputs: Sequence[str] = (), optimised: bool = False) -> Any:
        """Return a session on the CPU that also returns the given tensors as outputs."""
        options = self._ort.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 4  # errors also come as exceptions
        folder = str(self.path.parent.resolve())
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        if not optimised:
            options.graph_optimization_level = self._ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            return self._ort.InferenceSession(self._with(outputs), options, providers=["CPUExecutionProvider"])
        except Exception as err:  # each of its errors is a class of its own
            raise BadInput(f"{self.path}: onnxruntime does not load it: {err}", _hint(str(err))) from err

    def _with(self, outputs: Sequence[str]) -> bytes:
        """Return the model with more outputs."""
        graph = self.proto.graph
        for name in outputs:
            if name not in self.outputs:
                graph.output.add().name = name
        try:
            return bytes(self.proto.SerializeToString())
        except Exception as err:  # of protobuf, which is not imported here
            raise BadInput(f"{self.path}: more than 2 GB in one file", "export it with external_data=True") from err
        finally:
            del graph.output[len(self.outputs) :]

    def fetch(self, session: Any, names: Sequence[str], feeds: Feeds) -> list[Any]:
        """Run a session; return tensors of onnxruntime."""
        try:
            return list(session.run_with_ort_values(list(names), feeds))
        except Exception as err:
            raise CaptureFailed(f"{self.path}: onnxruntime: {err}", _hint(str(err))) from err

    def value(self, array: Any) -> Any:
        """Return a numpy array as an OrtValue."""
        return self._ort.OrtValue.ortvalue_from_numpy(array)

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a tensor without elements."""
        import numpy

        kinds = {"float32": 1, "float16": 10, "float64": 11, "bfloat16": 16}  # onnx.TensorProto
        if dtype == "bfloat16":
            return self._ort.OrtValue.ortvalue_from_shape_and_type(list(shape), kinds[dtype])
        return self.value(numpy.zeros(shape, dtype))


def _hint(error: str) -> str:
    """Return advice about an error of onnxruntime, or ""."""
    if "NOT_IMPLEMENTED" in error:
        return "the processor has no kernel for this node and dtype: export the model in float32"
    if "not a registered function/op" in error or "Unsupported model IR version" in error or "opset" in error.lower():
        return f"a newer onnxruntime may: {PACKAGES.removesuffix('==1.31.1')}"
    return ""


def dtype_of(name: str, kind: str) -> str:
    """Return the trace's dtype of onnxruntime's type `kind`."""
    if kind not in DTYPES:
        raise BadInput(f"{name}: {kind} is a type that a trace does not have", "leave --all out")
    return DTYPES[kind]


def tensor(name: str, value: Any) -> Any:
    """Return a tensor of onnxruntime as the trace's writer takes it: a numpy array, or Bits."""
    dtype, shape = dtype_of(name, value.data_type()), tuple(value.shape())
    if dtype == "bfloat16" or dtype.startswith("float8"):
        size = trace.SIZES[trace.DTYPES[dtype]] * trace.count(shape)
        return Bits(dtype, shape, ctypes.string_at(value.data_ptr(), size) if size else b"")
    return value.numpy()


class Feeder:
    """The inputs of a model in each pass."""

    def __init__(self, model: Model, passes: Sequence[Sequence[int]]) -> None:
        """Find the role of each input; fail for an unknown input."""
        self._model, self._passes = model, passes
        self._given = {i.name: i for i in model.inputs if not _is_past(i)}
        self._past = [i for i in model.inputs if _is_past(i)]
        self.ids = self._find_ids()
        self.cache = self._pairs()
        for name, i in self._given.items():
            if name != self.ids and _role(name) is None:
                raise BadInput(f"input {name!r} ({i.type}, {i.shape}) is not understood", UNDERSTOOD)
        if len(passes) > 1 and not self.cache:
            raise BadInput(
                f"{len(passes)} passes, and the model has no cache",
                "give all tokens as one pass, or export it with past_key_values and present outputs",
            )

    def _find_ids(self) -> str:
        if "input_ids" in self._given:
            return "input_ids"
        whole = [n for n, i in self._given.items() if _role(n) is None and "int" in i.type and len(i.shape) == 2]
        if len(whole) != 1:
            have = ", ".join(f"{i.name} ({i.type})" for i in self._model.inputs[:8])
            raise BadInput(f"no input is the token ids: it has {have}", "export it with an input named input_ids")
        return whole[0]

    def _pairs(self) -> dict[str, str]:
        """Return the outputs that become the cache of the next pass, by the inputs that they are fed to."""
        outputs = self._model.outputs
        pairs = {i.name: re.sub("^past(_key_values?)?", "present", i.name) for i in self._past}
        if not set(pairs.values()) <= set(outputs):
            pairs = {i.name: i.name.replace("past", "present", 1) for i in self._past}
        if not set(pairs.values()) <= set(outputs) or len(set(pairs.values())) < len(pairs):
            raise BadInput(
                f"no output is the next cache of input {self._past[0].name!r}: it has {', '.join(outputs[:8])}",
                "call the inputs past_key_values.0.key, ... and the outputs present.0.key, ...",
            )
        return pairs

    def start(self) -> Feeds:
        """Return the empty cache of the first pass."""
        return {i.name: self._model.empty(_empty_shape(i), dtype_of(i.name, i.type)) for i in self._past}

    def positions(self, index: int) -> Any:
        """Return the positions of a pass, [1, T], int64."""
        import numpy

        past = sum(map(len, self._passes[:index]))
        return numpy.arange(past, past + len(self._passes[index]), dtype="<i8")[None]

    def tokens(self, index: int) -> Any:
        """Return the token ids of a pass, [1, T], int64."""
        import numpy

        return numpy.array([self._passes[index]], "<i8")

    def feeds(self, index: int, cache: Mapping[str, Any]) -> Feeds:
        """Return the inputs of a pass, with the cache of the pass before."""
        import numpy

        positions = self.positions(index)
        values = {
            "ids": self.tokens(index),
            "mask": numpy.ones((1, positions[0, -1] + 1), "<i8"),
            "positions": positions,
            "cache": positions[0],
            "keep": numpy.array(0, "<i8"),
        }
        fed = dict(cache)
        for name, given in self._given.items():
            value = values["ids" if name == self.ids else _role(name)]
            _check_shape(name, given.shape, value.shape)
            fed[name] = self._model.value(value.astype(dtype_of(name, given.type)))
        return fed


def _is_past(given: Any) -> bool:
    return "past" in given.name and "float" in given.type and len(given.shape) >= 3


def _role(name: str) -> str | None:
    roles = {"attention_mask": "mask", "position_ids": "positions", "cache_position": "cache"}
    return roles.get(name) or ("keep" if name in ("logits_to_keep", "num_logits_to_keep") else None)


def _check_shape(name: str, declared: Sequence[Any], shape: Sequence[int]) -> None:
    fits = len(declared) == len(shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(declared, shape, strict=True)
    )
    if not fits:
        raise BadInput(
            f"input {name!r} takes {list(declared)}, and the tokens make {list(shape)} of it",
            "export it with a batch of 1, and with tokens as a dynamic axis",
        )


def _empty_shape(given: Any) -> list[int]:
    """Return the shape of a cache without tokens: the axis of tokens has length 0, an unknown batch is 1."""
    shape = [1 if i == 0 and not isinstance(n, int) else n for i, n in enumerate(given.shape)]
    if sum(not isinstance(n, int) for n in shape) != 1:
        raise BadInput(
            f"input {given.name!r} takes {given.shape}: which axis has the tokens is not clear",
            "export the model with only that axis and the batch dynamic",
        )
    return [n if isinstance(n, int) else 0 for n in shape]
