"""The page: what waits and why, who got what was promised, which cards are held and not used. It only reads.

From the ground up: `objects` is what is read of pods, `facts` all that is known at one moment, `views` the tables made
of it, as `html` that is safe whatever is in it; all of these are pure. `cluster` and `machine` keep the facts current
for all viewers together, on a `board`. `viewers` are who is let in, `reviews` asks the API server about them, `site`
answers browsers, and `connections` bounds those.
"""
