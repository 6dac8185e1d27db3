"""A cloud of canned pages: just enough of AWS to list what the benchmarks declare, and to create VPCs.

``python -m benchmarks.canned`` serves on a free port of the loopback, which it prints, until its input ends. Pages are
rendered at their first use and then only sent, so that what is measured is the agent. What it holds is set, and
what was asked of it is returned, below ``/_canned``:

    POST /_canned/stock      {"lots": [[kind, count, perLiveSystem], …], "latency": seconds}; forgets all calls
    POST /_canned/calls      the calls by operation since the last time this was asked
    POST /_canned/touch      a person takes managed-by off every hundredth VPC, or puts it back the next time
    POST /_canned/moments    when the first and the last writing call came, in seconds since the epoch
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from benchmarks import pages
from benchmarks.stock import ACCOUNT, BUCKET, CLUSTER, DATABASE, GROUP, INSTANCE, SERVICE, SUBNET, VPC, Lot

Parameters = Mapping[str, Any]

_EC2: Final[Mapping[str, tuple[str, str]]] = {
    "DescribeVpcs": (VPC, "vpcSet"),
    "DescribeSubnets": (SUBNET, "subnetSet"),
    "DescribeSecurityGroups": (GROUP, "securityGroupInfo"),
    "DescribeInstances": (INSTANCE, "reservationSet"),
}
_RDS: Final = "http://rds.amazonaws.com/doc/2014-10-31/"
_STS: Final = "https://sts.amazonaws.com/doc/2011-06-15/"


class Unknown(Exception):
    """An operation that nobody canned."""


class Cloud:
    """What there is, and what was asked."""

    def __init__(self) -> None:
        self.latency = 0.0
        self.calls: Counter[str] = Counter()
        self.moments: list[float] = []
        self._lots: dict[str, Lot] = {}
        self._items: dict[str, list[str]] = {}
        self._places: dict[str, int] = {}
        self._pages: dict[tuple[str, int, int], bytes] = {}
        self._json: Mapping[str, Callable[[Parameters], str]] = {
            "ListClusters": self._list_clusters,
            "DescribeClusters": self._describe_clusters,
            "ListServices": self._list_services,
            "DescribeServices": self._describe_services,
            "GetResources": self._tags_of_buckets,
        }

    def stock(self, lots: list[Lot], latency: float) -> None:
        """Hold these things and no others."""
        self.latency = latency
        self.calls.clear()
        self.moments.clear()
        self._places.clear()
        self._pages.clear()
        self._lots = {lot.kind: lot for lot in lots}
        self._items = {lot.kind: [pages.RENDER[lot.kind](lot, number) for number in range(lot.count)] for lot in lots}

    def touch(self) -> None:
        """Change one VPC in a hundred, on every page."""
        tag = "<item><key>managed-by</key><value>fractal-cloud</value></item>"
        items = self._items[VPC]
        for number in range(0, len(items), 100):
            item = items[number]
            items[number] = item.replace(tag, "") if tag in item else item.replace("<tagSet>", f"<tagSet>{tag}")
        self._pages.clear()

    def answer(self, target: str, path: str, body: bytes) -> bytes:
        """The answer to one call."""
        if target:
            operation = target.rpartition(".")[2]
            return self._counted(operation, json.loads(body))
        asked = dict(parse_qsl(body.decode() or urlsplit(path).query))
        return self._counted(asked.get("Action") or asked.get("x-id", "ListBuckets"), asked)

    def _counted(self, operation: str, asked: Parameters) -> bytes:
        self.calls[operation] += 1
        if operation in self._json:
            return self._json[operation](asked).encode()
        if operation in _EC2:
            return self._ec2_page(operation, asked)
        match operation:
            case "CreateVpc":
                self.moments.append(time.time())
                return self._create_vpc(asked)
            case "DescribeTags":
                found = self._found(asked["Filter.1.Value.1"])
                return pages.ec2_page(operation, "tagSet", pages.tag_items(found), "").encode()
            case "DescribeVpcAttribute":
                return self._vpc_attribute(asked)
            case "ModifyVpcAttribute":
                return pages.ec2_answer(operation, "<return>true</return>").encode()
            case "DescribeDBInstances":
                return self._databases(asked)
            case "ListBuckets":
                return self._buckets(asked)
            case "GetCallerIdentity":
                identity = f"<Arn>arn:aws:iam::{ACCOUNT}:user/bench</Arn><UserId>A</UserId><Account>{ACCOUNT}</Account>"
                return pages.query_answer(operation, _STS, identity).encode()
        raise Unknown(operation)

    def _slice(self, kind: str, start: int, size: int) -> tuple[list[str], str]:
        items = self._items.get(kind, [])
        end = start + size
        return items[start:end], str(end) if end < len(items) else ""

    def _rendered(self, operation: str, start: int, size: int, render: Callable[[], str]) -> bytes:
        key = (operation, start, size)
        if key not in self._pages:
            self._pages[key] = render().encode()
        return self._pages[key]

    def _ec2_page(self, operation: str, asked: Parameters) -> bytes:
        kind, listed = _EC2[operation]
        some = self._asked_for(kind, asked)
        if some is not None:
            return pages.ec2_page(operation, listed, some, "").encode()
        start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 1000)
        items, following = self._slice(kind, start, size)
        return self._rendered(operation, start, size, lambda: pages.ec2_page(operation, listed, items, following))

    def _asked_for(self, kind: str, asked: Parameters) -> list[str] | None:
        """The one VPC that is asked for by its id or its name, if one is."""
        if kind != VPC:
            return None
        wanted = asked.get("VpcId.1")
        for number in range(1, 4):
            if asked.get(f"Filter.{number}.Name") == "tag:Name":
                wanted = asked[f"Filter.{number}.Value.1"]
        return None if wanted is None else self._found(wanted)

    def _found(self, wanted: str) -> list[str]:
        """The VPC of one id or name; both are noted when first asked for."""
        items = self._items.setdefault(VPC, [])
        for item in items[len(self._places) // 2 :]:
            number = len(self._places) // 2
            self._places.update(dict.fromkeys(pages.names_of(item), number))
        return [items[self._places[wanted]]] if wanted in self._places else []

    def _vpc_attribute(self, asked: Parameters) -> bytes:
        name = asked["Attribute"]
        attribute = f"<vpcId>{asked['VpcId']}</vpcId><{name}><value>true</value></{name}>"
        return pages.ec2_answer("DescribeVpcAttribute", attribute).encode()

    def _create_vpc(self, asked: Parameters) -> bytes:
        known = self._items.setdefault(VPC, [])
        spelled = "TagSpecification.1.Tag."
        keys = [name.removesuffix(".Key") for name in asked if name.startswith(spelled) and name.endswith(".Key")]
        tags = {asked[f"{name}.Key"]: asked[f"{name}.Value"] for name in keys}
        item = pages.vpc(pages.id_of("vpc", len(known)), asked["CidrBlock"], tags)
        known.append(item)
        self._pages.clear()
        return pages.ec2_answer("CreateVpc", f"<vpc>{item}</vpc>").encode()

    def _databases(self, asked: Parameters) -> bytes:
        start, size = int(asked.get("Marker") or 0), int(asked.get("MaxRecords") or 100)
        items, following = self._slice(DATABASE, start, size)
        marker = f"<Marker>{following}</Marker>" if following else ""
        body = f"<DBInstances>{''.join(items)}</DBInstances>{marker}"
        operation = "DescribeDBInstances"
        return self._rendered(operation, start, size, lambda: pages.query_answer(operation, _RDS, body))

    def _buckets(self, asked: Parameters) -> bytes:
        start, size = int(asked.get("continuation-token") or 0), int(asked.get("max-buckets") or 10_000)
        items, following = self._slice(BUCKET, start, size)
        token = f"<ContinuationToken>{following}</ContinuationToken>" if following else ""
        body = f"<ListAllMyBucketsResult><Buckets>{''.join(items)}</Buckets>{token}</ListAllMyBucketsResult>"
        return body.encode()

    def _tags_of_buckets(self, asked: Parameters) -> str:
        start, size = int(asked.get("PaginationToken") or 0), int(asked.get("ResourcesPerPage") or 50)
        _, following = self._slice(BUCKET, start, size)
        lot = self._lots[BUCKET]
        found = [pages.bucket_tags(lot, number) for number in range(start, min(start + size, lot.count))]
        return pages.json_page("ResourceTagMappingList", found, "PaginationToken", following)

    def _list_clusters(self, asked: Parameters) -> str:
        start, size = int(asked.get("nextToken") or 0), int(asked.get("maxResults") or 100)
        items, following = self._slice(CLUSTER, start, size)
        arns = [json.loads(item)["clusterArn"] for item in items]
        return pages.json_page("clusterArns", pages.as_json(arns), "nextToken", following)

    def _describe_clusters(self, asked: Parameters) -> str:
        return pages.json_page("clusters", self._named(CLUSTER, asked["clusters"]), "", "")

    def _list_services(self, asked: Parameters) -> str:
        lot = self._lots.get(SERVICE, Lot(SERVICE, 0, 1))
        cluster = str(asked["cluster"]).rpartition("/")[2]
        of_cluster = int(cluster.rpartition("-")[2])
        first, last = of_cluster * lot.per_live_system, min((of_cluster + 1) * lot.per_live_system, lot.count)
        start, size = int(asked.get("nextToken") or first), int(asked.get("maxResults") or 10)
        end = min(start + size, last)
        arns = [pages.service_arn(lot, number, cluster) for number in range(start, end)]
        return pages.json_page("serviceArns", pages.as_json(arns), "nextToken", str(end) if end < last else "")

    def _describe_services(self, asked: Parameters) -> str:
        if len(asked["services"]) > 10:
            raise Unknown("DescribeServices of more than 10")
        return pages.json_page("services", self._named(SERVICE, asked["services"]), "", "")

    def _named(self, kind: str, arns: list[str]) -> list[str]:
        return [self._items[kind][int(arn.rpartition("-")[2])] for arn in arns]


class Connection(asyncio.Protocol):
    """One client: requests come one after the other, each answered after the cloud's latency."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = rest[length:]
        self._answer_request(first.split(" ")[1], headers, rest[:length])

    def _answer_request(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        if path.startswith("/_canned/"):
            self._send(200, _control(self._cloud, path, body))
            return
        try:
            status, answer = 200, self._cloud.answer(headers.get("x-amz-target", ""), path, body)
        except Unknown as unknown:
            status, answer = 400, _error(str(unknown), is_json="x-amz-target" in headers)
        if self._cloud.latency:
            asyncio.get_running_loop().call_later(self._cloud.latency, self._send, status, answer)
        else:
            self._send(status, answer)

    def _send(self, status: int, body: bytes) -> None:
        assert self._transport is not None
        head = f"HTTP/1.1 {status} OK\r\nContent-Length: {len(body)}\r\nx-amzn-RequestId: canned\r\n\r\n"
        self._transport.write(head.encode() + body)


def _error(text: str, *, is_json: bool) -> bytes:
    if is_json:
        return json.dumps({"__type": "InvalidAction", "message": text}).encode()
    error = f"<Error><Code>InvalidAction</Code><Message>{text}</Message></Error>"
    return f"<Response><Errors>{error}</Errors><RequestID>canned</RequestID></Response>".encode()


def _control(cloud: Cloud, path: str, body: bytes) -> bytes:
    if path == "/_canned/stock":
        wanted = json.loads(body)
        cloud.stock([Lot(*lot) for lot in wanted["lots"]], wanted["latency"])
        return b"{}"
    if path == "/_canned/touch":
        cloud.touch()
        return b"{}"
    if path == "/_canned/moments":
        return json.dumps({"first": min(cloud.moments, default=0.0), "last": max(cloud.moments, default=0.0)}).encode()
    calls, cloud.calls = cloud.calls, Counter()
    return json.dumps(calls).encode()


async def serve() -> None:
    """Serve until standard input ends: the server never outlives who started it."""
    cloud = Cloud()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(cloud), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
