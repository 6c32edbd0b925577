"""ResourceClaims on our devices (DRA), if this scheduler allocates them. Pure.

`selectors` parses the expressions that are supported, `asks` what a claim requests, `results` writes and reads
allocations, `book` has all claims with what they hold (`holdings`) and which pods use them (`consumers`).
"""

from partage_scheduler.claims.asks import AskedClaim, asked_of
from partage_scheduler.claims.book import ClaimBook, NotYet
from partage_scheduler.claims.results import FINALIZER, ClaimGrant, allocation_of

__all__ = ["FINALIZER", "AskedClaim", "ClaimBook", "ClaimGrant", "NotYet", "allocation_of", "asked_of"]
