"""Values as debug mode writes them, each within one line."""

import re

_PLAIN = re.compile(r"[!#-\[\]-~]+")  # nearly every name, and each has a line


def digits(text: str) -> bool:
    """Report whether a text is a number of a name, of at most 9 digits, which fits the integers of other languages."""
    return text.isascii() and text.isdecimal() and len(text) <= 9


def number(x: float) -> str:
    """Return six digits, as C's %.6g, and "-" for NaN."""
    return "-" if x != x else f"{x:.6g}"


def ms(key: str, seconds: float) -> tuple[str, str]:
    """Return a field with a time, in milliseconds."""
    return key, f"{1000 * seconds:.3f}"


def counts(not_finite: list[int]) -> list[tuple[str, object]]:
    """Return the fields with how many elements are NaN, +Inf and -Inf."""
    return list(zip(("nan", "inf", "neg_inf"), not_finite, strict=True))


def word(text: str) -> str:
    """Return a text without spaces, so that awk splits a line correctly; an empty text is "-".

    A byte of UTF-8 that is not printable ASCII becomes \\xNN.
    """
    if _PLAIN.fullmatch(text):
        return text
    codes = text.encode("utf-8", "replace")
    return "".join(f"\\x{c:02x}" if c <= 0x20 or c >= 0x7F else _slashed(chr(c)) for c in codes) or "-"


def quoted(text: str) -> str:
    """Return a text in double quotes, with quotes and backslashes escaped.

    Control characters and Unicode's line separators become \\xNN or \\uNNNN, so that no name and no token can end the
    line or control the terminal.
    """
    out = []
    for c in text:
        if c < " " or "\x7f" <= c < "\xa0":
            out.append(f"\\x{ord(c):02x}")
        else:
            out.append(f"\\u{ord(c):04x}" if c in "\u2028\u2029" else _slashed(c))
    return '"' + "".join(out) + '"'


def _slashed(c: str) -> str:
    return "\\" + c if c in '"\\' else c
