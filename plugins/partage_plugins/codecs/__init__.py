"""Codecs for the data that the components exchange: total decoders, and the allocation's signature.

`decoder` turns bytes into one type or one error; `inventory`, `allocation` and `budgets` are contracts 1 and 3,
`native` the native request dialect, `quantity` Kubernetes quantities, `signature` Ed25519 over raw text. Pure: no file,
socket or clock.
"""

from partage_plugins.codecs.allocation import (
    container_key,
    decode_allocation,
    decode_container,
    decode_raw_grants,
    encode_allocation,
    encode_container,
    highest_common_version,
)
from partage_plugins.codecs.critical import CRIT
from partage_plugins.codecs.gangs import read_gang
from partage_plugins.codecs.inventory import decode_inventory, encode_inventory
from partage_plugins.codecs.native import read_requests
from partage_plugins.codecs.quantity import format_bytes, parse_quantity, parse_whole_quantity
from partage_plugins.codecs.signature import decode_signature, key_id, sign, verify

__all__ = [
    "CRIT",
    "container_key",
    "decode_allocation",
    "decode_container",
    "decode_inventory",
    "decode_raw_grants",
    "decode_signature",
    "encode_allocation",
    "encode_container",
    "encode_inventory",
    "format_bytes",
    "highest_common_version",
    "key_id",
    "parse_quantity",
    "parse_whole_quantity",
    "read_gang",
    "read_requests",
    "sign",
    "verify",
]
