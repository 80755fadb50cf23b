"""Capture the tensors of a checkpoint as transformers computes them: python -m tracediff.hf --help."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tracediff import capture, debug, host, lengths, model, order, shown
from tracediff.errors import BadInput, command

EPILOG = """\
example:
  tracediff order --model gemma-3n-E2B --format json > order.json
  python -m tracediff.hf --model gemma-3n-E2B --order order.json --prompt "Hello world" \\
      --max-new-tokens 4 --dtype bfloat16 --out ref.safetensors
  tracediff compare port.safetensors ref.safetensors

Passes of --tokens are forward calls: "2,513,88;17;29" runs a prompt of three tokens and then two tokens one at a
time, with the cache that the calls before returned. So the passes of your port can be repeated. Decoding with
--max-new-tokens is greedy and does not stop at an end token.

exit code: 0 the trace is written; 1 the model did not run or did not show what the order says (OUT.part has the tensors
up to the error); 2 arguments, files or packages are not usable.
"""


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in the same form as every other error."""

    def error(self, message: str) -> NoReturn:
        """Raise the message; nothing is printed here."""
        raise BadInput(message, "python -m tracediff.hf --help")


def parser() -> Parser:
    """Return the command line's parser."""
    p = Parser(
        prog="python -m tracediff.hf",
        description="Capture the tensors of a checkpoint as transformers computes them, into one trace.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--model", required=True, metavar="DIR", help="checkpoint folder: config.json and *.safetensors")
    p.add_argument(
        "--order", metavar="FILE", help="order.json of `tracediff order --format json`; without it the run is recorded"
    )
    p.add_argument("--out", required=True, metavar="FILE", help="the trace to write, NAME.safetensors")
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", metavar="TEXT", help="text, tokenized by the checkpoint's tokenizer with its BOS")
    what.add_argument("--tokens", metavar="IDS", help='token ids, one pass or several: "2,513,88;17;29"')
    p.add_argument("--max-new-tokens", type=int, default=0, metavar="N", help="decode N more tokens (default 0)")
    p.add_argument("--dtype", required=True, choices=model.DTYPES, help="of the loaded weights and of the computation")
    p.add_argument(
        "--level", type=int, default=3, choices=(1, 2, 3), help="1 block boundaries, 2 module outputs, 3 all (default)"
    )
    p.add_argument("--layers", default="", metavar="LIST", help='only these layers, for example "0-3,7"')
    p.add_argument(
        "--program", action="store_true", help="also record the program, NAME.program.json; without --order always"
    )
    p.add_argument(
        "--lengths",
        type=int,
        default=lengths.MOST,
        metavar="N",
        help=f"record other prompt lengths too, up to N tokens (default {lengths.MOST}; 0: none); only without --order",
    )
    p.add_argument(
        "--trust-remote-code", action="store_true", help="run Python code from the checkpoint; only without --order"
    )
    p.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="CPU threads (default: torch's choice)")
    p.add_argument("--progress", action="store_true", help="print progress on stderr, a line per pass")
    p.add_argument(
        "--debug", action="store_true", help="a line on stderr for each tensor (also TRACEDIFF_DEBUG=1, DEBUG=1)"
    )
    p.add_argument("--debug-only", metavar="FILE", help='show only these: {"names":[...],"passes":"","positions":""}')
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return command("tracediff.hf", lambda: run(parser().parse_args(argv)))


def run(args: argparse.Namespace) -> None:
    """Do what the arguments say. The cheap checks come first: loading can take minutes."""
    for warning in host.versions()[1]:
        host.warn(warning)
    if args.max_new_tokens < 0 or args.threads < 0 or args.lengths < 0:
        raise BadInput("--max-new-tokens, --threads and --lengths are not negative")
    if not args.order:
        _record(args)
        return
    listed = order.load(args.order)
    job = _job(args)
    if args.tokens is not None:
        capture.check_ids(listed, job)
    job.scope.select(listed.entries)
    only = shown.Shown(args.debug_only, listed, job.lengths()) if args.debug_only else None
    model.set_up(args.threads)
    if args.progress:
        print(f"loading {args.model} in {args.dtype}", file=sys.stderr, flush=True)
    loaded = model.load(args.model, args.dtype, args.device, listed)
    typed = debug.EVERY if args.layers else 0
    log = debug.Log(text=_texts(args.model), only=only, layers=typed) if args.debug or debug.wanted() else None
    fed = capture.run(loaded, listed, job, args.out, _lines if args.progress or log else _progress, log, args.program)
    ids = ";".join(",".join(map(str, one)) for one in fed)
    print(f"{args.out}: {counted(len(fed))}, tokens {ids}")


