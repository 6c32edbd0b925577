"""What a real card does, and what a container has of it there: questions, their answers, and what was expected.

    make real                                   # all three parts, into .cache/real/result.json
    tools/real bare --simulated h100            # one part, on a simulated card
    tools/real page tests/real_card/results/NAME.json

A *row* is one question: a program that answers with facts, and a judge of them. `rows` and its neighbours list them by
part; `runner` runs them, each in processes of its own within a time; `page` makes docs/real-card.md from a result that
is committed. Programs that ask are in `programs` (any Python, no package of ours); those that need a broker are in
`stages`.

    runner ─► row ─► programs                     the driver as it is
                 └─► stages ─► place ─► programs  a broker, and programs in a container
"""
