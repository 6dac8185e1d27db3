"""The session at one vCenter: machines over SOAP, tags over REST, put together for one folder.

What is asked of it, and why, does not belong here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.vsphere.credentials import Credentials, credentials
from fractal_cloud.offers.vsphere.machines import Machine, Making
from fractal_cloud.offers.vsphere.soap import Soap
from fractal_cloud.offers.vsphere.tagging import Tagging
from fractal_cloud.offers.vsphere.tags import Word, vocabulary

_MOREF: Final = "vm-"


class Tagged(NamedTuple):
    """A machine with its tags. ``elsewhere``: the path of its folder, where that is not the scope's."""

    machine: Machine
    tags: Mapping[str, str]
    elsewhere: str = ""


class Vsphere(Cloud):
    """One folder of one vCenter: the machines in it, and the calls that change them."""

    def __init__(self, soap: Soap, tagging: Tagging, scope: Scope) -> None:
        self.scope = scope
        self._soap = soap
        self._tagging = tagging

    @property
    def folder(self) -> str:
        """The path of the folder."""
        return f"/{self.scope.place.strip('/')}"

    @property
    def tags_follow(self) -> bool:
        """Whether this vCenter takes no tags in the create call (below 9.1)."""
        return not self._soap.accepts_tags_in_create

    def machines(self) -> Iterator[Tagged]:
        """Every machine in the folder with its tags, in bulk."""
        found = list(self._soap.machines(self.folder))
        tags = self._tagging.attached([one.moref for one in found]) if found else {}
        yield from (Tagged(one, tags[one.moref]) for one in found)

    def find(self, resource_id: str) -> Tagged | None:
        """One machine by its instance UUID, or by its managed object id, in whatever folder; None where there is none.

        Where it lies in another folder than the scope's, the result says so.
        """
        is_moref = resource_id.startswith(_MOREF)
        found = self._soap.get(resource_id) if is_moref else self._soap.find(resource_id)
        if found is None:
            return None
        is_here = self._soap.lies_in(found.folder, self.folder)
        elsewhere = "" if is_here else self._soap.path_of(found.folder)
        return Tagged(found, self._tagging.attached_to(found.moref), elsewhere)

    def create(self, making: Making, live_system_id: str, words: Sequence[Word]) -> str:
        """Make a machine, with these tags where they can go along; they are made first, also where they cannot.

        Returns its managed object id, or nothing while vCenter is at it.
        """
        self._tagging.ensure([*vocabulary(live_system_id), *words])
        return self._soap.create(self.folder, making, [self._tagging.id_of(word) for word in words])

    def reconfigure(self, moref: str, *, disk: int | None = None, **values: Any) -> None:
        """Change a machine."""
        self._soap.reconfigure(moref, disk=disk, **values)

    def start(self, moref: str) -> None:
        """Power a machine on."""
        self._soap.start(moref)

    def stop(self, moref: str, *, kindly: bool) -> None:
        """Power a machine off; ``kindly``: by asking its system."""
        self._soap.stop(moref, kindly=kindly)

    def destroy(self, moref: str) -> None:
        """Delete a machine with its disks."""
        self._soap.destroy(moref)

    def words_on(self, moref: str) -> list[Word]:
        """The tags of one machine, each by itself."""
        return self._tagging.words_on(moref)

    def attach(self, moref: str, words: Sequence[Word]) -> None:
        """Attach tags; they are made where they do not exist."""
        self._tagging.ensure(words)
        self._tagging.attach(moref, words)

    def detach(self, moref: str, word: Word) -> None:
        """Detach one tag."""
        self._tagging.detach(moref, word)


class VsphereSession(Session):
    """The one vCenter that these credentials open. Safe to share by threads."""

    def __init__(self, found: Credentials | None = None) -> None:
        try:
            import pyVmomi  # noqa: F401
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[vsphere]'` brings it",
                name=missing.name,
            ) from missing
        found = found or credentials()
        self._soap = Soap(found)
        self._tagging = Tagging(found)

    def realms(self) -> Mapping[str, str]:
        """The vCenter by its own UUID, once it has let us in."""
        self._soap.connect()
        return {"": self._soap.instance()}

    def realm_now(self, scope: Scope) -> str:
        """The UUID of the vCenter that answers now."""
        del scope
        return self._soap.instance()

    def at(self, scope: Scope) -> Vsphere:
        """One folder of it; whether it is the vCenter that is meant is confirmed before anything is decided."""
        return Vsphere(self._soap, self._tagging, scope)
