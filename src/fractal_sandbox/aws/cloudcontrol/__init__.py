"""AWS's Cloud Control API in the sandbox: any resource by the schema that AWS publishes of its type.

Written from the API's own contract (botocore's model, the user guide) and the schemas, which are data. No name of a
type stands in the API itself: what a type does beyond its schema is in `twins`, and how reads come back in `shapes`.
Who may call it, and whether the agent should have, does not belong here, but to `authorization.py` and `watching.py`.
"""
