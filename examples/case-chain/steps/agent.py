"""Diagnose a query from the knowledge graph alone, by the chain of causes that names the most of what is seen and the least else.

A cause is followed to its own cause for as long as the graph has one, like an engineer who goes on asking why. What a seen state
rules out is never a cause. A second chain is told when it shares nothing but the symptom with the first.
"""

import argparse
from collections import defaultdict
from itertools import islice
from pathlib import Path

from reading import names, read_json, terms

LONGEST = 8
WIDTH = 40
NOTHING = "# Diagnosis\n\nAbstained: the graph knows no cause of anything in the query.\n"


class Knowledge:
    def __init__(self, graph: dict, query: str):
        self.lines = [line.strip() for line in query.splitlines() if line.strip()]
        labels = {entity["id"]: entity["label"] for entity in graph["entities"]}
        self.roots = {entity["label"] for entity in graph["entities"] if entity.get("root_cause")}
        self.seen = {label for label in labels.values() if any(names(line, label) for line in self.lines)}
        self.causes: dict[str, list[str]] = defaultdict(list)
        self.ruled_out: dict[str, str] = {}
        self.fixes: dict[str, list[str]] = defaultdict(list)
        for relation in graph["relations"]:
            source, target = labels[relation["source"]], labels[relation["target"]]
            if relation["type"] in {"CAUSES", "LEADS_TO"}:
                self.causes[target].append(source)
            elif relation["type"] == "FIXED_BY":
                self.fixes[source].append(target)
            elif any(names(line, source) and names(line, target) for line in self.lines):
                self.ruled_out[target] = source

    def worth(self, chain: tuple[str, ...]) -> int:
        return sum(1 if label in self.seen or label in self.roots else -1 for label in chain)

    def explanations(self, symptom: str) -> list[tuple[str, ...]]:
        """Return chains symptom → … → first cause that cannot be followed any further, the best first."""
        ended: list[tuple[str, ...]] = []
        growing: list[tuple[str, ...]] = [(symptom,)]
        while growing:
            longer: list[tuple[str, ...]] = []
            for chain in growing:
                further = [cause for cause in self.causes[chain[-1]] if cause not in chain and cause not in self.ruled_out]
                longer += [(*chain, cause) for cause in further]
                if len(chain) > 1 and (not further or len(chain) == LONGEST):
                    ended.append(chain)
            growing = sorted((chain for chain in longer if len(chain) <= LONGEST), key=self.rank)[:WIDTH]
        return sorted(ended, key=self.rank)

    def rank(self, chain: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
        return -self.worth(chain), len(chain), chain


def diagnose(graph: dict, query: str) -> str:
    known = Knowledge(graph, query)
    for symptom in dict.fromkeys(term for line in known.lines for term in terms(line)):
        explanations = known.explanations(symptom)
        if explanations:
            break
    else:
        return NOTHING
    first = explanations[0]
    apart = (other for other in explanations if not set(other[1:]) & set(first) and other[-1] in known.seen | known.roots)
    chains = [first, *islice(apart, 1)]
    roots = [chain[-1] for chain in chains]
    sections = {
        "Root Cause": roots,
        "Causal Chain": [" → ".join(reversed(chain)) for chain in chains],
        "Facts": [line for line in known.lines if any(names(line, label) for label in known.seen)],
        "Ruled Out": [f"{term} ({state})" for term, state in known.ruled_out.items()],
        "Next Steps": [action for root in roots for action in known.fixes[root]] or [f"Look at {root} first." for root in roots],
    }
    shown = (f"\n## {title}\n" + "".join(f"- {item}\n" for item in items or ["none"]) for title, items in sections.items())
    return "# Diagnosis\n" + "".join(shown)


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("ckg", "query", "out"):
        options.add_argument(f"--{name}", required=True)
    given = options.parse_args()
    report = diagnose(read_json(given.ckg), Path(given.query).read_text(encoding="utf-8"))
    Path(given.out).write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
