"""One report as a web page and as Markdown; neither needs the network."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Picture:
    """A PNG with what it shows.

    Args:
        file: Name of the file beside the report.
        alt: What is seen, for those who do not see it.
    """

    file: str
    alt: str
    caption: str
    contents: bytes


@dataclass(frozen=True)
class Page:
    """All that a report says; the first row of the table is its heading.

    Args:
        summary: The main result in a sentence.
        warning: What makes the numbers less than they seem, if anything does.
        remarks: Below the table.
        chart: Drawn as wide as the text; ``maps`` stand side by side where there is room.
        protocol: How the numbers came about, point by point.
    """

    title: str
    summary: str
    warning: str | None
    table: Sequence[Sequence[str]]
    remarks: Sequence[str]
    findings: Sequence[str]
    chart: Picture
    maps: Sequence[Picture]
    protocol: Sequence[str]
    versions: Mapping[str, str]


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #57606a; --paper: #ffffff; --line: #d0d7de;
  --band: #f3f6f9; --alert: #8a4600; --alert-paper: #fff4e5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9da7b3; --paper: #11151a;
  --line: #3a424c; --band: #1a2028; --alert: #ffd399; --alert-paper: #3a2a14; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
p, li { max-width: 46rem; }
.summary { font-size: 1.1rem; }
.warning { background: var(--alert-paper); color: var(--alert); border-left: .3rem solid;
  padding: .6rem .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
.quiet { color: var(--quiet); }
th, td { padding: .4rem .75rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
.words td, .words th { text-align: left; white-space: normal; vertical-align: top; }
.words td:nth-child(-n+3) { white-space: nowrap; }
th:first-child { text-align: left; padding-left: .25rem; }
thead th { border-bottom-width: 2px; }
tbody th { font-weight: 600; }
tbody tr:nth-child(even) { background: var(--band); }
figure { margin: 1.25rem 0 0; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; padding: .5rem;
  border: 1px solid var(--line); border-radius: .4rem; }
figcaption { color: var(--quiet); font-size: .925rem; margin-top: .5rem; }
.chart { max-width: 46rem; }
.maps { display: grid; gap: 1.25rem; align-items: start; }
@media (min-width: 56rem) { .maps { grid-template-columns: 1fr 1fr; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; color: var(--quiet); }
dd { margin: 0; }
"""

# Nothing but what is in the file: a reader can see that the page asks nobody for anything.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def to_html(page: Page) -> str:
    """Return the page as one HTML file with its pictures inside.

    Example:
        >>> dot = Picture("dot.png", "a dot", "A dot.", b"")
        >>> page = Page("Dots", "All round.", None, [["a"], ["1"]], [], ["Seen."], dot, [dot], [], {})
        >>> to_html(page).count("<img")
        2
    """
    heading, *rows = page.table
    table = [
        "<thead><tr>" + "".join(f'<th scope="col">{inline(cell)}</th>' for cell in heading) + "</tr></thead>",
        "<tbody>",
        *(_html_row(row) for row in rows),
        "</tbody>",
    ]
    parts = [
        f"<h1>{escape(page.title)}</h1>",
        f'<p class="summary">{inline(page.summary)}</p>',
        f'<p class="warning" role="note">{inline(page.warning)}</p>' if page.warning else "",
        "<h2>Results</h2>",
        f'<p class="quiet" id="caption">{inline(CAPTION)}</p>',
        '<div class="scroll" role="region" aria-label="Results" tabindex="0">',
        '<table aria-describedby="caption">',
        *table,
        "</table></div>",
        *(f"<p>{inline(line)}</p>" for line in page.remarks),
        html_figure(page.chart, "chart"),
        "<h2>What is seen</h2>",
        *(f"<p>{inline(line)}</p>" for line in page.findings),
        '<div class="maps">',
        *(html_figure(picture, "map") for picture in page.maps),
        "</div>",
        "<h2>Protocol</h2>",
        "<ul>",
        *(f"<li>{inline(line)}</li>" for line in page.protocol),
        "</ul>",
        "<h2>Versions</h2>",
        "<dl>",
        *(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in page.versions.items()),
        "</dl>",
    ]
    return html_document(page.title, parts)


def html_document(title: str, parts: Sequence[str]) -> str:
    """Return an HTML file of its own, with the style of all reports, light or dark as the reader has it.

    Example:
        >>> html_document("A & B", ["<p>Seen.</p>", ""]).count("A &amp; B")
        1
    """
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
    )
    body = "\n".join(part for part in parts if part)
    return f"{head}<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


CAPTION = (
    "Test accuracy in percent: mean over splits, sample standard deviation, half-width of the 95 % interval "
    "of the mean. Gaps are in points, paired by split, with their 95 % interval."
)


def inline(text: str) -> str:
    """Escape text and set the paper's symbols; a number and its unit stay on one line.

    Example:
        >>> inline("5 % of N_s")
        '5&nbsp;% of N<sub>s</sub>'
    """
    symbols = {
        "N_s": "N<sub>s</sub>",
        "N_g": "N<sub>g</sub>",
        " %": "&nbsp;%",
        " ±": "&nbsp;±",
        "± ": "±&nbsp;",
    }
    text = escape(text)
    for plain, shown in symbols.items():
        text = text.replace(plain, shown)
    return text


def _html_row(row: Sequence[str]) -> str:
    cells = "".join(f"<td>{inline(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{inline(row[0])}</th>{cells}</tr>'


def html_figure(picture: Picture, kind: str) -> str:
    """Return a picture with its caption; ``kind`` is a class of the style sheet.

    Example:
        >>> html_figure(Picture("dot.png", "a dot", "A dot.", b""), "map").count("figure")
        2
    """
    source = "data:image/png;base64," + base64.b64encode(picture.contents).decode()
    return (
        f'<figure class="{kind}"><img src="{source}" alt="{escape(picture.alt)}">'
        f"<figcaption>{inline(picture.caption)}</figcaption></figure>"
    )


def to_markdown(page: Page) -> str:
    """Return the page as Markdown, with its pictures as files beside it.

    Example:
        >>> dot = Picture("dot.png", "a dot", "A dot.", b"")
        >>> page = Page("Dots", "All round.", None, [["a"], ["1"]], [], ["Seen."], dot, [dot], [], {})
        >>> "![a dot](dot.png)" in to_markdown(page)
        True
    """
    heading, *rows = page.table
    rule = ["---", *["---:"] * (len(heading) - 1)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in [heading, rule, *rows])
    versions = ", ".join(f"{name} {value}" for name, value in page.versions.items())
    blocks = [
        f"# {page.title}",
        page.summary,
        f"**{page.warning}**" if page.warning else "",
        "## Results",
        table,
        CAPTION,
        *page.remarks,
        _markdown_figure(page.chart),
        "## What is seen",
        *page.findings,
        *map(_markdown_figure, page.maps),
        "## Protocol",
        "\n".join(f"- {line}" for line in page.protocol),
        f"Versions: {versions}.",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _markdown_figure(picture: Picture) -> str:
    return f"![{picture.alt}]({picture.file})\n\n*{picture.caption}*"
