"""Storage of signing keys and the rules on who may use them.

Read in this order: `layout` (folders and file names), `keys` (reads a folder into keys and faults, once or for a
long-running process), `rotation` (a new pair, a retired key), `overview` (everything, for people). `pem` and
`permissions` check one file and are pure; `files` reads and writes; `errors` has the expected errors.

The signature format is in `partage_plugins.codecs.signature`.
"""

from partage_base.keyring.errors import KeyKept, KeyRefused, KeyringError, KeyUnknown
from partage_base.keyring.keys import (
    Keyring,
    LoadedKeys,
    LoadedPrivateKeys,
    SigningKey,
    load_private_keys,
    load_public_keys,
    load_signing_key,
)
from partage_base.keyring.layout import DEFAULT_FOLDER, KeyFolders, is_key_id
from partage_base.keyring.overview import KeyEntry, Overview, Use, overview
from partage_base.keyring.pem import encode_public
from partage_base.keyring.rotation import Added, Retired, add_pair, retire

__all__ = [
    "DEFAULT_FOLDER",
    "Added",
    "KeyEntry",
    "KeyFolders",
    "KeyKept",
    "KeyRefused",
    "KeyUnknown",
    "Keyring",
    "KeyringError",
    "LoadedKeys",
    "LoadedPrivateKeys",
    "Overview",
    "Retired",
    "SigningKey",
    "Use",
    "add_pair",
    "encode_public",
    "is_key_id",
    "load_private_keys",
    "load_public_keys",
    "load_signing_key",
    "overview",
    "retire",
]
