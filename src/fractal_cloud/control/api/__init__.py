"""The control plane's routes: HTTP in, HTTP out; no SQL and no rules of the protocol belong here."""
