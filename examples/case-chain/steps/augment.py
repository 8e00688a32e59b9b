"""Learn a little more from an expert's report: at most LIMIT facts an iteration, what the feedback misses first.

What the report states comes first. When that is used up, relations are supposed between terms that are named together, and then
between terms that are only named in one sentence: an expert tells a story from the symptom to its cause, so the later term is
taken for the cause of the earlier. Some of this is right. Much is not, and nothing here ever takes a relation back.
"""

import argparse
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

from reading import Reading, names, read, read_json, write_json

LIMIT = 3
STATED, NEIGHBOURS, SAME_SENTENCE = range(3)


class Fact(NamedTuple):
    """`source` and `target` are labels; a ROOT fact is about `source` alone."""

    kind: str
    level: int
    position: int
    source: str
    target: str = ""

    def touches(self, missing: str) -> bool:
        return any(names(missing, label) for label in (self.source, self.target) if label)


def facts(reading: Reading) -> Iterator[Fact]:
    for (cause, effect), position in reading.links.items():
        yield Fact("CAUSES", STATED, position, cause, effect)
    for (state, term), position in reading.ruled_out.items():
        yield Fact("RULES_OUT", STATED, position, state, term)
    for term, position in reading.confirmed.items():
        yield Fact("ROOT", STATED, position, term)
    for action, position in reading.actions.items():
        for root in sorted(reading.roots):
            yield Fact("FIXED_BY", STATED, position, root, action)
    for position, sentence in enumerate(reading.sentences):
        if not sentence.ruling_out and sentence.text not in reading.actions:
            for earlier, later in pairwise(sentence.names):
                yield Fact("LEADS_TO", NEIGHBOURS, position, later, earlier)
            for earlier, later in combinations(sentence.names, 2):
                yield Fact("LEADS_TO", SAME_SENTENCE, position, later, earlier)


class Graph:
    """A knowledge graph that remembers what was added to it."""

    def __init__(self, stored: dict):
        self.entities = {entity["label"]: entity for entity in stored.get("entities", [])}
        self.relations = list(stored.get("relations", []))
        self.metadata = dict(stored.get("metadata", {}))
        self.added_entities: list[str] = []
        self.updated_entities: list[str] = []
        self.added_relations: list[dict[str, str]] = []

    def entity(self, label: str, kind: str) -> str:
        if label not in self.entities:
            self.entities[label] = {"id": f"{kind.lower()}:{label.lower()}", "type": kind, "label": label}
            self.added_entities.append(self.entities[label]["id"])
        return self.entities[label]["id"]

    def knows(self, fact: Fact) -> bool:
        if fact.kind == "ROOT":
            return bool(self.entities.get(fact.source, {}).get("root_cause"))
        ends = [self.entities.get(label, {}).get("id") for label in (fact.source, fact.target)]
        if fact.kind == "LEADS_TO":  # nothing is supposed where something is known already, in either direction
            return any({each["source"], each["target"]} == set(ends) for each in self.relations)
        return any([each["source"], each["target"], each["type"]] == [*ends, fact.kind] for each in self.relations)

    def add(self, fact: Fact) -> None:
        source = self.entity(fact.source, "Component")
        if fact.kind == "ROOT":
            self.entities[fact.source]["root_cause"] = True
            if source not in self.added_entities:
                self.updated_entities.append(source)
            return
        target = self.entity(fact.target, "Action" if fact.kind == "FIXED_BY" else "Component")
        relation = {"source": source, "target": target, "type": fact.kind}
        self.relations.append(relation)
        self.added_relations.append(relation)

    def stored(self) -> dict:
        return {"entities": list(self.entities.values()), "relations": self.relations, "metadata": self.metadata}

    def diff(self) -> dict:
        parts = ("added_entities", "updated_entities", "added_relations")
        return {part: getattr(self, part) for part in parts}


def learn(graph: Graph, reading: Reading, missing: list[str], limit: int = LIMIT) -> list[Fact]:
    """Add the next facts to the graph and return them."""

    def urgency(fact: Fact) -> tuple[int, bool, int]:
        return fact.level, not any(fact.touches(element) for element in missing), fact.position

    learnt: list[Fact] = []
    for fact in sorted(facts(reading), key=urgency):
        if len(learnt) < limit and not graph.knows(fact):
            graph.add(fact)
            learnt.append(fact)
    return learnt


def missing_elements(feedback: object) -> list[str]:
    """Return every missing element of a feedback file, however deep it is in there."""
    if isinstance(feedback, dict):
        here = [str(element) for element in feedback.get("missing_elements") or []]
        return here + [element for value in feedback.values() for element in missing_elements(value)]
    return [element for value in feedback for element in missing_elements(value)] if isinstance(feedback, list) else []


def keep_fixes(before: str | None, after: str, case_id: str, subject: str, learnt: list[Fact]) -> list[str]:
    """Write the fixes that were learnt into a copy of the database; without any, the copy has the same bytes."""
    if before:
        shutil.copyfile(before, after)
    else:
        Path(after).touch()
    inserted: list[str] = []
    fixes = [fact for fact in learnt if fact.kind == "FIXED_BY"]
    if fixes:
        database = sqlite3.connect(after)
        with database:
            database.execute("CREATE TABLE IF NOT EXISTS fixes (id TEXT PRIMARY KEY, symptom TEXT, root_cause TEXT, action TEXT)")
            for fact in fixes:
                key = f"{case_id}:{fact.source}"
                row = (key, subject, fact.source, fact.target)
                if database.execute("INSERT OR IGNORE INTO fixes VALUES (?, ?, ?, ?)", row).rowcount:
                    inserted.append(key)
        database.close()
    return inserted


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("report", "case-id", "out", "diff", "fixes-out", "fixes-diff"):
        options.add_argument(f"--{name}", required=True)
    for name in ("ckg", "feedback", "fixes"):
        options.add_argument(f"--{name}")
    options.add_argument("--limit", type=int, default=LIMIT)
    given = options.parse_args()

    graph = Graph(read_json(given.ckg))
    reading = read(Path(given.report).read_text(encoding="utf-8"))
    learnt = learn(graph, reading, missing_elements(read_json(given.feedback)), given.limit)
    inserted = keep_fixes(given.fixes, given.fixes_out, given.case_id, reading.subject, learnt)
    write_json(given.out, graph.stored())
    write_json(given.diff, graph.diff())
    write_json(given.fixes_diff, {"inserted_case_ids": inserted})
    for fact in learnt:
        print(fact.kind, fact.source, fact.target)


if __name__ == "__main__":
    main()
