"""EKS: Kubernetes clusters."""

from fractal_cloud.offers.aws.descriptors import Paging, Service, Tagging

EKS = Service(
    name="eks",
    cursor=("nextToken", "nextToken"),
    paging=Paging(
        limit="maxResults",
        default=100,
        largest=100,
        bad_size="InvalidParameterException",
        bad_token="InvalidParameterException",
    ),
    tagging=Tagging(target="resourceArn", tags="tags", keys="tagKeys", pair=None),
    conflict=("ResourceInUseException",),
    roles_of=("eks.amazonaws.com",),
)
