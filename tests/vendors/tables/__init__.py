"""Tables of what a vendor's API takes and answers, each made from the vendor's own packages.

A table is JSON: ``operations`` (method, path, query, headers, body, answers by status) and ``schemas`` (JSON Schema, by
name). The packages are big, so they are installed in an environment of their own, which runs ``python -m
tests.vendors.tables``; nothing here imports the product. How traffic is held against a table does not belong here.
"""
