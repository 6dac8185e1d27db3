"""Prints the way of one deploy through the code: every file and function of the product, in the order it first runs.

A VPC and a subnet are deployed to the sandbox's AWS, from the PUT to both being Active, by the real control plane and
the real agent in this process. What is printed is traced, not written down: when the way grows, the counts grow.
The sandbox, the vendors' packages, housekeeping and what starts up before the PUT are not counted.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import structlog  # noqa: E402

from fractal_cloud.testing.in_process import InProcessClient  # noqa: E402
from fractal_cloud.testing.product import PATIENCE, Product  # noqa: E402
from fractal_sandbox import Sandbox, agent_env  # noqa: E402

PRODUCT: Final = str(ROOT / "src" / "fractal_cloud") + os.sep
# What stands in for a shell around control plane and agent is no part of a deploy.
NOT_COUNTED: Final = PRODUCT + "testing" + os.sep
COMPONENTS: Final = (
    {
        "id": "net",
        "type": "NetworkAndCompute.IaaS.AwsVpc",
        "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
    },
    {
        "id": "part",
        "type": "NetworkAndCompute.IaaS.AwsSubnet",
        "parameters": {"vpc": "net", "cidrBlock": "10.0.1.0/24"},
    },
)
AGENT: Final = "agent"
# Calls to the cloud run at the same time, so their functions are listed by file and line; all else is in order.
PARALLEL: Final = frozenset({"call", "cloud"})
# Runs by the clock, beside the deploy.
BACKGROUND: Final = "housekeeping.py"


class Step:
    """What runs from one request to the control plane to the next, by the kind of thread that it runs in."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.ran: dict[str, dict[CodeType, None]] = {}
        self.cloud_calls: list[str] = []

    def add(self, frame: FrameType) -> None:
        """Note that a function runs."""
        thread = threading.current_thread().name.rstrip("-0123456789")
        ran = self.ran.setdefault(thread if self.title == AGENT else "", {})
        if frame.f_code not in ran and not _is_background(frame):
            ran[frame.f_code] = None

    def functions(self) -> Iterator[CodeType]:
        """The functions that ran, in an order that is the same every time."""
        for thread in sorted(self.ran, key=lambda name: (name in PARALLEL, name != "MainThread", name)):
            ran = self.ran[thread]
            yield from sorted(ran, key=_place) if thread in PARALLEL else ran


class Walk:
    """The steps of the way, noted while inside it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._is_on = False
        self._lock = threading.Lock()

    def __enter__(self) -> Walk:
        self._is_on = True
        return self

    def __exit__(self, *_: object) -> None:
        self._is_on = False

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; `sys.setprofile` calls this for every call and return of a thread."""
        if not self._is_on or event not in {"call", "return"}:
            return
        code = frame.f_code
        with self._lock:
            if code is InProcessClient.send.__code__:
                request = frame.f_locals["given"][0]
                self.steps.append(Step(f"{request.method} {request.url.path}" if event == "call" else AGENT))
            elif event == "call" and code.co_name == "_make_api_call" and "botocore" in code.co_filename:
                self.steps[-1].cloud_calls.append(frame.f_locals["operation_name"])
            elif event == "call" and is_counted(code):
                self.steps[-1].add(frame)

    def functions(self) -> list[list[CodeType]]:
        """For each step the functions that run there for the first time."""
        seen: set[CodeType] = set()
        found = []
        for step in self.steps:
            found.append([code for code in dict.fromkeys(step.functions()) if code not in seen])
            seen.update(found[-1])
        return found


def _is_background(frame: FrameType) -> bool:
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_filename.endswith(BACKGROUND):
            return True
        caller = caller.f_back
    return False


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_filename, code.co_firstlineno


def is_counted(code: CodeType) -> bool:
    """Whether a piece of code is a named function of the product: no module, class body, lambda or comprehension."""
    path = code.co_filename
    is_function = bool(code.co_flags & 0x2) and not code.co_name.startswith("<")  # CO_NEWLOCALS: no module
    return is_function and path.startswith(PRODUCT) and not path.startswith(NOT_COUNTED)


def traced() -> tuple[Walk, dict[str, str]]:
    """The way of the deploy, and the status that each component has at its end."""
    walk = Walk()
    threading.setprofile(walk.profile)  # before anything starts: threads that run already are not reached
    sys.setprofile(walk.profile)
    try:
        with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
            os.environ |= agent_env(sandbox.url)
            with Product(Path(folder), ["aws"], forget=sandbox.reset) as product:
                with walk:
                    product.deploy("walk", *COMPONENTS)
                for _ in range(PATIENCE):
                    with walk:
                        product.cycle()
                    if set(statuses(product).values()) == {"Active"}:
                        break
                return walk, statuses(product)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def statuses(product: Product) -> dict[str, str]:
    """The status of each component, as the API shows it."""
    ids = [str(component["id"]) for component in COMPONENTS]
    return {each: str((product.find_component("walk", each) or {}).get("status")) for each in ids}


def lines(walk: Walk) -> Iterator[str]:
    """The way as text: a heading for each step, below it the files with the functions that run there first."""
    shown = [pair for pair in zip(walk.steps, walk.functions(), strict=True) if pair[1] or pair[0].cloud_calls]
    for number, (step, functions) in enumerate(shown, 1):
        yield f"\n{number}. {step.title}"
        if step.cloud_calls:
            yield f"   calls to the cloud: {', '.join(sorted(step.cloud_calls))}"
        for path, group in groupby(functions, key=lambda code: code.co_filename):
            yield f"   {path.removeprefix(PRODUCT)}"
            yield from (f"      {code.co_qualname.replace('.<locals>', '')}" for code in group)


def summary(walk: Walk) -> Iterator[str]:
    """The counts, by package and in all."""
    ran = [code for functions in walk.functions() for code in functions]
    functions = Counter(_package(code.co_filename) for code in ran)
    files = Counter(_package(path) for path in {code.co_filename for code in ran})
    yield f"\n{'package':<24}{'files':>6}{'functions':>11}"
    for package in sorted(functions):
        yield f"{package:<24}{files[package]:>6}{functions[package]:>11}"
    yield f"{'in all':<24}{files.total():>6}{functions.total():>11}"


def _package(path: str) -> str:
    parts = Path(path.removeprefix(PRODUCT)).parts
    is_split = parts[0] in {"control", "offers"} and len(parts) > 2
    return "/".join(parts[:2]) if is_split else parts[0]


def main() -> int:
    """Print the way; return 1 if a component is not Active at its end."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    walk, ends = traced()
    print("One deploy, from PUT to Active: each function stands where it runs first.")
    for line in (*lines(walk), *summary(walk)):
        print(line)
    for component, status in ends.items():
        print(f"{component}: {status}")
    return 0 if set(ends.values()) == {"Active"} else 1


if __name__ == "__main__":
    sys.exit(main())
