"""The few pieces of HTML that a report is made of; all text passes through `text`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version

from simulator.errors import printable


def text(value: object) -> str:
    """Return `value` as text that is safe between tags and in attributes; control characters are shown."""
    return escape(printable(str(value)), quote=True)


@dataclass(frozen=True)
class Column:
    """A head of a table; columns of numbers are set to the right, columns of prose have lines broken."""

    head: str
    number: bool = True
    prose: bool = False

    @property
    def kind(self) -> str:
        """Its look."""
        return ' class="n"' if self.number else ' class="p"' if self.prose else ""


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading that can be linked to; one without a body is left out."""

    title: str
    body: str

    @property
    def name(self) -> str:
        """What links to it say."""
        return "-".join(self.title.lower().split())

    @property
    def html(self) -> str:
        """Its markup."""
        return f'<section id="{text(self.name)}"><h2>{text(self.title)}</h2>\n{self.body}\n</section>'


def section(title: str, *parts: str) -> Section:
    """Return a section of the parts that are not empty."""
    return Section(title, "\n".join(part for part in parts if part))


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> str:
    """Return a table that scrolls by itself on narrow pages; columns without content are left out."""
    body = [[str(cell) for cell in row] for row in rows]
    kept = [place for place in range(len(columns)) if any(row[place] not in ("", "-") for row in body)]
    kinds = {place: columns[place].kind for place in kept}
    heads = "".join(f"<th{kinds[place]}>{text(columns[place].head)}</th>" for place in kept)
    lines = ("".join(f"<td{kinds[place]}>{text(row[place])}</td>" for place in kept) for row in body)
    written = "\n".join(f"<tr>{line}</tr>" for line in lines)
    head = f"<thead><tr>{heads}</tr></thead>"
    return f'<div class="wide" tabindex="0"><table>{head}<tbody>\n{written}\n</tbody></table></div>'


def heading(words: str) -> str:
    """Return a heading within a section."""
    return f"<h3>{text(words)}</h3>"


def paragraph(words: str, dim: bool = False) -> str:
    """Return a paragraph, or nothing without words; `dim` is for remarks."""
    kind = ' class="dim"' if dim else ""
    return f"<p{kind}>{text(words)}</p>" if words else ""


def listed(items: Iterable[str]) -> str:
    """Return a list, or nothing without items."""
    lines = "".join(f"<li>{text(item)}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


def folded(summary: str, body: str) -> str:
    """Return a part that opens when its summary is clicked; it needs no script."""
    return f"<details><summary>{text(summary)}</summary>\n{body}\n</details>"


def figure(source: str, caption: str) -> str:
    """Return a picture (a `data:` address of ours) with its caption, which is also what is read aloud."""
    image = f'<img alt="{text(caption)}" src="{source}">'
    shown = f'<div class="wide" tabindex="0">{image}</div>'
    return f"<figure>{shown}<figcaption>{text(caption)}</figcaption></figure>"


STYLE = """
:root { color-scheme: light dark; --ink: #222; --page: #fff; --line: #ddd; --dim: #5c5c5c; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --page: #16181c; --line: #3a3d44; --dim: #a0a4ab; --card: #f4f4f4; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       max-width: 78rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; margin: 0.4rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; } h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
nav { display: flex; flex-wrap: wrap; gap: 0 1rem; } a { color: inherit; }
p, li { max-width: 46rem; overflow-wrap: anywhere; } ul { padding-left: 1.2rem; }
.dim, figcaption, footer { color: var(--dim); font-size: 0.9rem; }
footer { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 0.5rem; }
.wide { overflow-x: auto; } figure { margin: 1rem 0; } summary { cursor: pointer; padding: 0.2rem 0; }
figure img { background: var(--card); border-radius: 6px; padding: 6px; width: 100%; min-width: 36rem; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid var(--line); }
th, td { white-space: nowrap; }
td.p { white-space: normal; min-width: 14rem; max-width: 34rem; overflow-wrap: break-word; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
@media print { .wide { overflow: visible; } figure, tr { break-inside: avoid; } }
"""
GUARD = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the whole page. It loads nothing: a policy in its head forbids it, whatever a name contains."""
    kept = [one for one in sections if one.body]
    links = "".join(f'<a href="#{text(one.name)}">{text(one.title)}</a>' for one in kept)
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{GUARD}">'
        f"<title>{text(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(one.html for one in kept)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{text(title)}</h1>'
        f"{paragraph(lead)}<nav>{links}</nav>\n<main>\n{body}\n</main>\n"
        f"<footer>Written by recscale {text(version('recscale'))}.</footer></body></html>\n"
    )
