"""Values as debug mode writes them: each fits in a line, and a line is whole."""


def digits(text: str) -> bool:
    """Report a number as a name has it, short enough for other languages' integers."""
    return text.isascii() and text.isdecimal() and len(text) <= 9


def number(x: float) -> str:
    """Return six digits, as C's %.6g, and "-" for NaN: there is no such number."""
    return "-" if x != x else f"{x:.6g}"


def word(text: str) -> str:
    """Return a text that awk can split a line around: spaces are escaped too."""
    return _escaped(text, " ", "")


def quoted(text: str) -> str:
    """Return a text in double quotes."""
    return f'"{_escaped(text, "", chr(34))}"'


def _escaped(text: str, coded: str, slashed: str) -> str:
    """Write control characters as \\xNN: no name and no token can end a line or talk to the terminal."""
    out = []
    for c in text:
        if c < " " or "\x7f" <= c < "\xa0" or c in coded:
            out.append(f"\\x{ord(c):02x}")
        else:
            out.append("\\" + c if c == "\\" or c in slashed else c)
    return "".join(out)
