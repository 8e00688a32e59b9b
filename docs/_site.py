"""What MkDocs calls while it builds the site: the order of the pages, and roles that Markdown does not know."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

# First the pages that are read in order; the others of a section follow by name.
SECTIONS = {
    "How-to": "how-to",
    "Concepts": "concepts",
    "Choosing k": "topk",
    "Reference": "reference",
    "Design": "design",
}
FIRST = ["index.md", "tutorial.md", "cases.md", "judging.md", "learning.md", "choosing-k.md"]
_ROLE = re.compile(r":(?:class|data|exc|func|meth|mod):(?=<code>)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the files that are there."""
    docs = Path(config.docs_dir)
    nav: list[Any] = [name for name in FIRST if (docs / name).exists()]
    for title, folder in SECTIONS.items():
        pages = sorted(path.relative_to(docs).as_posix() for path in (docs / folder).glob("*.md"))
        if pages:
            nav.append({title: pages})
    config.nav = nav
    return config


def on_page_content(html: str, **_: object) -> str:
    """Drop the role of ``:class:`Name```: docstrings are read as Markdown, which knows only the backticks."""
    return _ROLE.sub("", html)
