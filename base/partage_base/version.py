"""The version of partage as a constant: reading the installed metadata costs 2 MiB for good."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
"""The same as in pyproject.toml; a test compares them."""
