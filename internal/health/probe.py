"""Say what this Python has, one JSON object a line. The fast part comes first: importing torch takes seconds, and may
fail or never end. Written for every Python 3, since what is asked may be an old one."""

import json
import platform
import sys


def say(facts):
    print("tracediff-doctor " + json.dumps(facts))
    sys.stdout.flush()


def version(name):
    try:
        from importlib import metadata

        return metadata.version(name)
    except Exception:  # not installed, or a Python too old to be asked
        return None


def accelerators(torch):
    found = []
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            memory = torch.cuda.get_device_properties(i).total_memory
            found.append("%s, %.0f GiB" % (torch.cuda.get_device_name(i), memory / 2.0**30))
    if hasattr(torch.backends, "mps") and torch.backends.mps.is_available():
        found.append("mps")
    return found


def main(names):
    say({"version": platform.python_version(), "executable": sys.executable})
    packages = dict((name, version(name)) for name in names)
    say({"packages": packages})
    if packages.get("torch") is None:
        return
    try:
        import torch

        say({"accelerators": accelerators(torch), "threads": torch.get_num_threads()})
    except BaseException as error:
        say({"error": "%s: %s" % (type(error).__name__, error)})


main(sys.argv[1:])
