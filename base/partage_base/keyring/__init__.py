"""Where keys are kept and who may use which.

Read in this order: `layout` (the files and what they are called), `keys` (a folder into keys and faults, once or for
a process that stays), `rotation` (a new pair, a retired key), `overview` (everything, for people). `pem` and
`permissions` decide about one file and are pure; `files` reads and writes; `errors` is what is expected to go wrong.
What a signature is stands in `partage_plugins.codecs.signature`.
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
