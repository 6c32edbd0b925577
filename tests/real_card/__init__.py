"""What a real card does, and what a container has of it there: questions, their answers, and what was expected.

    make real                                       # for eight minutes, into .cache/real/result.json
    tools/real --missing .cache/real/result.json    # what that run lacks
    tools/real --simulated h100 --row fill          # one row, on a simulated card
    tools/real page .cache/real/result.json         # into docs/real-card.md

A *row* is one question: a program that answers with facts, and a judge of them. `rows` has them in the order of their
worth. `plan` (pure) says which is next in the time that is left; `runner` asks it in processes of its own, none of
which outlives this one; `result` (pure but for one write) merges the answers; `page` makes
docs/real-card.md. Programs that ask are in `programs` (any Python, no package of ours); those that need a broker are in
`stages`; the driver's own facts are asked by the areas of `conformance`, in C, and `comparison` sets them against
records. `carry` makes a folder of all that, and `carried` checks it there.

    plan ─► runner ─► programs                     the driver as it is
                  ├─► conformance                  its facts
                  └─► stages ─► place ─► programs  a broker, and programs in a container
"""
