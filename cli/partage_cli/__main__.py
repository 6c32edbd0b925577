"""Runs the command line: ``python -m partage_cli``."""

from partage_cli.main import main

main()
