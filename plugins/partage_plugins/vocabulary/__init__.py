"""Moved: kept for one release, so that an import of the old name says the new one."""

raise ImportError("partage_plugins.vocabulary is now partage_plugins.api; the table of names is in CHANGELOG.md")
