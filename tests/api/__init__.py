"""The control plane over HTTP, in-process."""
