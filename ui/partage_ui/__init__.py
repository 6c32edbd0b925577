"""The web page: which pods wait and why, who got what was promised, which cards are held but unused. Read-only.

From the ground up: `objects` are the fields that are read of pods, `facts` a snapshot of all known state, `views` the
tables made of it, as `html` that is safe for any content; all of these are pure. `cluster` and `machine` keep the facts
current for all viewers together, on a `board`. `viewers` are the sessions, `reviews` asks the API server for their
rights, `site` answers browsers, and `connections` bounds their connections.
"""
