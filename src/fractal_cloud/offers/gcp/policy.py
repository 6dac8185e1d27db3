"""The rights the agent needs in a project, as custom IAM roles for gcloud, and how they are bound.

No role holds the right to act as a service account: it is bound on the accounts that are named, one by one. What links
need is bound with a condition on the buckets they may lead to, and where accounts and keys are made, in a project of
its own: a right to make HMAC keys counts for every account of its project (A7).

Google's IAM knows no condition on the labels of these types. That the agent changes only what is managed, its own
preconditions make sure of where Google has them: `docs/providers/gcp.md` says where. What each type needs stands on its
offer.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import yaml

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.gcp.link_storage import LINK_PROJECT, ROLES
from fractal_cloud.offers.policy import PLAIN, PolicyOptions, every_match, flag_of
from fractal_cloud.offers.registry import installed

PROJECT: Final = "resourcemanager.projects.get"
# What lets somebody run something as a service account: iam.serviceAccounts.actAs, and reading it.
USE_ACCOUNT: Final = "roles/iam.serviceAccountUser"
_OF_BUCKETS: Final = ("storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy")
_OF_ACCOUNTS: Final = (
    *(f"iam.serviceAccounts.{verb}" for verb in ("create", "delete", "get", "list")),
    *(f"storage.hmacKeys.{verb}" for verb in ("create", "delete", "list", "update")),
)
_ACCOUNT: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z0-9-]+(\.[a-z0-9-]+)*\.iam\.gserviceaccount\.com")
# They have the role Editor, unless somebody took it away.
_DEFAULT_ACCOUNTS: Final = re.compile(
    r"\d+-compute@developer\.gserviceaccount\.com|[^@]+@(appspot|cloudservices)\.gserviceaccount\.com"
)
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{2,221}\*?")
_PROJECT_ID: Final = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_BIND: Final = "gcloud projects add-iam-policy-binding"
_BIND_ACCOUNT: Final = "gcloud iam service-accounts add-iam-policy-binding"
_MOST_BUCKETS: Final = 8  # Google takes a condition of twelve logical operators


@dataclass(frozen=True, slots=True)
class Document:
    """One file for gcloud, and the commands that use it; ``FILE`` stands for its name in them."""

    content: dict[str, object]
    name: str
    commands: tuple[str, ...]


def policy(options: PolicyOptions = PLAIN) -> str:
    """Roles and conditions in the form gcloud takes, with the commands that put them in force above them."""
    options.check("gcp", ("with_links", "document", "service_accounts", "buckets", "link_project"))
    _check(options)
    made = documents(options)
    if options.document is not None:
        if not 1 <= options.document <= len(made):
            raise PolicyOptionError(f"there is no document {options.document}: there are {len(made)}, counted from 1")
        return _dumped(made[options.document - 1])
    return _commands(options, made) + "---\n".join(map(_dumped, made))


def documents(options: PolicyOptions = PLAIN) -> list[Document]:
    """What is printed: the agent's role, and those of links with their condition."""
    permissions = {PROJECT, *installed("gcp").rights("gcp")}
    bound = f"{_BIND} PROJECT --member=AGENT --role=projects/PROJECT/roles/"
    agent = Document(
        _role("Fractal Cloud agent", "Reads, and changes what it manages: docs/providers/gcp.md", permissions),
        "role.yaml",
        (
            "gcloud iam roles create fractalCloudAgent --project=PROJECT --file=FILE",
            f"{bound}fractalCloudAgent --condition=None",
        ),
    )
    if not options.with_links:
        return [agent]
    home = shlex.quote(options.link_project)
    buckets = Document(
        _role("Fractal Cloud links", "Opens buckets to what links lead to them", _OF_BUCKETS),
        "links.yaml",
        ("gcloud iam roles create fractalCloudLinks --project=PROJECT --file=FILE",),
    )
    condition = Document(
        {
            "title": "fractal-cloud-links",
            "description": "only these buckets, and only roles for their objects",
            "expression": _condition(options.buckets),
        },
        "condition.yaml",
        (f"{bound}fractalCloudLinks --condition-from-file=FILE",),
    )
    accounts = Document(
        _role("Fractal Cloud links: accounts", "Makes the accounts and keys of links", _OF_ACCOUNTS),
        "accounts.yaml",
        (
            f"gcloud iam roles create fractalCloudAccounts --project={home} --file=FILE",
            f"{_BIND} {home} --member=AGENT --role=projects/{home}/roles/fractalCloudAccounts --condition=None",
        ),
    )
    return [agent, buckets, condition, accounts]


