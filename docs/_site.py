"""What MkDocs calls while it builds the site: the pages by subject, and roles that Markdown does not know."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

# A subject has its landing page and, by their file names, its own pages of each folder; what no other names is of a loop.
SUBJECTS = {
    "A loop": ("tutorial.md", set[str]()),
    "Case by case": ("cases.md", {"cases", "read-the-case-report", "run-cases"}),
    "Judging": (
        "judging.md",
        {
            "dual-mode",
            "evaluate-cheaply",
            "features",
            "judge-with-a-model",
            "judges",
            "measure-the-gap",
            "migrate-patterns",
            "rubrics",
            "what-the-gap-hides",
        },
    ),
    "Learning": (
        "learning.md",
        {"ask-only-where-needed", "learn-a-cheap-judge", "learned-judge", "learning", "what-a-proof-proves"},
    ),
    "How many to keep": ("choosing-k.md", {"choose-k", "own-strategy", "retrieval", "topk", "topk-skill"}),
    "All of it": (None, {"api", "benchmarks", "cli", "configuration", "dependencies", "differences", "exit-codes", "formats"}),
}
FOLDERS = {"How-to": "how-to", "Concepts": "concepts", "Strategies": "topk", "Reference": "reference", "Design": "design"}
_ROLE = re.compile(r":(?:class|data|exc|func|meth|mod):(?=<code>)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the files that are there."""
    docs = Path(config.docs_dir)
    subject_of = {name: subject for subject, (_, names) in SUBJECTS.items() for name in names}
    nav: list[Any] = ["index.md"]
    for subject, (landing, _) in SUBJECTS.items():
        section: list[Any] = [] if landing is None else [landing]
        for title, folder in FOLDERS.items():
            default = "How many to keep" if folder == "topk" else "A loop"
            pages = sorted((docs / folder).glob("*.md"))
            own = [path.relative_to(docs).as_posix() for path in pages if subject_of.get(path.stem, default) == subject]
            if own:
                section.append({title: own})
        nav.append({subject: section})
    config.nav = nav
    return config


def on_page_content(html: str, **_: object) -> str:
    """Drop the role of ``:class:`Name```: docstrings are read as Markdown, which knows only the backticks."""
    return _ROLE.sub("", html)
