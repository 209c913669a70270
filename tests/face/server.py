"""Runs `pate` as often as it is asked, each time as a process of its own.

What takes time to import is imported once, and every run is a fork of that: a run has its own
standard streams, folder and exit code, as from a shell, in a third of the time.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import traceback
from importlib.metadata import entry_points

_SLOW = ("numpy", "pandas", "scipy.special", "scipy.optimize", "pyarrow.parquet", "pyarrow.csv",
         "pyarrow.json", "pyarrow.compute", "rich.console", "typer")  # fmt: skip


def serve(requests, answers):
    (command,) = entry_points(group="console_scripts", name="pate")
    main, face = command.load(), importlib.import_module("pate_cli")
    for name in _SLOW:
        importlib.import_module(name)
    for name in face.__all__:
        getattr(face, name)
    _begin(json.loads(requests.readline()))
    with contextlib.suppress(SystemExit):
        main()  # which imports what a run needs
    gc.freeze()  # or every run looks through all of it at its end
    for line in requests:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            _begin(asked)
            _end(main)
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def _begin(asked):
    os.chdir(asked["folder"])
    os.environ.update(asked["environment"])
    to_write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (name, flags) in enumerate(
        zip(asked["streams"], (os.O_RDONLY, to_write, to_write), strict=True)
    ):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["pate", *asked["words"]]


def _end(main):
    """Run and end at once: to take an interpreter down takes as long again."""
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1])) as asked, os.fdopen(int(sys.argv[2]), "w") as answered:
        serve(asked, answered)
