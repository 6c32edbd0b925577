"""``partage support-bundle``: collects what helps others to find a fault, and nothing that would give them access.

`redaction` and `log_lines` are pure and decide what may be included: named fields, and our own sentences without the
values in them. `here` and `cluster` gather each part independently, `archive` packs.
"""
