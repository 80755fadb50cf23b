"""Puts the program into the wheel, so that one installation has the recorder and the command `tracediff`.

TRACEDIFF_PROGRAM is the file of the program; TRACEDIFF_PLATFORM is its platform in Go's form, such as linux/amd64.
Without them, as in a checkout or a source archive, the wheel has only the recorder and fits every platform.
"""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Tags by platform. On Linux the program is static and needs only the kernel: it runs with glibc (manylinux) and with
# musl. Go 1.26 needs macOS 12.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}


class ProgramHook(BuildHookInterface):
    """The build hook of hatchling."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Add the program as a script, which installers put next to python, and set the platform of the wheel."""
        program = os.environ.get("TRACEDIFF_PROGRAM")
        if not program:
            return
        platform = os.environ["TRACEDIFF_PLATFORM"]
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS[platform]
        build_data["shared_scripts"][program] = "tracediff.exe" if platform.startswith("windows/") else "tracediff"
