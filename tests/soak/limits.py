"""The broker is killed a hundred times under programs that take and give memory: no limit is exceeded.

    make soak-limits             # 100 brokers, about a minute
    tools/named soak limits --kills 500

It ends with an error at the first thing that is wrong.
"""

from __future__ import annotations

import argparse

from isolation.broker.load import broker_killed_under_load


def main() -> None:
    parser = argparse.ArgumentParser(prog="soak limits")
    parser.add_argument("--kills", type=int, default=100)
    broker_killed_under_load(parser.parse_args().kills)
    print("no limit was exceeded")  # noqa: T201


if __name__ == "__main__":
    main()
