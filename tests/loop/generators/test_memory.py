"""The reflections that fit a pass: which are gathered, which are found, what the prompt says, and what happens when it fails."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
from loops import jumar, jumar_json, write_loop
from prompted import render_feedback, render_prompt

from jumar.app.config.config import parse_config
from jumar.app.config.tables import MemoryConfig
from jumar.app.run.parts import NoteMemory, build_memory, embed_words
from jumar.errors import ConfigError
from jumar.loop.generators.memory import Note, Notebook, question
from jumar.loop.store.layout import loops_directory, prepare_root
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Analysis, CheckResult, IterationRecord

LESSONS = (
    "the parser loses the last line when the file has no newline at its end",
    "the login page takes four seconds to load",
    "customers asked for invoices as PDF",
)


def note(text: str, *, loop: str = "t", iteration: int = 1, score: float | None = 50.0) -> Note:
    return Note(loop_id=loop, iteration=iteration, score=score, text=text)


def recorded(root: Path, loop: str, reflections: list[list[str]]) -> LoopStore:
    """A loop with an iteration for each list of reflections."""
    prepare_root(root)
    store = LoopStore.create(loops_directory(root) / loop, loop, {}, workdir=None, created_at="2026-01-01T00:00:00Z")
    with store.lock():
        for number, texts in enumerate(reflections):
            record = IterationRecord(
                iteration_number=number, timestamp="t", quality_score=10.0 * number, reflections=tuple(texts)
            )
            store.add(record, source=root, paths=[])
    return store


# ---------------------------------------------------------------------------------------------------------- gathering


def test_notes_are_newest_first_each_text_once_and_those_of_other_loops_come_last(tmp_path):
    store = recorded(tmp_path, "mine", [["start"], ["a", "b"], ["b", " "], ["last"]])
    recorded(tmp_path, "other", [["x"], ["a"]])
    (loops_directory(tmp_path) / "broken").mkdir()
    (loops_directory(tmp_path) / "broken" / "loop.json").write_text("{")

    def texts(*numbers, everywhere):
        return [(one.loop_id, one.iteration, one.text) for one in Notebook().gather(store, numbers, everywhere=everywhere)]

    assert [("mine", 2, "b"), ("mine", 1, "a"), ("mine", 0, "start")] == texts(0, 1, 2, everywhere=False)
    assert [("mine", 2, "b"), ("mine", 1, "a"), ("mine", 0, "start"), ("other", 0, "x")] == texts(0, 1, 2, everywhere=True)
    assert [("mine", 3, "last"), ("mine", 0, "start")] == texts(0, 3, everywhere=False)
    assert [] == texts(everywhere=False)
    reader = LoopReader(store.paths.directory)
    assert [10.0, 0.0] == [one.score for one in Notebook().gather(reader, (0, 1), everywhere=False) if one.text != "b"]


def added(store: LoopStore, root: Path, number: int, text: str) -> None:
    with store.lock():
        record = IterationRecord(iteration_number=number, timestamp="t", quality_score=1.0, reflections=(text,))
        store.add(record, source=root, paths=[])


def test_a_record_is_read_once_in_a_run_and_what_is_new_is_read_when_it_comes(tmp_path, monkeypatch):
    store = recorded(tmp_path, "mine", [["start"], ["a"], ["last"]])
    other = recorded(tmp_path, "other", [["x"], ["y"]])
    reads: list[tuple[str, int]] = []
    record = LoopReader.record
    monkeypatch.setattr(
        LoopReader,
        "record",
        lambda self, number, **named: (reads.append((self.loop_id, number)), record(self, number, **named))[1],
    )
    notebook = Notebook()

    def texts():
        return [one.text for one in notebook.gather(store, (0, 1), everywhere=True)]

    assert ["a", "start", "y", "x"] == texts() == texts()
    assert [("mine", 1), ("mine", 0), ("other", 1), ("other", 0)] == reads
    added(other, tmp_path, 2, "z")
    recorded(tmp_path, "third", [["new"]])
    reads.clear()
    assert ["a", "start", "new", "z", "y", "x"] == texts() == texts()
    assert [("third", 0), ("other", 2)] == reads
    shutil.rmtree(loops_directory(tmp_path) / "third")
    shutil.rmtree(loops_directory(tmp_path) / "other")
    recorded(tmp_path, "other", [["another"]])
    reads.clear()
    assert ["a", "start", "another"] == texts() == texts()
    assert [("other", 0)] == reads


def test_a_text_is_embedded_once_as_long_as_it_is_among_the_notes():
    asked: list[list[str]] = []

    def embed(texts):
        asked.append(list(texts))
        return embed_words(texts)

    memory = NoteMemory(embed=embed, config=MemoryConfig().retrieval())
    found = [
        [one.text for one in memory.recall("the parser and the page", [note(LESSONS[place]) for place in places], turn="t:1")]
        for places in ([0], [0, 1], [1], [0, 1])
    ]

    assert [["the parser and the page", *map(LESSONS.__getitem__, new)] for new in ([0], [1], [], [0])] == asked
    assert found[1] == found[3]


def test_a_question_is_the_objective_and_what_is_wrong_each_once():
    last = IterationRecord(
        iteration_number=1,
        timestamp="t",
        quality_score=1.0,
        checks=(CheckResult(name="lint", passed=True), CheckResult(name="tests", passed=False)),
        reflections=("check 'tests' fails", "clarity 0.40: long sentences"),
        dimensions=MappingProxyType({}),
        analysis=Analysis(errors=("Traceback",)),
    )

    assert "Fix it\ncheck 'tests' fails\nclarity 0.40: long sentences\nTraceback" == question(" Fix it ", last)
    assert "" == question("", None)


# ------------------------------------------------------------------------------------------------------------ finding


def test_words_find_what_names_the_same_things():
    memory = NoteMemory(embed=embed_words, config=MemoryConfig().retrieval())
    notes = [note(text) for text in LESSONS]

    assert [LESSONS[0]] == [one.text for one in memory.recall("test_parser fails: the last line of the file", notes, turn="t:1")]
    assert [] == memory.recall("zebra", notes, turn="t:1")
    assert [] == memory.recall("…", notes, turn="t:1")
    assert [] == memory.recall("parser", [note("—")], turn="t:1")
    assert [] == memory.recall("parser", [], turn="t:1")


def test_a_real_model_finds_what_means_the_same():
    model = pytest.importorskip("static_model", reason="a real embedding model: tokenlearn-static-model")
    config = MemoryConfig(min_k=1, max_k=2).retrieval()
    memory = NoteMemory(embed=model.get_embeddings, config=config)
    notes = [note(text) for text in LESSONS]

    queries = ["reading a text file drops its final row", "web page slow to open", "clients want their bills as documents"]

    assert list(LESSONS) == [memory.recall(query, notes, turn="t:1")[0].text for query in queries]


def test_the_limits_and_the_strategy_are_the_settings():
    def kept(**options):
        memory = NoteMemory(embed=embed_words, config=MemoryConfig(**options).retrieval())
        return len(memory.recall("the file", [note(f"the file {number}") for number in range(9)], turn="t:1"))

    assert [8, 3, 2, 1] == [
        kept(),
        kept(max_k=3),
        kept(candidate_k=2),
        kept(selection={"strategy": "fixed_k", "k": 1}),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("embedder = 'sentences'", r"jumar\.toml.*memory\.embedder: give 'words', or 'module:function'"),
        ("min_k = 9", r"memory: min_k is 9: at most max_k and candidate_k"),
        ("selection = {strategy = 'otus'}", r"memory\.selection: strategy: unknown strategy 'otus' \(did you mean 'otsu'\?\)"),
        ("selection = {min_scor = 0.2}", r"memory\.selection: min_scor: unknown key for the strategy 'otsu' \(did you mean"),
        ("selection = {strategy = 'adaptive_k', alpha = 9}", r"memory\.selection: alpha is 9: allowed: numbers from 0\.5 to 5"),
    ],
)
def test_a_mistake_in_the_table_says_what_is_allowed(tmp_path, options, message):
    path = write_loop(tmp_path, [0.5], extra=f"[memory]\n{options}\n")
    done = jumar(tmp_path, "run", check=2)

    assert path.exists()
    assert re.search(message, done.stderr), done.stderr


def test_a_memory_is_off_unless_it_is_asked_for(tmp_path):
    data = {"generator": {"command": "true"}, "validators": [{"name": "a", "command": "true"}]}

    assert build_memory(parse_config(data, "jumar.toml").memory, tmp_path) is None
    assert isinstance(build_memory(MemoryConfig(enabled=True, loops="this"), tmp_path), NoteMemory)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "cannot be loaded: ModuleNotFoundError"),
        ("raise ValueError('no weights')", "cannot be loaded: ValueError: no weights"),
        ("embed = 3", "is no function: it takes a list of texts"),
    ],
)
def test_an_embedder_that_is_none_is_refused_before_anything_is_paid_for(tmp_path, monkeypatch, source, message):
    name = f"embedding_{abs(hash(message))}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    if source is not None:
        (tmp_path / f"{name}.py").write_text(source)
    before = list(sys.path)
    with pytest.raises(ConfigError, match=message):
        build_memory(MemoryConfig(enabled=True, embedder=f"{name}:embed"), tmp_path)

    assert before == sys.path


# --------------------------------------------------------------------------------------------------------- the prompt


def test_the_prompt_and_the_feedback_carry_the_notes():
    notes = [note("shorter\nsentences", loop="doc`s", iteration=3, score=71.5), note("no tables", score=None)]
    prompt = render_prompt(objective="x", iteration=1, memory=notes)
    feedback = json.loads(render_feedback(loop_id="t", iteration=1, memory=notes))

    assert (
        "## From earlier iterations, what fits best first\n\n"
        "- shorter sentences (loop `doc's`, iteration 3)\n- no tables (loop `t`, iteration 1)\n"
    ) in prompt
    assert [
        {"loop": "doc`s", "iteration": 3, "score": 71.5, "text": "shorter\nsentences"},
        {"loop": "t", "iteration": 1, "score": None, "text": "no tables"},
    ] == feedback["memory"]
    assert "memory: - shorter" in render_prompt(objective="x", iteration=1, memory=notes, template="memory: $memory")


def prompts(directory: Path, loop: str = "t") -> list[str]:
    iterations = directory / ".jumar" / "loops" / loop / "iterations"
    return [(one / "logs" / "prompt.md").read_text() for one in sorted(iterations.iterdir())]


def test_a_run_remembers_what_another_loop_learned(tmp_path):
    write_loop(tmp_path, [0.5, 0.6], extra="[memory]\nenabled = true\n")
    root = tmp_path / ".jumar"
    recorded(root, "earlier", [["check 'text' fails because an iteration must make it better"], ["invoices as PDF"]])
    jumar_json(tmp_path, "run")
    start, *passes = prompts(tmp_path)

    assert "From earlier iterations" not in start
    assert [True, True] == ["make it better (loop `earlier`, iteration 0)" in one for one in passes]
    assert [False, False] == ["invoices" in one for one in passes]


def test_a_memory_that_fails_is_told_and_the_passes_go_on(tmp_path):
    (tmp_path / "broken_embedder.py").write_text("def embed(texts):\n    raise RuntimeError('out of memory')\n")
    write_loop(tmp_path, [0.5], extra="[memory]\nenabled = true\nembedder = 'broken_embedder:embed'\n")
    recorded(tmp_path / ".jumar", "earlier", [["make it better"]])
    done = jumar(tmp_path, "run", check=0)

    assert "the memory failed and the prompt goes without: RuntimeError: out of memory; see [memory] embedder" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert ["From earlier iterations" in one for one in prompts(tmp_path)] == [False, False]


def test_the_page_shows_what_happens(tmp_path):
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "remember.md").read_text(encoding="utf-8")
    config, agent, readable, shown = re.findall(r"```(?:toml|sh|markdown)\n(.*?)```", page, re.DOTALL)
    for name, text in (("jumar.toml", config), ("agent.sh", agent), ("readable.sh", readable)):
        assert text.startswith(f"# {name}")
        (tmp_path / name).write_text(text)

    def scores(loop: str) -> str:
        jumar(tmp_path, "run", "--id", loop, check=0)
        found = [record.quality_score for record in LoopReader(tmp_path / ".jumar" / "loops" / loop).records()]
        (tmp_path / "report.md").unlink()
        return ", ".join(f"{score:g}" for score in found if score is not None)

    for loop in ("march", "april"):
        assert f"jumar run --id {loop}          # {scores(loop)}:" in page
    assert shown.strip() in prompts(tmp_path, "april")[1]
    assert "From earlier iterations" not in prompts(tmp_path, "march")[1]
