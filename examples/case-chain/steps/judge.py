"""Compare the agent's report with the expert's by rules: causes named, links in order, figures, evidence, what to do."""

import argparse
import re
from pathlib import Path

from reading import CJK, Reading, figures, names, read, terms, write_json

WEIGHTS = {
    "Root Cause Accuracy": 0.5,
    "Causal Chain Completeness": 0.2,
    "Metric Precision": 0.15,
    "Reasoning Quality": 0.1,
    "Actionability": 0.05,
}
GRADES = ((9, "A"), (8, "B"), (6.5, "C"), (5, "D"), (0, "F"))


def sections(report: str) -> dict[str, list[str]]:
    """Return the lines of each section of the agent's report; a missing section has none."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in report.splitlines():
        if line.startswith("## "):
            current = found.setdefault(line[3:].strip(), [])
        elif line.startswith("- ") and line != "- none":
            current.append(line[2:])
    return found


def in_order(line: str, cause: str, effect: str) -> bool:
    told = [part.strip() for part in line.split("→")]
    return cause in told and effect in told and told.index(cause) < told.index(effect)


def words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(rf"[A-Za-z][A-Za-z0-9_-]{{3,}}|[{CJK}]{{2}}", text)}


def dimension(name: str, expected: set[str], matched: set[str], wrong: int = 0) -> dict:
    """Score what was found among what is expected or wrong. Where there is neither, nothing is missing."""
    counted = len(expected) + wrong
    score = 10 * len(matched) / counted if counted else 10
    return {
        "name": name,
        "score": round(score, 2),
        "weight": WEIGHTS[name],
        "explanation": f"{len(matched)} of {len(expected)} found" + (f", {wrong} wrong" if wrong else ""),
        "matched_elements": sorted(matched),
        "missing_elements": sorted(expected - matched),
    }


def judge(expert: Reading, expert_text: str, agent_text: str) -> list[dict]:
    told = sections(agent_text)
    named = set(told.get("Root Cause", []))
    links = {f"{cause} → {effect}": (cause, effect) for cause, effect in expert.links}
    numbers = figures(expert_text)
    ruled_out = {term for _, term in expert.ruled_out}
    evidence = {term for sentence in expert.sentences for term in sentence.names} - ruled_out
    shown = "\n".join([*told.get("Facts", []), *told.get("Causal Chain", [])])
    dismissed = {term for line in told.get("Ruled Out", []) for term in terms(line)[:1]}
    wanted = {word for action in expert.actions for word in words(action)}
    advice = words("\n".join(told.get("Next Steps", [])))
    return [
        dimension("Root Cause Accuracy", expert.roots, expert.roots & named, len(named - expert.roots)),
        dimension(
            "Causal Chain Completeness",
            set(links),
            {shown for shown, link in links.items() if any(in_order(line, *link) for line in told.get("Causal Chain", []))},
        ),
        dimension("Metric Precision", numbers, numbers & figures("\n".join(told.get("Facts", [])))),
        dimension(
            "Reasoning Quality",
            evidence | {f"not {term}" for term in ruled_out},
            {term for term in evidence if names(shown, term)} | {f"not {term}" for term in ruled_out & dismissed},
        ),
        dimension("Actionability", wanted, wanted & advice),
    ]


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("report", "agent-report", "case-name", "out"):
        options.add_argument(f"--{name}", required=True)
    given = options.parse_args()
    expert_text = Path(given.report).read_text(encoding="utf-8")
    dimensions = judge(read(expert_text), expert_text, Path(given.agent_report).read_text(encoding="utf-8"))
    composite = round(sum(each["score"] * each["weight"] for each in dimensions), 2)
    result = {
        "case_name": given.case_name,
        "composite_score": composite,
        "grade": next(grade for least, grade in GRADES if composite >= least),
        "summary": "; ".join(f"{each['name']}: {each['explanation']}" for each in dimensions),
        "dimensions": dimensions,
    }
    write_json(given.out, result)


if __name__ == "__main__":
    main()