def _check(options: PolicyOptions) -> None:
    for account in options.service_accounts:
        if _DEFAULT_ACCOUNTS.fullmatch(account):
            raise PolicyOptionError(
                f"{account!r} is a default service account, which may change the whole project unless somebody took "
                "its role Editor away: make an account for what runs, and name that one"
            )
    every_match(options.service_accounts, "service_accounts", _ACCOUNT, "email of a service account")
    every_match(options.buckets, "buckets", _BUCKET, "name of a bucket, or its beginning with * behind it")
    if options.with_links and not (options.buckets and options.link_project):
        raise PolicyOptionError(
            "links to buckets need --bucket NAME (or shop-*) for those they may lead to, and --link-project PROJECT, a "
            "project of its own for their service accounts: a key can be made for every account of a project"
        )
    for name in ("buckets", "link_project"):
        if getattr(options, name) and not options.with_links:
            raise PolicyOptionError(f"{flag_of(name)} is about links: add --with-links, or leave it out")
    every_match(filter(None, [options.link_project]), "link_project", _PROJECT_ID, "id of a project")
    if len(options.buckets) > _MOST_BUCKETS:
        raise PolicyOptionError(
            f"Google takes at most {_MOST_BUCKETS} buckets in a condition: give beginnings (shop-*)"
        )


def _role(title: str, description: str, permissions: Iterable[str]) -> dict[str, object]:
    return {"title": title, "description": description, "stage": "GA", "includedPermissions": sorted(permissions)}


def _condition(buckets: Iterable[str]) -> str:
    """In IAM's expression language: which buckets, and that no other roles are granted or taken away in them."""
    names = [
        f'resource.name.startsWith("projects/_/buckets/{name[:-1]}")'
        if name.endswith("*")
        else f'resource.name == "projects/_/buckets/{name}"'
        for name in buckets
    ]
    roles = ", ".join(f'"{role}"' for role in sorted(ROLES.values()))
    granted = f'api.getAttribute("iam.googleapis.com/modifiedGrantsByRole", []).hasOnly([{roles}])'
    return f'resource.type == "storage.googleapis.com/Bucket" && ({" || ".join(names)}) && {granted}'


def _dumped(document: Document) -> str:
    return yaml.safe_dump(document.content, sort_keys=False, width=120)


def _commands(options: PolicyOptions, made: list[Document]) -> str:
    """How the documents are put in force, as comments: this very text is the first of them where it is the only one."""
    flags = [
        *(f"--service-account {shlex.quote(one)}" for one in options.service_accounts),
        *(["--with-links"] if options.with_links else []),
        *(f"--bucket {shlex.quote(one)}" for one in options.buckets),
        *([f"--link-project {shlex.quote(options.link_project)}"] if options.link_project else []),
    ]
    lines = ["Fill in PROJECT and AGENT, the member that the agent is (serviceAccount:… or principal://…), and run:"]
    for number, document in enumerate(made, 1):
        printed = " ".join(["fractal agent policy --provider gcp", *flags, f"--document {number}"])
        lines.append(f"  {printed} > {document.name}")
        lines += [f"  {command.replace('FILE', document.name)}" for command in document.commands]
    lines += [
        f"  {_BIND_ACCOUNT} {shlex.quote(account)} --member=AGENT --role={USE_ACCOUNT}"
        for account in options.service_accounts
    ]
    if not options.service_accounts:
        lines.append("What runs as a service account (Cloud Run, GKE, some machines) needs --service-account for each.")
    if options.with_links:
        lines.append(f"Then start the agent with {LINK_PROJECT}={shlex.quote(options.link_project)}.")
    return "".join(f"# {line}\n" for line in lines)
