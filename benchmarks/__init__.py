"""Measurements with bars: what a cycle costs, side by side with what it would cost otherwise.

``make bench`` runs them all and fails where a bar is missed. What is right or wrong does not belong here: tests
prove that.
"""
