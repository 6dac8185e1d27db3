"""Checking N unchanged resources: the agent beside the SDK alone, a call per resource, and peers.

Everybody reads the same canned pages (Terraform's engine alone reads nothing), in processes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import peers
from benchmarks.calls import floor
from benchmarks.child import Child, child
from benchmarks.jobs import Job, Stage
from benchmarks.peers import NotHere, Spent, Terraform
from benchmarks.result import Bar, Result
from benchmarks.stock import VPC, Declared

SIZES: Final = (100, 1_000, 10_000)
ROUNDS: Final = 7
UNCHANGED: Final = 0.15
CHANGED: Final = 1.5
LATENCY: Final = 0.05
OF_PEERS: Final = 1_000
OF_ANSIBLE: Final = 100
JOB: Final = "check"


class Turns:
    """What one subject took, turn by turn."""

    def __init__(self, subject: Child) -> None:
        self._subject = subject
        self._cpu: list[float] = []
        self._wall: list[float] = []

    def run(self, command: str = "go") -> None:
        """One more turn."""
        spent = self._subject.ask(command)
        self._cpu.append(spent["cpu"])
        self._wall.append(spent["wall"])

    @property
    def cpu(self) -> float:
        """The median of the turns."""
        return median(self._cpu)

    def figures(self, calls: float) -> dict[str, float]:
        """As figures of a result."""
        return {"cloud calls": calls, "CPU s": self.cpu, "wall s": median(self._wall)}


def _memory(subject: Child) -> dict[str, float]:
    return {"memory MB": subject.ask("weigh")["resident"] / 1e6}


def _calls(stage: Stage, turns: Turns) -> int:
    stage.canned.calls()
    turns.run()
    return sum(stage.canned.calls().values())


def _side_by_side(stage: Stage, count: int, rounds: int) -> Iterator[Result]:
    """Agent and loops take turns, so that what disturbs the machine disturbs all."""
    work = str(stage.work(count))
    declared = Declared(VPC, count)
    stage.canned.stock(declared.lots)
    with ExitStack() as open_now:
        agent = open_now.enter_context(child("agent", work))
        bare, each = open_now.enter_context(child("bare")), open_now.enter_context(child("each"))
        quiet, loop, asking = Turns(agent), Turns(bare), Turns(each)
        calls = [_calls(stage, turns) for turns in (quiet, loop, asking)]
        for _ in range(rounds - 1):
            quiet.run()
            loop.run()
        weights = [_memory(one) for one in (agent, bare, each)]
        bars = [
            Bar("the fewest calls there are", calls[0], floor(declared), exact=True),
            Bar("CPU by the bare loop", quiet.cpu, loop.cpu, "s", most=UNCHANGED if count == max(SIZES) else None),
        ]
        if count == max(SIZES):
            bars += [
                Bar("CPU of a cycle", quiet.cpu, 1.0, "s", most=1.0),
                Bar("memory", weights[0]["memory MB"], 120, "MB", most=1.0),
                Bar("wall at 50 ms a call", _slow(stage, agent, declared), 2.0, "s", most=1.0),
            ]
        figures = quiet.figures(calls[0]) | weights[0]
        yield Result(JOB, "agent", count, figures, tuple(bars), f"median of {rounds} turns")
        yield Result(JOB, "boto3 paginator", count, loop.figures(calls[1]) | weights[1], note="the limit of the SDK")
        yield Result(JOB, "a call per resource", count, asking.figures(calls[2]) | weights[2], note="one turn, boto3")
        if count == max(SIZES):
            yield from _changing(stage, agent, bare, declared, rounds)


def _with_base(agent: Result, smallest: Result) -> Result:
    """An agent's result that says how much of its memory has nothing to do with how much it tends."""
    base = f"with {smallest.count:,} it holds {smallest.figures['memory MB']:.0f} MB: Python, the SDK and its models"
    return agent if agent is smallest else replace(agent, note=f"{agent.note}; {base}")


