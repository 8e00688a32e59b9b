"""Draws two rankings for every strategy, one that it cuts well and one that it cuts badly; what is kept, the strategy says.

python docs/_topk_plots.py docs/topk

The rankings are made up. A test draws them again and compares bytes.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.topk import ScoredItem, create_selection_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_K = 20
WIDTH, PANEL, LEFT = 780, 376, 12
TOP, HEIGHT = 62, 120  # of the bars
STRIP_TOP, STRIP = 228, 46
LINE = 216  # of words below the bars

STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:#24292f}
.paper{fill:#fff}.card{fill:#fff;stroke:#d0d7de}.small{font-size:11px;fill:#57606a}.title{font-weight:600;font-size:13px}
.kept{fill:#54aeff}.left{fill:#d5dbe1}.relevant{fill:#1a7f37}.irrelevant{fill:none;stroke:#afb8c1}
.cut{stroke:#bc4c00;stroke-width:2;stroke-dasharray:5 3}.level{stroke:#8250df;stroke-width:1.5;stroke-dasharray:2 3}
.axis{stroke:#8c959f}.value{fill:#8250df}.orange{fill:#bc4c00}.purple{fill:#8250df}.group{stroke:#8250df;stroke-width:2;fill:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.card{fill:#0d1117;stroke:#30363d}.small{fill:#9198a1}
.kept{fill:#316dca}.left{fill:#3d444d}.relevant{fill:#3fb950}.irrelevant{stroke:#656c76}.cut{stroke:#f0883e}
.level,.group{stroke:#b78cff}.axis{stroke:#656c76}.value,.purple{fill:#b78cff}.orange{fill:#f0883e}}
"""


@dataclass(frozen=True)
class Case:
    """A ranking: ``pieces`` are (how many, from, to); ``relevant`` are ranks from 1."""

    words: str
    pieces: Sequence[tuple[int, float, float]]
    relevant: Sequence[int]
    params: dict[str, Any] = field(default_factory=dict)

    def scores(self) -> list[float]:
        """Return the scores, best first, a little uneven, as those of a search are."""
        found: list[float] = []
        for count, first, last in self.pieces:
            step = (first - last) / max(count - 1, 1)
            found += [first - step * (place + (place * 7 % 5 - 2) * 0.09 * (0 < place < count - 1)) for place in range(count)]
        return [round(score, 4) for score in found]


