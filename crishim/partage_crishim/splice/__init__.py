"""The sockets of the splice: each client of ours gets a connection of its own to the runtime.

splicer     serves a listening socket, drains, counts; clients that come while the runtime does not answer
link        one client and its connection: which side is read when, and the tasks that wait for verdicts
counters    what is counted, for the page of metrics
"""

from partage_crishim.splice.counters import Counters
from partage_crishim.splice.splicer import Splicer, answers

__all__ = ["Counters", "Splicer", "answers"]
