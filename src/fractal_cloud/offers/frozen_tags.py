"""Types whose tags nobody can change after creation: what people say by tags elsewhere, they say to the product (G13).

They are created and owned like any other type. Taking one over and handing it back is remembered by the control plane;
its owner stays, and what was created without our tags is only ever read (S6a, S11b).
"""

from __future__ import annotations

from typing import ClassVar, Final, NoReturn

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.offer import C, K, Offer

GUARD: Final = (
    "the control plane: tags are frozen and say nothing new, so right before the one call the agent announces the "
    "write to it once more, and is refused if the glass was broken since; a request during that one call is reported"
)
CAVEAT: Final = (
    "The tags of this type are frozen after creation: no console and no command line of the vendor's can break the "
    "glass, hand it back, or move it to another owner. The control plane remembers it; nothing is written to the cloud"
)


class FrozenTagsOffer(Offer[C, K]):
    """How such a type is read and changed: as any other, but for its tags."""

    tags_frozen: ClassVar[bool] = True
    guard: ClassVar[str] = GUARD
    glass: ClassVar[GlassCommands] = GlassCommands(
        break_glass=["fractal glass {liveSystemId} {componentId} --break"],
        readopt=["fractal glass {liveSystemId} {componentId} --readopt"],
        caveat=CAVEAT,
    )

    def tag(self, cloud: K, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> NoReturn:
        """Never: the reconciler does not ask for it; were it to, this refuses."""
        del cloud, add, remove
        raise Invalid(f"the tags of {sighting.name!r} are frozen since its creation")
