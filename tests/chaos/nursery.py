"""Starts the product's programs quickly: imports them once, and becomes one of them in a fresh process when asked to.

A line of JSON on its input is one program to start, a line on its output that one's process. What is started shares
nothing with any other but the code that was read; `fractal …` in a shell comes to the same.

It runs with libfaketime where that is installed: each process has a file of its own that says how wrong its clock is.
"""

from __future__ import annotations

import functools
import json
import os
import select
import signal
import sys
import time
from typing import Any, SupportsIndex


def main() -> None:
    """Start what is asked for, until nobody asks any more."""
    if os.environ.get("LD_PRELOAD"):
        time.sleep = _sleep  # before anybody takes it from there
    _read_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(asked)
        print(pid, flush=True)


def _sleep(seconds: float | SupportsIndex, /) -> None:
    """libfaketime 0.9.10 takes the steady moments that Python sleeps until for the wall clock's: sleep for a time."""
    select.select([], [], [], float(seconds))


def _read_everything() -> None:
    from importlib import import_module

    from botocore.loaders import JSONFileLoader

    load_file = JSONFileLoader.load_file

    @functools.cache
    def load_once(path: str) -> Any:
        return load_file(JSONFileLoader(), path)

    loader: Any = JSONFileLoader
    loader.load_file = lambda _, path: load_once(path)
    for name in (
        *("fractal_cloud.cli", "fractal_cloud.cli.app", "fractal_cloud.cli.programs", "fractal_cloud.agent.main"),
        *("fractal_cloud.control.serve", "fractal_sandbox.server", "psycopg", "boto3"),
        *("moto.ec2.models", "moto.ec2.responses", "moto.sts.responses"),
    ):
        import_module(name)
    from fractal_cloud.offers.registry import installed

    installed()
    import boto3

    for service in ("ec2", "sts"):
        boto3.client(service, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")


def _become(asked: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for end, to in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(end, to)
    os.environ.update(asked["env"])
    sys.argv = ["fractal", *asked["arguments"]]
    from fractal_cloud.cli import main as fractal

    code = 1
    try:
        fractal()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing to tidy up: quicker than taking all modules apart
