"""From Kubernetes manifests to a declaration: reading them, what becomes of each object, and how that is written.

Nothing here asks a cluster, and nothing is deployed.
"""
