"""What a loop gains that optimises against a learned set, in cheap score and in real score: a robust set and one that is not.

Answers whose real score is known, since it is computed: it counts the facts of an answer, and takes off for what is beside them.
Two sets are learned from such answers; then a rewriter that knows the set, and adds no fact, works against each of them in a loop
of 30 iterations, which keeps the best. What it gains in cheap score and loses in real score is what the guard is for.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from jumar.judging import CheapModeEvaluator, Item
from jumar.learning import learn

if TYPE_CHECKING:
    from timing import Row

GROUPS, EACH, FACTS, ATTACKED, ITERATIONS = 60, 4, 6, 16, 30
_SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "ki", "lo", "mu", "na", "pe", "ri", "so", "ta", "vu", "ze"]
_VERBS = ["needs", "holds", "moves", "keeps", "feeds", "limits"]
_USED_WITH_FACTS = ("for example", "in particular", "as a result", "which means", "more precisely", "by contrast")
_USED_WITHOUT = ("and so on", "or whatever", "kind of", "i guess", "stuff like that", "you know")
_BESIDE = (
    "It is a broad subject.",
    "People ask about it often.",
    "There are many views.",
    "It can vary a lot.",
    "Time will tell.",
)
REWRITER = """\
import json, os, random, sys
from pathlib import Path
from jumar.judging import CheapModeEvaluator, Item
from jumar.judging.patterns.storage import load_pattern_set
from jumar.learning.proof.attacks import ATTACKS, AttackMeans, stuffed
from jumar.learning.proof.probes import cheat_of
WORDS = ("This is worth a thought.", "Some say so, some do not.", "It goes on and on.", "One could add more here.")
MEANS = AttackMeans(
    filler=WORDS, long_words=("undoubtedly", "nonetheless", "comprehensive"), after_verb="hardly", in_front="It is false that"
)
patterns = load_pattern_set(sys.argv[1])
judge, phrases = CheapModeEvaluator(patterns, rubric="text"), cheat_of(patterns).phrases
draw = random.Random(int(os.environ["JUMAR_ITERATION"]))
def changed(item):
    if draw.random() < 0.5 and phrases:
        start = draw.randrange(max(1, len(phrases) // 2))
        return stuffed(item, phrases[start : start + draw.choice((2, 5, 12, 40))], draw)
    return ATTACKS[draw.choice(sorted(ATTACKS))](item, MEANS, draw)
rows = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
for row in rows:
    item = Item(row["id"], row["text"], row["prompt"])
    tried = [item, *(changed(item) for _ in range(8))]
    row["text"] = max((one for one in tried if len(one.text) < 20_000), key=lambda one: judge.read(one).gestalt).text
Path("answers.jsonl").write_text("".join(json.dumps(row) + chr(10) for row in rows))
"""
"""For each answer the best of eight attacks by the set itself: nobody who optimises against a score does less."""


def measure(directory: Path) -> Iterator[Row]:
    draw = random.Random(7)
    rows = [row for group in range(GROUPS + ATTACKED) for row in _answers(group, draw)]
    source = directory / "judged.jsonl"
    _write(source, rows[: GROUPS * EACH])
    new = [{key: row[key] for key in ("id", "text", "prompt", "facts")} for row in rows[GROUPS * EACH :: EACH]]
    for robust in (False, True):
        folder = directory / f"robust-{robust}"
        learn(source, f"replay:{source}", folder / "learned", max_iterations=3, robust=robust)
        heldout = json.loads((folder / "learned" / "result.json").read_text())["heldout"]
        cheap, real = _gained(folder, new)
        what = f"{ITERATIONS} iterations against a set learned {'with' if robust else 'without'} --robust"
        figures = f"cheap score {cheap[0]:.2f} → {cheap[1]:.2f}: {cheap[1] - cheap[0]:+.2f}"
        yield (
            what,
            figures,
            f"real score {real[0]:.2f} → {real[1]:.2f}: {real[1] - real[0]:+.2f}; Spearman {heldout['spearman']:.2f} held out",
            "",
        )


def _gained(folder: Path, new: list[dict]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return cheap and real score of the answers before and after the loop, from 1 to 5."""
    work = folder / "loop"
    work.mkdir()
    answers = work / "answers.jsonl"
    _write(answers, new)
    rewriter, patterns = folder / "rewrite.py", folder / "learned" / "patterns.json"
    rewriter.write_text(REWRITER)
    (work / "jumar.toml").write_text(
        f'[loop]\nobjective = "Score higher."\nmax_iterations = {ITERATIONS}\n'
        f'[generator]\ncommand = "{sys.executable} {rewriter} {patterns}"\n'
        '[selection]\nmode = "highest_quality"\n'
        f'[evaluator]\nmode = "cheap"\nitems = "answers.jsonl"\npatterns = "{patterns}"\nallow_gameable = true\n'
    )
    before = _scores(answers, patterns)
    ran = subprocess.run([Path(sys.executable).with_name("jumar"), "run"], cwd=work, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"the loop ended with {ran.returncode}: {ran.stderr[-500:]}")
    after = _scores(answers, patterns)
    return (before[0], after[0]), (before[1], after[1])


def _scores(path: Path, patterns: Path) -> tuple[float, float]:
    """Return the means of the cheap and of the real score of the answers as they are."""
    judge = CheapModeEvaluator(patterns, rubric="text")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    cheap = [judge.read(Item(row["id"], row["text"], row["prompt"])).gestalt for row in rows]
    return fmean(cheap), fmean(real_score(row["text"], row["facts"]) for row in rows)


def real_score(text: str, facts: list[str]) -> float:
    """Return what an answer is worth, from 1 to 5: its facts, each once, less a point a hundred words beside them, 2 at most."""
    there = [fact for fact in facts if fact in text]
    beside = len(text.split()) - sum(len(fact.split()) for fact in there)
    return min(5.0, max(1.0, 1.0 + 4.0 * len(there) / FACTS - min(2.0, max(0, beside - 60) / 100)))


def _answers(group: int, draw: random.Random) -> Iterator[dict]:
    words = ["".join(draw.choices(_SYLLABLES, k=3)) for _ in range(2 * FACTS)]
    facts = [f"The {words[2 * at]} {draw.choice(_VERBS)} the {words[2 * at + 1]}." for at in range(FACTS)]
    prompt = f"Explain how {', '.join(words[::2])} work together."
    for number in range(EACH):
        known = draw.sample(facts, draw.randrange(FACTS + 1))
        parts = [*known, *draw.sample(_BESIDE, draw.randrange(len(_BESIDE) + 1))]
        for phrases, chance in ((_USED_WITH_FACTS, len(known) / FACTS), (_USED_WITHOUT, 1 - len(known) / FACTS)):
            parts += [f"That is so, {one}." for one in phrases if draw.random() < 0.5 * chance]
        draw.shuffle(parts)
        text = " ".join(parts)
        read = [min(5.0, max(1.0, real_score(text, facts) + draw.gauss(0, 0.5))) for _ in range(2)]
        names = {"id": f"a{group}-{number}", "group": f"q{group}", "prompt": prompt, "text": text}
        yield {**names, "facts": facts, "judge_scores": read}


def _write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
