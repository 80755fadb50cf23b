"""Which tensors of a checkpoint a parameter is: the tensor of its name, or else tensors with equal numbers.

transformers converts checkpoints while loading: names change, and matrices are joined. A parameter without a tensor of
its name is searched by content: as one tensor, as one transposed tensor, or as the rows of several tensors, one after
the other.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import torch

SAMPLES = 4096  # elements compared where name and shape agree, spread over the whole parameter
WRAPPERS = ("model.", "language_model.", "model.language_model.", "transformer.", "base_model.", "")


class Checkpoint:
    """The tensors of a folder's safetensors files, read one by one."""

    def __init__(self, folder: str) -> None:
        """Open a checkpoint; an empty text opens no files."""
        from safetensors import safe_open

        self._files = [safe_open(p, "pt") for p in sorted(pathlib.Path(folder).glob("*.safetensors"))] if folder else []
        self._where = {name: file for file in self._files for name in file.keys()}  # noqa: SIM118
        self._rows: dict[tuple[Any, int], dict[bytes, list[str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._where)

    def tensor(self, name: str) -> Any:
        """Return a tensor by name."""
        return self._where[name].get_tensor(name)

    def describe(self, name: str, parameter: Any) -> dict[str, Any]:
        """Return where a parameter comes from: {"file": NAME} with "transposed", or {"rows": [[NAME, shape], ...]}.

        The result is empty where the checkpoint has the parameter under its own name; {"unknown": True} where nothing
        is found. "rows" are tensors whose elements follow each other.
        """
        for candidate in self._candidates(name):
            if self._same(candidate, parameter):
                return {} if candidate == name else {"file": candidate}
        if parameter.numel() == 0 or parameter.dim() == 0:
            return {"unknown": True}
        width = parameter.shape[-1]
        rows = parameter.detach().cpu().reshape(-1, width)
        found = list(self._tiles(rows, parameter.dtype, width))
        if found and all(found):
            if len(found) == 1 and self._shape(found[0]) == list(parameter.shape):
                return {} if found[0] == name else {"file": found[0]}
            return {"rows": [[one, self._shape(one)] for one in found]}
        if parameter.dim() == 2:
            turned = list(self._tiles(rows.T.contiguous(), parameter.dtype, rows.shape[0]))
            if len(turned) == 1 and turned[0] and self._shape(turned[0]) == list(rows.T.shape):
                return {"file": turned[0], "transposed": True}
        return {"unknown": True}

    def _shape(self, name: str) -> list[int]:
        return list(self._where[name].get_slice(name).get_shape())

    def _candidates(self, name: str) -> Iterator[str]:
        bare = name
        for wrapper in ("model.language_model.", "language_model.", "model.", "transformer."):
            bare = bare.removeprefix(wrapper)
        yield from (c for c in dict.fromkeys([name, *(w + bare for w in WRAPPERS)]) if c in self._where)

    def _same(self, candidate: str, parameter: Any) -> bool:
        if self._shape(candidate) != list(parameter.shape):
            return False
        theirs = self.tensor(candidate).reshape(-1)
        ours = parameter.detach().cpu().reshape(-1)
        step = max(1, ours.numel() // SAMPLES)
        return torch.equal(theirs[::step].to(ours.dtype), ours[::step])

    def _tiles(self, rows: Any, dtype: Any, width: int) -> Iterator[str]:
        """Yield the tensors that make up a matrix from top to bottom; an empty text where no tensor fits."""
        known = self._first_rows(dtype, width)
        at = 0
        while at < rows.shape[0]:
            for name in known.get(_bytes(rows[at]), ()):
                tile = self.tensor(name).reshape(-1, width)
                if torch.equal(tile.to(dtype), rows[at : at + tile.shape[0]]):
                    yield name
                    at += tile.shape[0]
                    break
            else:
                yield ""
                return

    def _first_rows(self, dtype: Any, width: int) -> dict[bytes, list[str]]:
        if (dtype, width) not in self._rows:
            out: dict[bytes, list[str]] = {}
            for name in self._where:
                shape = self._shape(name)
                if shape and shape[-1] == width and 0 not in shape:
                    out.setdefault(_bytes(self.tensor(name).reshape(-1, width)[0].to(dtype)), []).append(name)
            self._rows[dtype, width] = out
        return self._rows[dtype, width]


def _bytes(row: Any) -> bytes:
    return row.contiguous().view(torch.uint8).numpy().tobytes()
