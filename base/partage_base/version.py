"""The version of partage, for processes that only want to say it: asking the installation costs 2 MiB for good."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
"""As pyproject.toml has it; a test holds them together."""
