"""``partage support-bundle``: what helps others to find a fault, and nothing that would give them access.

`redaction` and `log_lines` are pure and decide what may be in it: named fields, and words of ours without the values in
them. `here` and `cluster` gather, each part by itself, `archive` packs.
"""
