"""In-place resize of running containers: whether a pod gets the amounts that it requests. Pure."""

from partage_scheduler.resize.decision import Granted, Resizes, Stays

__all__ = ["Granted", "Resizes", "Stays"]
