"""What stands between the world and an API, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.api_management import kubernetes

__all__ = ["kubernetes"]