CASES: dict[str, tuple[Case, Case]] = {
    "adaptive_k": (
        Case("a short list with one clear break", [(4, 0.92, 0.83), (5, 0.52, 0.43)], range(1, 5)),
        Case("long and smooth: widest gap on top", [(1, 0.9, 0.9), (8, 0.82, 0.66), (13, 0.64, 0.5)], range(1, 9)),
    ),
    "clustering": (
        Case(
            "the best of three levels is wanted",
            [(6, 0.93, 0.87), (7, 0.71, 0.64), (7, 0.5, 0.43)],
            [1, 2, 3, 7, 8, 9, 14, 15, 16],
        ),
        Case("close scores are one group: three kept", [(20, 0.74, 0.52)], range(1, 11)),
    ),
    "conformal": (
        Case(
            "the promised recall, from far down",
            [(4, 0.86, 0.72), (16, 0.66, 0.3)],
            [1, 2, 3, 5, 8],
            {"threshold": 0.55},
        ),
        Case("a query near everything: 17 too many", [(24, 0.84, 0.6)], [1, 2, 5], {"threshold": 0.55}),
    ),
    "elbow": (
        Case("a steep fall on a known scale", [(5, 0.91, 0.83), (17, 0.62, 0.42)], range(1, 6)),
        Case("a smooth slope: min_score alone decides", [(22, 0.86, 0.44)], range(1, 5)),
    ),
    "entropy": (
        Case("few reach min_score: no more than these", [(4, 0.82, 0.7), (16, 0.28, 0.12)], range(1, 5)),
        Case("two stand out; the sum hides it", [(2, 0.93, 0.91), (18, 0.46, 0.33)], range(1, 3)),
    ),
    "entropy_normalized": (
        Case("three stand out from an even rest", [(3, 0.9, 0.84), (17, 0.42, 0.37)], range(1, 4)),
        Case("a break at 6, but even steps: 12", [(6, 0.9, 0.78), (14, 0.66, 0.3)], range(1, 7)),
    ),
    "expected_f1": (
        Case("scores of the kind that it was fitted on", [(6, 0.88, 0.74), (14, 0.4, 0.12)], range(1, 7)),
        Case("another model, whose scores all lie high", [(5, 0.93, 0.89), (17, 0.83, 0.7)], range(1, 6)),
    ),
    "fixed_k": (
        Case("about as many relevant items as ever", [(5, 0.84, 0.7), (15, 0.6, 0.35)], [1, 2, 3, 4, 6]),
        Case("many more than usual, and plain to see", [(13, 0.9, 0.78), (9, 0.45, 0.32)], range(1, 14)),
    ),
    "largest_gap": (
        Case("one passage has the answer", [(1, 0.91, 0.91), (19, 0.58, 0.36)], [1]),
        Case("the best of nine is far ahead", [(1, 0.95, 0.95), (8, 0.76, 0.66), (11, 0.55, 0.4)], range(1, 10)),
    ),
    "otsu": (
        Case("two groups, on any scale: here BM25", [(7, 27.5, 23.0), (15, 12.5, 5.5)], range(1, 8), {"scale": "bm25"}),
        Case("no break: a line is cut halfway", [(20, 0.9, 0.42)], range(1, 4)),
    ),
    "ratio_to_top": (
        Case("a low level, the same shape", [(5, 0.44, 0.36), (15, 0.27, 0.12)], range(1, 6)),
        Case("an exact match on top hides good ones", [(1, 0.99, 0.99), (6, 0.67, 0.62), (13, 0.45, 0.3)], range(1, 8)),
    ),
    "score_threshold": (
        Case("calibrated scores", [(6, 0.86, 0.6), (14, 0.41, 0.15)], range(1, 7)),
        Case("another model: everything reaches 0.5", [(5, 0.92, 0.86), (17, 0.8, 0.62)], range(1, 6)),
    ),
}


class Panel:
    """One ranking, drawn at ``x``."""

    def __init__(self, name: str, case: Case, x: float, title: str) -> None:
        self.name, self.case, self.x, self.title = name, case, x, title
        self.strategy: Any = create_selection_strategy(name, **case.params)
        self.scores = case.scores()
        result = self.strategy.select([ScoredItem(place, score) for place, score in enumerate(self.scores)], MAX_K)
        self.kept = {one.item for one in result.selected}
        self.relevant = {rank - 1 for rank in case.relevant}
        self.metadata = result.metadata
        self.evidence = self.strategy.evidence(self.scores, MAX_K, 1)
        self.top = 1.0 if self.scores[0] <= 1 else 30.0
        self.step = (PANEL - 62) / len(self.scores)

    def draw(self) -> Iterator[str]:
        """Yield the elements: card, words, bars, the cut, the rule's own quantity."""
        yield f'<rect class="card" x="{self.x:g}" y="2" width="{PANEL}" height="{BOTTOM.get(self.name, 284) - 2}" rx="6"/>'
        yield _text(self.x + LEFT, 26, f"{self.title}: {self.case.words}", "title")
        yield _text(self.x + LEFT, 44, self.judged(), "small")
        yield from self._bars()
        yield from self._cut()
        yield from DRAWN.get(self.name, _strip)(self)

    def place(self, rank: float) -> float:
        """Return where the middle of the bar of ``rank``, from 0, is."""
        return self.x + 44 + (rank + 0.5) * self.step

    def height(self, score: float) -> float:
        """Return the ordinate of a score."""
        return TOP + HEIGHT * (1 - score / self.top)

    def f1(self) -> float:
        """Return how good the cut is."""
        return 2 * len(self.kept & self.relevant) / (len(self.kept) + len(self.relevant))

    def judged(self) -> str:
        """Return how many are kept, and how good that is."""
        hit = f"{len(self.kept & self.relevant)} of {len(self.relevant)} relevant ones among them"
        return f"keeps {len(self.kept)} of {len(self.scores)}; {hit}: F1 {self.f1():.2f}"

    def _bars(self) -> Iterator[str]:
        low, left = self.height(0), self.x + 44
        for value in (0.0, self.top / 2, self.top):
            yield _text(left - 6, self.height(value) + 4, f"{value:g}", "small", "end")
        yield f'<path class="axis" d="M{left:.1f} {low:.1f}h{PANEL - 62}"/>'
        for rank, score in enumerate(self.scores):
            y, kind = self.height(score), "kept" if rank in self.kept else "left"
            x, wide = self.place(rank) - self.step * 0.38, self.step * 0.76
            yield f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{low - y:.1f}"/>'
            judged = "relevant" if rank in self.relevant else "irrelevant"
            yield f'<circle class="{judged}" cx="{self.place(rank):.1f}" cy="{low + 10:.1f}" r="3"/>'

    def _cut(self) -> Iterator[str]:
        if self.strategy.prefix and len(self.kept) < len(self.scores):
            x = self.place(len(self.kept) - 0.5)
            yield f'<path class="cut" d="M{x:.1f} {TOP - 4}V{self.height(0):.1f}"/>'
            near_end = len(self.kept) > 0.7 * len(self.scores)
            words = f"k = {len(self.kept)}{', max_k' * (len(self.kept) == MAX_K)}"
            yield _text(x - 5 if near_end else x + 5, TOP + 5, words, "orange", "end" if near_end else "")


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    attributes = f' class="{kind}"' * bool(kind) + f' text-anchor="{anchor}"' * bool(anchor)
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(words, quote=False)}</text>'


