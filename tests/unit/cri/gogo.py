"""Output of cri-api v0.33.0, whose gogo code (kubelet up to 1.33, containerd up to 2.1) does not validate UTF-8.

Recorded from its `Marshal`; its `Unmarshal` reads both again without an error. The invalid UTF-8 is a user's
`terminationMessagePath`, /tmp/ and the byte ff; in the request also an annotation of the pod.
"""

from __future__ import annotations

from typing import Final

CREATE: Final = bytes.fromhex(
    "0a02736212610a060a046d61696e321d0a164e56494449415f56495349424c455f444556494345531203616c6c52380a"
    "2e696f2e6b756265726e657465732e636f6e7461696e65722e7465726d696e6174696f6e4d6573736167655061746812"
    "062f746d702fff1a160a0c0a01701201751a047465616d3a060a01781201ff"
)
"""Sandbox sb of pod team/p, uid u; container main with NVIDIA_VISIBLE_DEVICES=all."""
LISTING: Final = bytes.fromhex(
    "0a6c0a026331120273621a060a046d61696e3001421e0a15696f2e6b756265726e657465732e706f642e756964120575"
    "69642d314a380a2e696f2e6b756265726e657465732e636f6e7461696e65722e7465726d696e6174696f6e4d65737361"
    "67655061746812062f746d702fff0a340a02633212037362321a070a05747261696e3001421e0a15696f2e6b75626572"
    "6e657465732e706f642e75696412057569642d32"
)
"""ListContainers: c1, `main` of uid-1, which has the annotation; c2, `train` of uid-2. Both run."""
