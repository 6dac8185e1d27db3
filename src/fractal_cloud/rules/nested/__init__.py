"""Nested parameters: paths into them, and comparing what is declared with what is actual by a type's schema. Pure.

It knows no cloud and no type. What is done about a difference is decided in ``judge``.
"""
