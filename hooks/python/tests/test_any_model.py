"""docs/reference.md: the blocks run in a folder of their own, and print the lines of the page."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from common import ROOT, TestCase
from test_docs import tracediff

PAGE = ROOT / "docs" / "reference.md"


def fences():
    """Return the console blocks of the page: commands, each with exit status and printed lines."""
    for head, text in re.findall(r"^```console exit ([\d ]+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        statuses = [int(n) for n in head.split()]
        commands = re.split(r"^\$ ", text, flags=re.M)[1:]
        assert len(statuses) == len(commands), text
        for status, one in zip(statuses, commands, strict=True):
            command, _, output = one.partition("\n")
            yield command, status, output.splitlines()


def missing(got, want):
    """Return the first line of `want` that is missing from `got` in order; "..." stands for any lines."""
    at, free = 0, False
    for line in want:
        if line == "...":
            free = True
            continue
        same = [i for i in range(at, len(got)) if got[i].split() == line.split()]
        if not same or (not free and same[0] != at):
            return line
        at, free = same[0] + 1, False
    return None if free or at == len(got) else got[at]


class Page(TestCase):
    """A newcomer's way from a checkpoint to the first divergence."""

    def test_every_block(self):
        (self.folder / "fixtures").symlink_to(ROOT / "fixtures")
        binaries = self.folder / "bin"
        binaries.mkdir()
        (binaries / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (binaries / "python").chmod(0o755)
        (binaries / "tracediff").symlink_to(tracediff())
        env = os.environ | {
            "PATH": f"{binaries}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "hooks" / "python"), "CI": "",
            "HF_MODULES_CACHE": str(self.folder / "modules"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        ran = 0
        for command, status, want in fences():
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=env, capture_output=True, text=True, check=False
            )
            with self.subTest(command):
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertIsNone(missing(done.stdout.splitlines(), want), done.stdout)
            ran += 1
        self.assertEqual(ran, 12)

    def test_what_it_shows_of_the_port_is_in_the_port(self):
        text = (ROOT / "fixtures" / "anymodel" / "port.py").read_text()
        self.assertIn("tracediff.recording(port, out, checkpoint=folder):", text)
        self.assertIn("tracediff.recording(port, out, checkpoint=folder):", PAGE.read_text())
        for path in re.findall(r"\]\(\.\./([^)]+)\)", PAGE.read_text()):
            self.assertTrue((ROOT / path).exists(), path)

    def test_the_extra_that_it_installs(self):
        import tomllib

        with pathlib.Path(ROOT / "hooks" / "python" / "pyproject.toml").open("rb") as file:
            extras = tomllib.load(file)["project"]["optional-dependencies"]
        self.assertEqual({re.split("[>=]", one)[0] for one in extras["hf"]}, {"torch", "transformers"})


if __name__ == "__main__":
    unittest.main()
