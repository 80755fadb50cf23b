"""The packages and the machine, checked before a capture and recorded in its trace.

Bits of a float result depend on the version of the library and on the processor's instructions, so both belong in the
trace. Times, paths and user, which change from run to run without changing results, are left out.
"""

import concurrent.futures
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import sys
import time
from typing import Any

from tracediff.errors import BadInput

# Versions that the goldens were made with; requirements.txt has the same.
PINS = {"torch": "2.15.0", "transformers": "5.23.0"}

# Above LARGE bytes, weights have the digests of their chunks of CHUNK bytes. The command-line tool has the same
# numbers.
LARGE = 128 << 20
CHUNK = 8 << 20

# Seconds for which a file has to be unchanged before its digest is remembered: two writes within one tick of a file
# system's clock leave the same times.
SETTLE = 2

# Instruction sets that choose a kernel in torch or its libraries.
FLAGS = ("sse4_2", "avx", "avx2", "f16c", "fma", "avx_vnni", "asimd", "asimddp", "bf16", "i8mm")
FAMILIES = ("avx512", "amx_", "sve")  # and every flag that begins so

# Variables that choose other kernels than the processor's: torch's own, oneDNN's, MKL's.
CHOICES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS")


def versions() -> tuple[dict[str, str], list[str]]:
    """Return the installed version of each pinned package, and a warning for each version that is not the pinned one.

    Only metadata is read: importing torch takes seconds, and a missing transformers is reported at once.
    """
    found, warnings = {}, []
    install = "pip install " + " ".join(f"{name}=={version}" for name, version in PINS.items())
    for name, pin in PINS.items():
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise BadInput(f"{name}: not installed", install) from None
        if found[name].split("+")[0] != pin:  # 2.15.0+cpu is 2.15.0
            warnings.append(f"{name} {found[name]} is not the pinned {pin}: tensors can differ in their last bits")
    return found, warnings


def cpu() -> dict[str, str]:
    """Return the processor's name and its flags that change results."""
    name = ""
    flags: list[str] = []
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            label, _, value = (part.strip() for part in line.partition(":"))
            if label == "model name":
                name = name or value
            elif label in ("flags", "Features") and not flags:
                flags = value.split()
    except OSError:
        pass  # another system: the machine's name has to do
    kept = [f for f in flags if f in FLAGS or f.startswith(FAMILIES)]
    return {"cpu": name or platform.processor() or platform.machine(), "cpu_flags": " ".join(sorted(kept))}


