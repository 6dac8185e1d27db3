"""CloudTrail: who called what. The right to read it is printed on request only."""

from fractal_cloud.offers.aws.descriptors import Paging, Service

CLOUDTRAIL = Service(name="cloudtrail", paging=Paging(largest=50, bad_token="InvalidNextTokenException"))
