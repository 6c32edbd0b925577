"""Keeps one child: says when it is started again, and what becomes of killed ones that do not die. No locks.

The one who asks holds a child for as long as it is worth asking, and says here how it failed.
"""

from __future__ import annotations
