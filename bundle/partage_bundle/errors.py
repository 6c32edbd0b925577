"""Errors while a bundle is built. Each is reported as one line, with exit code 1.

BundleError
├── NotFetched     a registry or a mirror did not give a locked file
├── StepFailed     a build program failed
├── TreeUnfit      the result would not run where it is installed
└── PushRefused    a registry did not take an image
"""

from __future__ import annotations


class BundleError(Exception):
    """Base class of the errors above."""


class NotFetched(BundleError):
    """A network failure, or a version that is no longer available."""


class StepFailed(BundleError):
    """The message has the last output of the program."""


class TreeUnfit(BundleError):
    """A defective tree: it is not put into the cache."""


class PushRefused(BundleError):
    """The message has the registry's answer."""
