"""The benchmarks themselves: that the canned cloud is understood, and that a missed bar is seen."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import boto3
import pytest

from benchmarks.__main__ import limited, run
from benchmarks.calls import floor, steady_calls
from benchmarks.jobs import Job, Stage, all_jobs
from benchmarks.peers import NotHere, spend
from benchmarks.report import plots, section
from benchmarks.result import Bar, Result
from benchmarks.rig import canned_cloud
from benchmarks.stock import SERVICE, SUBNET, VPC, Declared
from benchmarks.table import table


def test_a_steady_cycle_of_a_few_things_makes_the_fewest_calls_there_are() -> None:
    with canned_cloud() as canned:
        for kind in (VPC, SUBNET, SERVICE):
            declared = Declared(kind, 120)
            assert steady_calls(canned, declared) == floor(declared)


@pytest.mark.parametrize(
    ("bar", "kept"),
    [
        (Bar("fewer calls than the floor cannot be right", 9, 10, exact=True), False),
        (Bar("nothing was published", 0, 0, exact=True), True),
        (Bar("something was published", 1, 0, exact=True), False),
        (Bar("below the bar", 1.4, 1.0, most=1.5), True),
        (Bar("above the bar", 1.6, 1.0, most=1.5), False),
        (Bar("as many times as asked for", 1.8, 1.0, least=1.8), True),
        (Bar("fewer times than asked for", 1.7, 1.0, least=1.8), False),
        (Bar("above, but only reported", 1.6, 1.0), True),
    ],
    ids=lambda value: value.what if isinstance(value, Bar) else "",
)
def test_a_bar_is_kept_or_missed_as_its_result_says(bar: Bar, *, kept: bool) -> None:
    result = Result("job", "agent", 1, {"CPU s": bar.measured}, (Bar("another one", 1, 1, exact=True), bar))
    assert result.is_kept is kept
    assert ("MISSED" in table([result])) is not kept
    assert result.to_json()["kept"] is kept


def test_every_job_has_a_name_of_its_own() -> None:
    names = [job.name for job in all_jobs()]
    assert len(names) == len(set(names))
    assert {"calls", "check", "memory"} <= set(names)


def test_a_person_in_the_canned_cloud_changes_one_in_a_hundred_and_back() -> None:
    with canned_cloud() as canned:
        canned.stock(Declared(VPC, 250).lots)
        tags = {"Key": "managed-by", "Value": "fractal-cloud"}
        without = [[], ["net-00000", "net-00100", "net-00200"], []]
        for expected in without:
            found = boto3.client("ec2").describe_vpcs(MaxResults=1000)["Vpcs"]
            named = {next(tag["Value"] for tag in vpc["Tags"] if tag["Key"] == "Name"): vpc for vpc in found}
            assert [name for name, vpc in named.items() if tags not in vpc["Tags"]] == expected
            canned.touch()


def test_one_thing_of_the_canned_cloud_is_found_by_its_id_and_by_its_name() -> None:
    with canned_cloud() as canned:
        canned.stock(Declared(VPC, 5).lots)
        client = boto3.client("ec2")
        [by_name] = client.describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["net-00003"]}])["Vpcs"]
        assert client.describe_vpcs(VpcIds=[by_name["VpcId"]])["Vpcs"] == [by_name]
        assert client.describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["nobody"]}])["Vpcs"] == []


def test_a_job_that_fails_or_hangs_is_reported_as_missed_and_leaves_an_empty_stage() -> None:
    def fails(stage: Stage) -> Iterator[Result]:
        (stage.folder / "left").touch()
        yield Result("fails", "agent", 1)
        raise ValueError("no such thing")

    def hangs(_: Stage) -> Iterator[Result]:
        with limited(0.05):
            time.sleep(60)
        yield from ()

    with Stage() as stage:
        shown, failed = run(Job("fails", "a job", fails), stage, time.monotonic())
        (hung,) = run(Job("hangs", "a job", hangs), stage, time.monotonic())
        assert not list(stage.folder.iterdir())
    assert shown.is_kept
    assert not failed.is_kept
    assert "no such thing" in failed.note
    assert not hung.is_kept
    assert "given up" in hung.note


def test_a_peer_that_is_not_here_or_fails_is_reported_and_not_measured(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="ended with 3: no such thing"):
        spend([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"], tmp_path)
    spent = spend([sys.executable, "-c", "sum(range(10**6))"], tmp_path)
    assert spent.cpu > 0
    assert spent.peak > 1


def test_the_page_lists_every_result_and_what_was_missed() -> None:
    bar = Bar("CPU by the bare loop", 2.0, 1.0, "s", most=1.5)
    results = [
        Result("check", "agent", 100, {"CPU s": 0.001}, (bar,)),
        Result("check", "a peer", 100, note="not on this machine"),
        Result("check", "boto3", 100, {"CPU s": 0.1, "cloud calls": 1}),
    ]
    machine = dict.fromkeys(("python", "boto3", "system", "cores", "load", "at"), "x")
    job: dict[str, Any] = {"job": "check", "title": "checking", "machine": machine, "seconds": 1.0}
    job["results"] = [result.to_json() for result in results]
    page = "\n".join(section(job))
    assert "CPU by the bare loop: 2 (≤ 1.5) **missed**" in page
    assert "not on this machine" in page
    [(name, _, drawing)] = plots({"check": job})
    assert name == "check-cpu"
    marks = [one.text for one in fromstring(drawing).iter() if one.text and one.text.endswith(" µs")]
    assert "10 µs" in marks
    assert "1,000 µs" in marks or "1e+03 µs" in marks
