"""Other amounts for containers that run: whether a pod may have what it wishes for, and what counts meanwhile. Pure."""

from partage_scheduler.resize.decision import Granted, Resizes, Stays

__all__ = ["Granted", "Resizes", "Stays"]
