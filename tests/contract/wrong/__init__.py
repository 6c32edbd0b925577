"""Plugins with one fault each, derived from the right template: the conformance kit must find every one."""
