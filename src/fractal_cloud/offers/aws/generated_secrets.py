"""Secrets that are made for parameters of components on AWS: each is one of Secrets Manager, with our tags (A8)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from fractal_cloud.model.tags import MANAGED_BY, OURS, ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.tags import from_list
from fractal_cloud.offers.generated_secrets import MARK, GeneratedSecretStore, Kept, Slot
from fractal_cloud.offers.secret import Secret

PREFIX: Final = "fractal-cloud/"
GROUP: Final = "generated"
"""What stands between the component and the parameter in a name: links have ``uses`` there."""
_SERVICE: Final = "secretsmanager"


class SecretsManager(GeneratedSecretStore):
    """Secrets Manager of the account and region that the component lives in."""

    title: ClassVar[str] = "AWS Secrets Manager"

    def name(self, slot: Slot) -> str:
        """Readable: LiveSystem, component and parameter."""
        return f"{PREFIX}{slot.live_system_id}/{slot.component}/{GROUP}/{slot.readable}"

    def find(self, cloud: Aws, slot: Slot) -> Kept | None:
        """Its tags, and then its value; what is about to be deleted has none."""
        name = self.name(slot)
        described = cloud.find(_SERVICE, "describe_secret", SecretId=name)
        if described is None:
            return None
        tags = from_list(described.get("Tags"))
        protocol = ProtocolTags.from_mapping(tags)
        if "DeletedDate" in described:
            advice = f"`aws secretsmanager restore-secret --region={cloud.region} --secret-id={name}` brings it back"
            return Kept(protocol, why=f"is about to be deleted: {advice}")
        if not protocol.is_managed or protocol.owner != slot.live_system_id:
            return Kept(protocol)  # whose value is nobody's business here
        found = cloud.find(_SERVICE, "get_secret_value", SecretId=name)
        text = (found or {}).get("SecretString")
        return Kept(protocol, Secret(text)) if text else Kept(protocol, why="holds no text")

    def make(self, cloud: Aws, slot: Slot, secret: Secret, tags: ProtocolTags) -> None:
        """Make it; an answer that was lost shows in the next read, by the name."""
        marks = {**tags.to_mapping(), MARK: slot.component}
        listed = [{"Key": key, "Value": value} for key, value in marks.items()]
        cloud.call(_SERVICE, "create_secret", Name=self.name(slot), SecretString=secret.reveal(), Tags=listed)

    def drop(self, cloud: Aws, slot: Slot, kept: Kept) -> None:
        """Delete it at once: its name is free for the next component of that name."""
        del kept
        cloud.find(_SERVICE, "delete_secret", SecretId=self.name(slot), ForceDeleteWithoutRecovery=True)


def rights() -> list[dict[str, Any]]:
    """What the agent must be allowed to do for them: only under names of their own, and only with the tags (A7)."""
    names = [f"arn:*:secretsmanager:*:*:secret:{PREFIX}*/{GROUP}/*"]
    is_managed, is_stamped = (
        {"StringEquals": {f"aws:{where}/{MANAGED_BY}": OURS}} for where in ("ResourceTag", "RequestTag")
    )
    return [
        {**_allow("MakeGeneratedSecrets", ["CreateSecret", "TagResource"], names), "Condition": is_stamped},
        _allow("FindGeneratedSecrets", ["DescribeSecret"], names),
        {**_allow("UseGeneratedSecrets", ["DeleteSecret", "GetSecretValue"], names), "Condition": is_managed},
    ]


def _allow(name: str, verbs: list[str], names: list[str]) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": [f"{_SERVICE}:{verb}" for verb in verbs], "Resource": names}
