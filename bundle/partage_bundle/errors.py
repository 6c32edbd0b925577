"""What can go wrong while a bundle is made. Each is one line for people, with exit code 1.

BundleError
├── NotFetched     a registry or a mirror did not give a locked file
├── StepFailed     a program that builds ended with an error
├── TreeUnfit      what was built would not run where it is put
└── PushRefused    a registry did not take an image
"""

from __future__ import annotations


class BundleError(Exception):
    """Any of those that the module draws."""


class NotFetched(BundleError):
    """The network, or a version that is no longer there."""


class StepFailed(BundleError):
    """Its last words are in the message."""


class TreeUnfit(BundleError):
    """A tree that nobody gets: it is not put into the cache."""


class PushRefused(BundleError):
    """The answer of the registry is in the message."""
