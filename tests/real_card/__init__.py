"""Questions to a real card and to containers on it: their answers, and the expected ones.

    make real                                       # for eight minutes, into .cache/real/result.json
    tools/real --missing .cache/real/result.json    # what that run lacks
    tools/real --simulated h100 --row fill          # one row, on a simulated card
    tools/real page .cache/real/result.json         # into docs/real-card.md

A *row* is one question: a program that answers with facts, and a judge of them. `rows` lists them by importance. `plan`
(pure) chooses the next one for the remaining time; `runner` asks it in separate processes, none of which outlives this
one; `result` (pure except for one write) merges the answers; `page` makes docs/real-card.md. Programs that ask are in
`programs` (any Python, no package of ours); those that need a broker are in `stages`; the areas of `conformance`, in C,
ask for the driver's own facts, and `comparison` compares them with records. `carry` makes a folder of all that, and
`carried` checks it there.

    plan ─► runner ─► programs                     the driver as it is
                  ├─► conformance                  its facts
                  └─► stages ─► place ─► programs  a broker, and programs in a container
"""
