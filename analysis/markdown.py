"""Tables of generated pages."""

from collections.abc import Callable, Iterable, Sequence


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; columns whose head ends in ` >` stand to the right."""
    right = [head.endswith(" >") for head in header]
    cells = [[head.removesuffix(" >") for head in header], *(list(line) for line in lines)]
    widths = [max(2, *(len(line[place]) for line in cells)) for place in range(len(header))]
    put: list[Callable[[str, int], str]] = [str.rjust if one else str.ljust for one in right]
    drawn = [[one(cell, width) for one, cell, width in zip(put, line, widths, strict=True)] for line in cells]
    marks = ["-" * (width - one) + ":" * one for width, one in zip(widths, right, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (drawn[0], marks, *drawn[1:]))
