"""A root file system with only Python, bash and the C library: no compiler, network, git or checkout.

subprocess.run(in_bare_root(folder, shown, ["/shown/tools/real"]))    # `folder` is empty; needs root
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SHOWN: Final = "/shown"
_PROGRAMS: Final = ("bash", "dirname", "env")
_ENTER: Final = r"""
set -e
root=$1 shown=$2 python=$3 prefix=$4 programs=$5; shift 5
mount -t tmpfs -o mode=755 none "$root"
mkdir -p "$root"/usr/bin "$root"/usr/lib "$root"/proc "$root"/dev "$root"/tmp "$root"/shown "$root$prefix"/bin
for name in bin lib lib64; do [ ! -L /$name ] || ln -s usr/$name "$root"/$name; done
for folder in /proc /dev /usr/lib /usr/lib64 /lib /lib64 "$prefix"/lib; do
    [ -d $folder ] && [ ! -L $folder ] || continue
    mkdir -p "$root"$folder
    mount --rbind $folder "$root"$folder
done
for program in $programs; do cp "$program" "$root"/usr/bin; done
cp "$python" "$root$prefix"/bin/python3
mount --bind "$shown" "$root"/shown
exec chroot "$root" /usr/bin/env -i HOME=/tmp PATH="$prefix"/bin:/usr/bin:/bin "$@"
"""


def in_bare_root(folder: Path, shown: Path, argv: Sequence[str], **variables: str) -> list[str]:
    """The command that runs `argv` there; `shown` is mounted at `/shown`."""
    programs = " ".join(str(shutil.which(name)) for name in _PROGRAMS)
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    words = [str(folder), str(shown), str(python), sys.base_prefix, programs]
    environment = [f"{name}={value}" for name, value in variables.items()]
    enter = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", _ENTER, "-"]
    return [*enter, *words, *environment, *argv]
