"""Docstrings and comments of Python files keep the limits that internal/floors/prose_test.go sets for comments of Go."""

import ast
import collections
import io
import pathlib
import re
import statistics
import tokenize
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ("hooks/python", "fixtures")
LIMITS = (ROOT / "internal" / "floors" / "prose_test.go").read_text(encoding="utf-8")


def limit(name):
    """Return a number of the Go test."""
    return float(re.search(rf"\n\t{name}\s+= ([\d.]+)", LIMITS)[1])


PRONOUNS = frozenset(re.search(r'\nvar pronouns = wordsOf\("([^"]*)"\)', LIMITS)[1].split())
BANNED = "|".join(re.findall("`([^`]*)`", re.search(r"\nvar bannedTurns = .*?\n}, ", LIMITS, re.DOTALL)[0]))
QUOTED = re.compile('"[^"]*"|`[^`]*`')
WORD = re.compile("[A-Za-z][A-Za-z'’-]*")


def docstrings(tree):
    """Yield line and text of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text and any(isinstance(d, ast.Call) and ast.unparse(d.func) == "fault" for d in getattr(node, "decorator_list", ())):
                text = text.partition("\n")[2]  # the first line describes the fault, and stands in tables of measurements
            if text:
                yield node.body[0].lineno, text


def comments(source):
    """Yield line and text of each comment; lines of comments in a row are one comment."""
    first = last = 0
    texts = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        line, own = token.start[0], not token.line[: token.start[1]].strip()
        if texts and not (own and line == last + 1):
            yield first, " ".join(texts)
            texts = []
        first, last = first if texts else line, line if own else 0
        texts.append(token.string.lstrip("# "))
    if texts:
        yield first, " ".join(texts)


def passages(source):
    """Return line and text of docstrings and comments, without quoted words."""
    every = [*docstrings(ast.parse(source)), *comments(source)]
    return [(line, QUOTED.sub(" ", " ".join(text.split()))) for line, text in sorted(every)]


def share(words):
    """Return the share of pronouns."""
    return sum(word.lower() in PRONOUNS for word in words) / len(words)


def ninetieth(shares):
    """Return the 90th percentile, as the Go test does."""
    return sorted(shares, reverse=True)[len(shares) - 1 - int(0.9 * (len(shares) - 1))]


class Prose(unittest.TestCase):
    """Pronouns and turns of phrase that make a comment hard to read."""

    def files(self):
        """Yield the name and source of each Python file."""
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*.py")):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")

    def test_no_banned_turn(self):
        found = [
            f"{name}:{line}: {turn[0]!r} in: {text}"
            for name, source in self.files()
            for line, text in passages(source)
            for turn in re.finditer(BANNED, text)
        ]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_shares_of_pronouns(self):
        shares = collections.defaultdict(list)
        for name, source in self.files():
            for line, text in passages(source):
                if len(words := WORD.findall(text)) >= limit("fewestWords"):
                    shares[name.parent].append((share(words), f"{name}:{line}: {text}"))
        self.assertGreater(sum(map(len, shares.values())), 500)
        for folder, every in shares.items():
            numbers = [number for number, _ in every]
            if len(numbers) < limit("fewestComments"):
                continue
            worst = "\n".join(f"{number:.2f} {text}" for number, text in sorted(every, reverse=True)[: 3 + len(every) // 4])
            with self.subTest(folder=str(folder)):
                self.assertLessEqual(statistics.median(numbers), limit("mostAtMedian"), f"median\n{worst}")
                self.assertLessEqual(ninetieth(numbers), limit("mostAtNinetyth"), f"90th percentile\n{worst}")

    def test_the_words_are_those_of_the_go_test(self):
        self.assertIn("another", PRONOUNS)
        self.assertTrue(re.search(BANNED, "the list of which one is read"))
        self.assertFalse(re.search(BANNED, "the list that one reader reads"))

    def test_passages(self):
        source = '"""A `quoted which` text."""\n# one\n# two\nx = 1  # three\n\n\n@fault("", M)\ndef f(p):\n    """First.\n\n    Rest."""\n'
        self.assertEqual(passages(source), [(1, "A   text."), (2, "one two"), (4, "three"), (9, "Rest.")])


if __name__ == "__main__":
    unittest.main()
