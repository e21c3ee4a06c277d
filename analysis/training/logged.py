"""The plan that a log prints: which accelerator (or host) holds which tables."""

import ast
import json

from analysis.training.rows import Plan

MOST_TEXT = 1_000_000  # characters
UNREAD = "the logged plan cannot be read and was not used"
_WRONG = (ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError)


def logged(text: str, kinds: str) -> tuple[Plan | None, tuple[int, ...] | None, str]:
    """Return a plan, the tables that all hold, and a note; None where nothing, or nothing legible, is logged.

    `text` is a JSON list of tables by accelerator, `kinds` a Python list of (kind, tables), of which the
    kind `dp` is held by all.
    """
    if not text.strip():
        return None, None, ""
    if len(text) + len(kinds) > MOST_TEXT:
        return None, None, UNREAD
    try:
        plan = tuple(tuple(int(table) for table in one) for one in json.loads(_whole(text)))
        copied = dict(ast.literal_eval(_whole(kinds))).get("dp", ()) if kinds.strip() else ()
        return plan, tuple(int(table) for table in copied), ""
    except _WRONG:
        return None, None, UNREAD


def _whole(text: str) -> str:
    """Return the text of a cell without the line breaks that the reader of tables has made visible."""
    return text.replace("\\n", " ").strip()


def fits(plan: Plan, copied: tuple[int, ...], blocks: tuple[int, ...], tables: int) -> bool:
    """Whether a plan has lists for one of the numbers of `blocks`, and places all `tables` and no others."""
    placed = {table for listed in plan for table in listed} | set(copied)
    return len(plan) in blocks and placed == set(range(tables))
