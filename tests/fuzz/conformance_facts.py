"""A card's answers, in a file that others send, yield facts that are lines of it, or a refusal in one line."""

from __future__ import annotations

from real_card.comparison import Unreadable, compare, read_facts

SEEDS = (
    b"# source: card\nmemory.free.null = CUDA_SUCCESS\nmemory.free.outcome = done\n",
    b"nvml_mig.off.outcome = skipped: this card cannot be cut\n\nmemory.pitch.of_1 = 512\n",
    b"callbacks.order.of_one_stream = \narrays.void_handle.outcome = crash 11\n",
)
DICTIONARY = (b" = ", b".", b"\n", b"#", b"outcome", b"skipped")


def target(data: bytes) -> str:
    """Facts are lines of the text and consistent with each other; a refusal is short and printable."""
    try:
        text = data.decode()
        facts = read_facts(text, "told")
    except UnicodeDecodeError:
        return "no text"
    except Unreadable as error:
        said = str(error)
        if len(said) > 600 or not said.isprintable():
            raise AssertionError(f"an error that is no short, printable line: {said!r}") from error
        return f"refused: {said.rpartition(': ')[2][:40]}"
    lines = text.split("\n")
    for fact, value in facts.items():
        if f"{fact} = {value}" not in lines and f"{fact} ={value}" not in lines:
            raise AssertionError(f"a fact that is no line: {fact} = {value}")
    if compare(facts, facts, []).differences:
        raise AssertionError("facts that differ from themselves")
    return f"{min(len(facts), 3)} facts"