# ------------------------------------------------------------------------------------------ the rule's own quantity


def _strip(panel: Panel) -> Iterator[str]:
    """A stem for every place where the ranking could be cut: the largest wins, or the first above the threshold."""
    found = panel.evidence
    most = max(*found.values.values(), found.threshold or 0.0, 1e-9) * 1.1
    base = STRIP_TOP + STRIP
    words = "the largest cuts" if found.threshold is None else f"the first above {found.threshold:.3g} cuts"
    if panel.name == "elbow":
        words = f"above {found.threshold:g} cuts, or a score below {panel.strategy.min_score:g}"
        yield _dotted(panel, panel.height(panel.strategy.min_score))
    yield _text(panel.x + LEFT, LINE, f"{found.unit} at each cut: {words}", "small")
    yield f'<path class="axis" d="M{panel.x + 44:.1f} {base}h{PANEL - 62}"/>'
    if found.threshold is not None:
        yield _dotted(panel, base - STRIP * found.threshold / most)
    for k, value in found.values.items():
        x, y = panel.place(k - 0.5), base - STRIP * max(value, 0.0) / most
        kind = "orange" if k == len(panel.kept) else "value"
        yield f'<rect class="{kind}" x="{x - 2:.1f}" y="{y:.1f}" width="4" height="{base - y:.1f}"/>'


def _dotted(panel: Panel, y: float) -> str:
    return f'<path class="level" d="M{panel.x + 44:.1f} {y:.1f}h{PANEL - 62}"/>'


def _level(panel: Panel) -> Iterator[str]:
    """A line at the score that is just good enough."""
    limit, words = panel.evidence.threshold, {"conformal": "the fitted threshold"}.get(panel.name, "the threshold")
    if panel.name == "ratio_to_top":
        words, limit = f"{limit:g} × the best", limit * panel.scores[0]
    yield _dotted(panel, panel.height(limit))
    yield _text(panel.x + LEFT, LINE, f"dotted: {words}, {limit:.3g}", "small")


