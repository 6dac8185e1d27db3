"""ECS: containers."""

from fractal_cloud.offers.aws.descriptors import Paging, Service, Tagging

ECS = Service(
    name="ecs",
    cursor=("nextToken", "nextToken"),
    paging=Paging(
        limit="maxResults",
        default=100,
        largest=100,
        bad_size="InvalidParameterException",
        bad_token="InvalidParameterException",
    ),
    tagging=Tagging(target="resourceArn", tags="tags", keys="tagKeys", pair=("key", "value")),
    conflict=("ResourceInUse", "ServiceNotActiveException", "ServiceUnavailableException", "UpdateInProgressException"),
    invalid=("PlatformUnknownException",),
    reads=("ListTagsForResource", "ListTasks"),
    roles_of=("ecs-tasks.amazonaws.com",),
)
