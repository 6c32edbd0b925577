"""Claims on our devices (DRA), where this scheduler is the one that allocates them. Pure.

`selectors` reads the expressions that are understood, `asks` what a claim asks for, `results` writes and reads
allocations, `book` knows all claims with what they hold (`holdings`) and who has them (`consumers`), and `wanted` says
which ones a pod needs.
"""

from partage_scheduler.claims.asks import AskedClaim, asked_of
from partage_scheduler.claims.book import ClaimBook
from partage_scheduler.claims.results import FINALIZER, ClaimGrant, allocation_of
from partage_scheduler.claims.wanted import NotYet, pinned

__all__ = ["FINALIZER", "AskedClaim", "ClaimBook", "ClaimGrant", "NotYet", "allocation_of", "asked_of", "pinned"]