def _gauge(panel: Panel) -> Iterator[str]:
    """A scale with the bounds between the three numbers, and where this ranking is on it."""
    strategy, value = panel.strategy, panel.metadata["entropy"]
    low, high = strategy.bounds
    end = 1.0 if high <= 1 else math.log(20)
    words = "evenness" if high <= 1 else "entropy"
    left, wide, y = panel.x + 44, PANEL - 62, STRIP_TOP + 22
    yield _text(panel.x + LEFT, LINE, f"{words} {value:.2f}, on a scale to {'1' if high <= 1 else 'ln 20'}", "small")
    yield f'<path class="axis" d="M{left:.1f} {y}h{wide}"/>'
    edges = [0.0, low, high, end]
    sizes = (strategy.low_entropy_k, strategy.medium_entropy_k, strategy.high_entropy_k)
    for begin, until, size in zip(edges, edges[1:], sizes, strict=False):
        middle = left + wide * (begin + until) / 2 / end
        yield _text(middle, y + 20, f"keep {size}" if until - begin > 0.12 * end else f"{size}", "small", "middle")
    for bound in (low, high):
        yield f'<path class="level" d="M{left + wide * bound / end:.1f} {y - 10}v20"/>'
    yield f'<circle class="orange" cx="{left + wide * min(value, end) / end:.1f}" cy="{y}" r="5"/>'


def _groups(panel: Panel) -> Iterator[str]:
    """A bracket below every cluster."""
    from jumar.topk.strategies.clustering import cluster

    strategy = panel.strategy
    valid = sum(score >= strategy.min_score for score in panel.scores)
    clusters, _ = cluster(panel.scores, valid, strategy.eps, strategy.min_cluster_size)
    y = panel.height(0) + 22
    for begin, end in clusters:
        left, right = panel.place(begin - 0.4), panel.place(end - 1 + 0.4)
        yield f'<path class="group" d="M{left:.1f} {y:.1f}v8H{right:.1f}v-8"/>'
        yield _text((left + right) / 2, y + 24, f"cluster of {end - begin}", "purple", "middle")


def _nothing(panel: Panel) -> Iterator[str]:
    yield _text(panel.x + LEFT, LINE, "the scores are not looked at", "small")


LEVELS = ("conformal", "fixed_k", "ratio_to_top", "score_threshold")

DRAWN: dict[str, Callable[[Panel], Iterator[str]]] = {
    "clustering": _groups,
    "conformal": _level,
    "entropy": _gauge,
    "entropy_normalized": _gauge,
    "fixed_k": _nothing,
    "ratio_to_top": _level,
    "score_threshold": _level,
}


BOTTOM = {"clustering": 240, "entropy": 278, "entropy_normalized": 278, **dict.fromkeys(LEVELS, 228)}
"""Where a card ends, where that is higher than for a strip."""


def _legend(y: float) -> Iterator[str]:
    x = float(LEFT)
    for kind, words in (("kept", "kept"), ("left", "left out"), ("relevant", "relevant"), ("irrelevant", "not relevant")):
        if kind in {"kept", "left"}:
            yield f'<rect class="{kind}" x="{x:g}" y="{y - 9:g}" width="10" height="10"/>'
        else:
            yield f'<circle class="{kind}" cx="{x + 5:g}" cy="{y - 4:g}" r="4"/>'
        yield _text(x + 16, y, words, "small")
        x += 34 + 7 * len(words)


def panels(name: str) -> tuple[Panel, Panel]:
    """Return the two panels of a strategy."""
    wins, loses = CASES[name]
    return Panel(name, wins, 2, "Wins"), Panel(name, loses, WIDTH - PANEL - 2, "Loses")


def alternative(name: str) -> str:
    """Return what is to be seen, for those who don't see it."""
    seen = (f"{one.title}: {one.case.words}; {one.judged()}." for one in panels(name))
    return f"Two rankings as bars, what {name} keeps in colour. {' '.join(seen)}"


def picture(name: str) -> str:
    """Return the SVG of a strategy."""
    end = BOTTOM.get(name, 284)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 24}" width="{WIDTH}" role="img">',
            f"<title>{escape(alternative(name), quote=False)}</title>",
            f"<style>{STYLE}</style>",
            '<rect class="paper" width="100%" height="100%" rx="6"/>',
            *(element for panel in panels(name) for element in panel.draw()),
            *_legend(end + 16),
            "</svg>\n",
        ]
    )


def main() -> None:
    """Draw all of them into the directory given."""
    for name in CASES:
        (Path(sys.argv[1]) / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
