"""Carries out decisions: binds pods, deletes victims, evicts pods."""
