"""The proxy's sockets: each client gets its own connection to the runtime.

server      serves a listening socket, drains, counts; clients that connect while the runtime does not answer
connection  one client and its upstream connection: when each is read, and the tasks that wait for decisions
counters    what is counted, for the metrics page
"""

from partage_crishim.proxy.counters import Counters
from partage_crishim.proxy.server import ProxyServer, answers

__all__ = ["Counters", "ProxyServer", "answers"]
