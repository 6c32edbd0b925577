"""Detects what tests leave on a shared rig, by comparing its state before and after each test."""
