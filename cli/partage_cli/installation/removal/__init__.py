"""Removes partage from a node without leaving a trace.

`drain` evicts the pods that have cards there, and `uninstall` is the whole procedure.
"""
