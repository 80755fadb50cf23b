"""The token ids of a text, by a checkpoint's own tokenizer: python -m tracediff.ids --model DIR < text.

Prints one line of JSON: {"ids":[...],"texts":[...],"transformers":"5.23.0"}. `texts` has the text of each id. With
--chat the text is a user message, in the checkpoint's chat template, up to where the model is to answer. exit code: 0
the line is printed; 2 the tokenizer or the text is not usable.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from tracediff import hf
from tracediff.errors import BadInput, Failure


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    p = argparse.ArgumentParser(prog="python -m tracediff.ids", description="Print the token ids of a text.")
    p.add_argument("--model", required=True, metavar="DIR")
    p.add_argument("--chat", action="store_true")
    args = p.parse_args(argv)
    try:
        found = read(args.model, sys.stdin.buffer.read(), args.chat)
    except Failure as err:
        print(f"tracediff.hf: {err}", file=sys.stderr)
        if err.hint:
            print(f"hint: {err.hint}", file=sys.stderr)
        return err.code
    print(json.dumps(found))
    return 0


def read(folder: str, data: bytes, chat: bool) -> dict[str, Any]:
    """Return the ids, the text of each id, and the version of transformers."""
    import transformers

    try:
        text = data.decode()
    except UnicodeDecodeError as err:
        raise BadInput(f"the prompt is not UTF-8: {err}") from err
    tokenizer = hf._tokenizer(folder)
    if chat:
        if not getattr(tokenizer, "chat_template", None):
            raise BadInput(f"--chat: {folder} has no chat template", "leave --chat out, or give ids: --tokens 2,513,88")
        turn = [{"role": "user", "content": text}]
        try:
            written = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
        except Exception as err:  # a template is a program, and may raise anything
            raise BadInput(f"--chat: the chat template of {folder} does not run: {err}") from err
        ids = tokenizer(written, add_special_tokens=False).input_ids
    else:
        ids = tokenizer(text).input_ids
    if not ids:
        raise BadInput("the prompt has no tokens", "give the ids themselves: --tokens 2")
    texts = [str(tokenizer.decode([token])) for token in ids]
    return {"ids": [int(i) for i in ids], "texts": texts, "transformers": transformers.__version__}


if __name__ == "__main__":
    sys.exit(main())
