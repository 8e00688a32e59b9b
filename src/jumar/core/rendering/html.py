"""Templates of reports: markdown, and self-contained pages with inline style, no script, nothing fetched from anywhere.

A Content-Security-Policy in the page allows just that one style sheet, by its hash, so that not even a mistake in the escaping
could run or load anything.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jumar.core.redaction import current
from jumar.core.text import escape, escape_block, plural

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


_PUNCTUATION = r"""!"#$%&'()*+,\-./:;<=>?@\[\]\\^_`{|}~"""
_SPECIAL = re.compile(
    rf"""
      (?P<backslash>\\(?=[{_PUNCTUATION}]|$))   # would escape what follows
    | (?P<mark>[*`|]|^\[|\](?=[(\[:])|~(?![0-9])|(?<=[^ ])~)   # a bracket alone opens nothing, nor does the tilde of "~2"
    | (?P<underscore>(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))
    | (?P<lead>^(?:[#>+=-]|[0-9]{{1,9}}(?=[.)](?:\ |$))))   # a heading, quote, list or rule at the beginning of a block
    | (?P<entity>&(?=[#A-Za-z]))
    | (?P<less><(?=\S))
    | (?P<link>(?<=[A-Za-z]):(?=//)|(?<=[Ww]{{3}})\.)   # addresses become links by themselves
    | (?P<space>^\ +|\ +$)
    """,
    re.VERBOSE,
)


def _safe(match: re.Match[str]) -> str:
    found = match.group()
    match match.lastgroup:
        case "less":
            return "&lt;"
        case "entity":
            return "&amp;"
        case "space":
            return "&#32;" * len(found)
        case "lead" if found.isdigit():
            return f"&#{ord(found[0])};{found[1:]}"
        case _:
            return "\\" + found


def inline(text: str) -> str:
    r"""Return ``text`` as one line of markdown that renders as just that text, control characters shown (``\x1b``, ``\n``)."""
    return _SPECIAL.sub(_safe, escape(text))


def row(cells: Iterable[str]) -> str:
    """Return one table row; the cells are markdown already."""
    return f"| {' | '.join(cells)} |"


SHARED: Final = "jumar.core.rendering"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a page stands in: a template of ``package`` that every page extends, and the ``values`` that it is filled with.

    ``links`` is what the address of a part (an iteration, a case) begins with, empty where parts have no pages.
    """

    template: str = "document.html.j2"
    package: str = SHARED
    links: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


DOCUMENT: Final = Layout()
"""A page of its own, with its style inside: it reads the same from a file, a server or an e-mail attachment."""


def render_page(
    template: str,
    page: Mapping[str, Any],
    *,
    package: str = SHARED,
    styles: tuple[str, ...] = ("report.css",),
    layout: Layout = DOCUMENT,
) -> str:
    """Return ``template`` filled with ``page``, in ``layout``.

    ``package`` is the one whose folder ``templates`` holds the template and styles of its own; what is not there is one that all
    reports share. ``styles`` become one style sheet. Everything in ``page`` is escaped, and its control characters are shown.
    """
    from markupsafe import Markup

    css = style_sheet(package, styles)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode("ascii")
    loaded = _environment((package, layout.package), autoescape=True).get_template(template)
    return loaded.render(
        page=page,
        css=Markup(css),  # noqa: S704 - our own style sheet
        style_hash=f"sha256-{digest}",
        layout=layout.template,
        around=layout,
    )


def style_sheet(package: str, styles: tuple[str, ...]) -> str:
    """Return the styles as one sheet, each from the package's templates or from those that all share."""
    return "".join(_style(package, name) for name in styles)


def render_text(template: str, page: Mapping[str, Any], *, package: str) -> str:
    """Return the markdown ``template`` in the folder ``templates`` of ``package``, filled with ``page``.

    Nothing is escaped by itself: the filter ``inline`` is :func:`jumar.core.rendering.html.inline`.
    """
    return _environment((package,), autoescape=False).get_template(template).render(page=page)


@functools.cache
def _style(package: str, name: str) -> str:
    own = files(package).joinpath("templates", name)
    return (own if own.is_file() else files(SHARED).joinpath("templates", name)).read_text("utf-8")


@functools.cache
def _environment(packages: tuple[str, ...], *, autoescape: bool) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def visible(value: object) -> object:
        """Show control characters in whatever text is printed; the markup of our own macros stays."""
        return escape(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        loader=ChoiceLoader([PackageLoader(name, "templates") for name in dict.fromkeys((*packages, SHARED))]),
        autoescape=autoescape,  # noqa: S701 - markdown escapes its names by the filter inline
        undefined=StrictUndefined,
        finalize=visible if autoescape else None,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not autoescape,
    )
    filters: dict[str, Any] = made.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - jinja does not say what is in it
    filters |= {"inline": inline, "plural": plural, "thousands": "{:,}".format}
    return made


def block(text: str) -> Markup:
    """Return output of several lines: its line feeds stay, which a single line's would not."""
    from markupsafe import escape as escape_html

    return escape_html(escape_block(text))


_TEXTS: Final = re.compile('[^<>"]+')


def redacted(page: str) -> str:
    """Return a page without the secrets in its texts; what looks like one and goes on into the markup ends before it."""
    done = current().redact(page)
    if done is page or _TEXTS.sub("", done) == _TEXTS.sub("", page):
        return done
    return _TEXTS.sub(lambda text: current().redact(text.group()), page)