def _slow(stage: Stage, agent: Child, declared: Declared) -> float:
    stage.canned.stock(declared.lots, LATENCY)
    wall: float = agent.ask("go")["wall"]
    stage.canned.stock(declared.lots)
    return wall


def _changing(stage: Stage, agent: Child, bare: Child, declared: Declared, rounds: int) -> Iterator[Result]:
    """A person changes one in a hundred, on every page, before every turn; then all are judged anew."""
    changed, loop, judged, quiet = Turns(agent), Turns(bare), Turns(agent), Turns(bare)
    for _ in range(rounds):
        stage.canned.touch()
        changed.run("changed")
        loop.run("changed")
    stage.canned.stock(declared.lots)
    for one in (agent, bare):
        one.ask("changed")  # after an odd number of turns: the tags are back, and the overrides stay (S11)
    for _ in range(3):
        judged.run("judge")
        quiet.run()
    bar = Bar("CPU by the bare loop", changed.cpu, loop.cpu, "s", most=CHANGED)
    figures = changed.figures(floor(declared))
    yield Result(JOB, "agent, 1 % changed on every page", declared.count, figures, (bar,), "published in each turn")
    reported = Bar("CPU by the bare loop", judged.cpu, quiet.cpu, "s")
    figures = judged.figures(floor(declared))
    yield Result(JOB, "agent, all judged anew", declared.count, figures, (reported,), "as after a deploy")


def _peer(subject: str, few: int, many: int, run: Callable[[Path, int], Spent], agent: Result, most: float) -> Result:
    """One peer with few resources and with many: as it is run, with its start, and what each further resource takes.

    Per resource, the agent may take ``most`` of the whole process. The rest, without the start, is reported beside it.
    """
    with TemporaryDirectory() as folder:
        try:
            start, spent = run(Path(folder), few), run(Path(folder), many)
        except NotHere as reason:
            return Result(JOB, subject, many, note=str(reason))
    ours = agent.figures["CPU s"] / agent.count * 1e6
    whole, further = spent.cpu / many * 1e6, (spent.cpu - start.cpu) / (many - few) * 1e6
    about = f"the agent's CPU per resource ({agent.count:,})"
    bars = (
        Bar(f"{about} by its whole process'", ours, whole, "µs", most=most),
        Bar(f"{about} by its own, without its start", ours, further, "µs"),
    )
    note = f"{start.cpu:.2f} s of CPU with {few:,} {'resource' if few == 1 else 'resources'}: its start"
    return Result(JOB, subject, many, spent.figures(), bars, note)


def _custodian(stage: Stage, folder: Path, count: int) -> Spent:
    stage.canned.stock(Declared(VPC, count).lots)
    return min((peers.custodian(folder) for _ in range(2)), key=lambda spent: spent.cpu)


def _ansible(stage: Stage, folder: Path, count: int) -> Spent:
    stage.canned.stock(Declared(VPC, OF_ANSIBLE).lots)
    return peers.ansible(folder, count, check=True)


def _terraform(folder: Path, count: int) -> Spent:
    engine = Terraform(folder, count)
    engine.create(concurrency=16)
    return engine.check()


def measure(stage: Stage, rounds: int = ROUNDS) -> Iterator[Result]:
    """All subjects at all sizes they are run at."""
    agents: dict[int, Result] = {}
    for count in SIZES:
        for result in _side_by_side(stage, count, rounds):
            first = agents.setdefault(count, result)
            yield _with_base(result, agents[SIZES[0]]) if result is first else result
    custodian, ansible = partial(_custodian, stage), partial(_ansible, stage)
    yield _peer(f"Cloud Custodian ({peers.CUSTODIAN})", 1, OF_PEERS, custodian, agents[OF_PEERS], 1 / 20)
    yield _peer(peers.terraform_subject(), 1, OF_PEERS, _terraform, agents[OF_PEERS], 1 / 20)
    yield _peer(f"Ansible ({peers.ANSIBLE}, amazon.aws)", 0, OF_ANSIBLE, ansible, agents[OF_ANSIBLE], 1 / 5000)


JOBS: Final = (Job(JOB, "checking N resources of which nothing changed", measure, 40),)
