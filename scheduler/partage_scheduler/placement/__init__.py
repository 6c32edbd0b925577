"""Carrying out what was decided: pods are bound, victims are deleted, pods are evicted."""
