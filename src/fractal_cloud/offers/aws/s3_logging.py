"""Where S3 writes the log of a bucket, as it is declared, in the one form in which it is compared."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.model.reference import output_reference
from fractal_cloud.offers.aws.kinds import bucket_name, by_output


def _target(text: str) -> str:
    return text if output_reference(text) is not None else bucket_name(text)


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )


class AwsSimplePrefix(_Part):
    """Logs are named by the prefix and their time; it has no settings."""


class AwsPartitionedPrefix(_Part):
    """Logs are named by account, region, bucket and day."""

    partition_date_source: Literal["EventTime", "DeliveryTime"] = Field(
        default="EventTime", description="Which day: of what was asked, or of its writing."
    )


class AwsTargetObjectKeyFormat(_Part):
    """How logs are named; S3 starts with the simple form."""

    simple_prefix: AwsSimplePrefix | None = Field(default=None, description="By prefix and time.")
    partitioned_prefix: AwsPartitionedPrefix | None = Field(default=None, description="By account, region and day.")


class AwsBucketLogging(_Part):
    """Where the log of a bucket goes; nowhere without a bucket."""

    target_bucket: Annotated[str, AfterValidator(_target), by_output("bucketName")] | None = Field(
        default=None,
        description="Name of the bucket, or the output bucketName of a component; its policy must let S3 write there.",
    )
    target_prefix: str = Field(default="", description="How the names of the logs begin.")
    target_object_key_format: AwsTargetObjectKeyFormat | None = Field(default=None, description="How they are named.")

    @model_validator(mode="after")
    def _has_a_target(self) -> Self:
        if self.target_bucket is None and (self.target_prefix or self.target_object_key_format):
            raise ValueError("a log needs a targetBucket; {} switches it off")
        return self

    def flat(self) -> dict[str, Any]:
        """The one form: what S3 starts with is left out."""
        if self.target_bucket is None:
            return {}
        dated = self.target_object_key_format and self.target_object_key_format.partitioned_prefix
        form = {"targetObjectKeyFormat": {"partitionedPrefix": dated.model_dump(by_alias=True)}} if dated else {}
        return {"targetBucket": self.target_bucket, "targetPrefix": self.target_prefix, **form}