def details(found: dict[str, str], device: str) -> dict[str, str]:
    """Return versions and settings that the numbers depend on. Call it after torch has been set up."""
    import torch

    out = {
        "torch": found["torch"],
        "python": platform.python_version(),
        **cpu(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "device": device,
    }
    chosen = [f"{name}={os.environ[name]}" for name in CHOICES if os.environ.get(name)]
    if chosen:
        out["kernels"] = " ".join(chosen)
    if torch.device(device).type == "cuda":
        out["device"] = torch.cuda.get_device_name(device)
        out["cuda"] = str(torch.version.cuda)
    return out


def weights_digest(folder: str | os.PathLike[str]) -> str:
    """Return the digest of the weight files in the folder, "unknown" without any.

    The digest is the SHA-256 of one line per file, sorted by name: the file's digest in hexadecimal, two spaces, the
    name. Up to LARGE bytes in all, a file's digest is its SHA-256, and "sha256:" stands before the result. Above LARGE,
    a file's digest is the SHA-256 of the digests of its chunks, see chunked(), and the result begins with "chunks:".
    Only files that are loaded count, since folders also hold copies in other layouts: model.safetensors, or else the
    files of the index, or else all *.safetensors.
    """
    path = pathlib.Path(folder)
    index = path / "model.safetensors.index.json"
    if (path / "model.safetensors").is_file():
        files = [path / "model.safetensors"]
    elif index.is_file():
        files = [path / name for name in set(json.loads(index.read_text())["weight_map"].values())]
    else:
        files = list(path.glob("*.safetensors"))
    files.sort(key=lambda f: f.name.encode())
    if not files:
        return "unknown"
    large = sum(file.stat().st_size for file in files) > LARGE
    sums = chunked(files) if large else [whole(file) for file in files]
    lines = "".join(f"{sum}  {file.name}\n" for sum, file in zip(sums, files, strict=True))
    return ("chunks:" if large else "sha256:") + hashlib.sha256(lines.encode()).hexdigest()


def port(folder: str | os.PathLike[str]) -> str:
    """Return, as JSON, what port.json tells of the weights' source file; "" without port.json."""
    if not folder:
        return ""
    try:
        told = json.loads(pathlib.Path(folder, "port.json").read_text(encoding="utf-8"))["told"]
        if isinstance(told["file"], str):
            return json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    except (OSError, ValueError, KeyError, TypeError):  # no such file, or a file with other contents
        pass
    return ""


def whole(file: pathlib.Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def chunked(files: list[pathlib.Path]) -> list[str]:
    """Return, for each file, the SHA-256 of the SHA-256 digests of its chunks, hashed on all cores.

    Digests of unchanged files are taken from the user's cache folder, which the command-line tool uses too; new digests
    are added to the cache. OSError when a file cannot be read or changes.
    """
    known = _remembered()
    sums = []
    new: dict[str, dict[str, Any]] = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file in files:
            before = file.stat()
            entry = known.get(os.path.abspath(file), {})
            if entry.get("chunks") and _same(entry, before):
                sums.append(entry["chunks"])
                continue
            started = time.time()
            parts = pool.map(lambda at, file=file: _chunk(file, at), range(0, before.st_size, CHUNK))
            sums.append(hashlib.sha256(b"".join(parts)).hexdigest())
            after = file.stat()
            if _identity(before) != _identity(after):
                raise OSError(f"{file} was changed while it was hashed")
            if started - max(before.st_mtime, before.st_ctime) > SETTLE:
                new[os.path.abspath(file)] = {**_identity(before), "chunks": sums[-1]}
    _remember(new)
    return sums


def _chunk(file: pathlib.Path, at: int) -> bytes:
    with file.open("rb") as data:
        data.seek(at)
        return hashlib.sha256(data.read(CHUNK)).digest()


def _remembered() -> dict[str, Any]:
    """Return the files whose digests the command-line tool remembers, by path; empty where the cache cannot be read."""
    if not sys.platform.startswith("linux"):  # elsewhere the system tells too little about a file
        return {}
    try:
        known = json.loads(_cache().read_text())
    except (OSError, ValueError, RuntimeError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(v, dict) for v in known.values()) else {}


def _remember(new: dict[str, dict[str, Any]]) -> None:
    """Add files to the remembered digests, all or nothing. After a failure, the files are hashed again the next time.
    """
    if not new or not sys.platform.startswith("linux"):
        return
    known = _remembered()
    for path, entry in new.items():
        old = known.get(path, {})
        kept = {"sha256": old["sha256"]} if old.get("sha256") and _identity_of(old) == _identity_of(entry) else {}
        known[path] = {**entry, **kept}
    try:
        cache = _cache()
        cache.parent.mkdir(parents=True, exist_ok=True)
        part = cache.with_name(f"{cache.name}.{os.getpid()}.part")
        part.write_text(json.dumps(known, indent="\t", sort_keys=True) + "\n")
        part.replace(cache)
    except (OSError, RuntimeError):
        return


def _cache() -> pathlib.Path:
    """Return the file of remembered digests. RuntimeError where there is no home."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return folder / "tracediff" / "digests.json"


def _same(entry: dict[str, Any], now: os.stat_result) -> bool:
    """Report whether a remembered file is unchanged."""
    whole_digest = re.fullmatch("[0-9a-f]{64}", str(entry["chunks"]))
    return bool(whole_digest) and _identity_of(entry) == _identity(now)


def _identity(now: os.stat_result) -> dict[str, int]:
    """Return the fields that change when a file is written, named as in the command-line tool."""
    return {
        "size": now.st_size,
        "mtime_ns": now.st_mtime_ns,
        "ctime_ns": now.st_ctime_ns,
        "inode": now.st_ino,
        "device": now.st_dev,
    }


def _identity_of(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry.get(key) for key in ("size", "mtime_ns", "ctime_ns", "inode", "device")}


def warn(message: str) -> None:
    """Print a warning, one line."""
    print(f"tracediff.hf: warning: {message}", file=sys.stderr)
