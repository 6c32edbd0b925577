"""Plugins with one fault each, derived from the correct template: the conformance kit must find every one."""