def _record(args: argparse.Namespace) -> None:
    """Record a model that has no order: the trace, and its program in the same folder."""
    if args.layers or args.level != 3 or args.debug_only:
        raise BadInput("--layers, --level and --debug-only need --order", "without an order everything is recorded")
    passes = read_ids(args.tokens) if args.tokens is not None else [tokenize(args.model, args.prompt)]
    from tracediff import tracing  # imports torch

    model.set_up(args.threads)
    if args.progress:
        print(f"loading {args.model} in {args.dtype}", file=sys.stderr, flush=True)
    outer = model.load_any(args.model, args.dtype, args.device, args.trust_remote_code)
    fed, names = tracing.run(
        outer, args.model, passes, args.max_new_tokens, args.out, args.prompt or "", args.lengths
    )
    ids = ";".join(",".join(map(str, one)) for one in fed)
    print(f"{args.out}: {counted(len(fed))}, tokens {ids}")
    print(names)


def _job(args: argparse.Namespace) -> capture.Job:
    scope = order.Scope(args.level, args.layers)
    if args.tokens is not None:
        return capture.Job(read_ids(args.tokens), args.max_new_tokens, "", scope)
    return capture.Job([tokenize(args.model, args.prompt)], args.max_new_tokens, args.prompt, scope)


MOST_DIGITS = 9  # of a token id: no vocabulary is larger, and Python refuses to read thousands of digits


def counted(passes: int) -> str:
    """Return a number of passes in words."""
    return "1 pass" if passes == 1 else f"{passes} passes"


def read_ids(text: str) -> list[list[int]]:
    """Read "2,513,88;17;29"."""
    passes = []
    for part in text.split(";"):
        numbers = [n.strip() for n in part.split(",")]
        wrong = [n for n in numbers if not n.isdecimal() or len(n) > MOST_DIGITS]
        if wrong:
            raise BadInput(f"--tokens: {wrong[0]!r} is not a token id", 'for example: --tokens "2,513,88;17;29"')
        passes.append([int(n) for n in numbers])
    return passes


def tokenize(folder: str, text: str) -> list[int]:
    """Return the ids of a text, with the special tokens that the tokenizer adds."""
    if not text:
        raise BadInput("--prompt: the text is empty", "give the ids themselves: --tokens 2")
    return list(_tokenizer(folder)(text).input_ids)


def _texts(folder: str) -> Callable[[int], str] | None:
    """Return the function that gives the text of an id; None where the checkpoint has no tokenizer."""
    try:
        tokenizer = _tokenizer(folder)
    except BadInput:
        return None
    if "\u0120" in tokenizer.get_vocab():  # a byte-level vocabulary, which spells a space as \u0120
        return lambda token: str(tokenizer.decode([token]))
    return lambda token: str(tokenizer.convert_ids_to_tokens(token)).replace("\u2581", " ")


def _tokenizer(folder: str) -> Any:
    if not os.path.isdir(folder):
        raise BadInput(f"--model {folder}: no such folder")
    hint = 'give ids: --tokens "2,513,88"'
    # Without these files AutoTokenizer returns an empty tokenizer, whose ids mean nothing.
    if not any(os.path.isfile(os.path.join(folder, name)) for name in ("tokenizer.json", "tokenizer.model")):
        raise BadInput(f"--model {folder}: it has no tokenizer", hint)
    import transformers

    model.quiet(transformers)
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # a wrong file fails in many ways, deep in several libraries
        raise BadInput(f"--model {folder}: its tokenizer does not load: {err}", hint) from err


def _progress(done: int, every: int) -> None:
    if sys.stderr.isatty():
        print(f"\r  pass {done} of {every}", end="\n" if done == every else "", file=sys.stderr, flush=True)


def _lines(done: int, every: int) -> None:
    """Report progress to a program, a line per pass."""
    print(f"pass {done} of {every}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
