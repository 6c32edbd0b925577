"""Moved: kept for one release, so that an import of the old name says the new one."""

raise ImportError("partage_plugins.sides is now partage_plugins.framework; the table of names is in CHANGELOG.md")
