"""The drawing of a lease's life, made from the table in `life`. Pure."""

from __future__ import annotations

from partage_isolation.leasing.life import TRANSITIONS, Event, Life


def mermaid() -> str:
    """A state diagram, as documents show it."""
    arrows: dict[tuple[Life, Life], list[str]] = {}
    for (state, event), then in TRANSITIONS.items():
        if event is not Event.LEFT:
            arrows.setdefault((state, then), []).append(event.value)
    lines = [f"    {state.value} --> {then.value}: {'<br>'.join(events)}" for (state, then), events in arrows.items()]
    leaving = f"    note right of {Life.EMPTY.value}: from anywhere, when the {Event.LEFT.value}"
    return "\n".join(["stateDiagram-v2", f"    [*] --> {Life.EMPTY.value}", *lines, leaving])
