"""[pipeline.retrieval] in layers: what the seed's file and its variables mean, and what is said about mistakes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.errors import ConfigError
from jumar.topk import create_selection_strategy
from jumar.topk.config import (
    AdaptiveKSelectionConfig,
    ClusterSelectionConfig,
    ElbowSelectionConfig,
    EntropySelectionConfig,
    FixedKSelectionConfig,
    RetrievalConfig,
    Settings,
)
from jumar.topk.settings import SettingsWarning, load_retrieval, load_settings

SEED = """\
[pipeline.retrieval]
embedding_provider = "default"
max_k = 30                       # up to 30 candidates
min_k = 1

[pipeline.retrieval.rule_selection]
strategy = "adaptive_k"
alpha = 1.5
min_score = 0.5

[pipeline.retrieval.scenario_selection]
strategy = "entropy"
low_entropy_k = 1
medium_entropy_k = 2
high_entropy_k = 3
min_score = 0.6

[pipeline.retrieval.memory_selection]
strategy = "clustering"
eps = 0.1
min_cluster_size = 2
top_per_cluster = 3
min_score = 0.4
"""
RULE = "JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION__"


def wrote(text: str, name: str = "default.toml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def refused(*files: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(*files, environ=environ or {})
    return str(caught.value)


def told(*files: str, environ: dict[str, str]) -> tuple[RetrievalConfig, list[str]]:
    with pytest.warns(SettingsWarning) as caught:
        config = load_retrieval(*files, environ=environ)
    assert {__file__} == {one.filename for one in caught}, "a warning points at the caller"
    return config, [str(one.message) for one in caught]


# ---------------------------------------------------------------------------------------------------------- one file


def test_the_seeds_file():
    assert Settings.model_validate(
        {
            "pipeline": {
                "retrieval": RetrievalConfig(
                    max_k=30,
                    rule_selection=AdaptiveKSelectionConfig(alpha=1.5, min_score=0.5),
                    scenario_selection=EntropySelectionConfig(
                        low_entropy_k=1, medium_entropy_k=2, high_entropy_k=3, min_score=0.6
                    ),
                    memory_selection=ClusterSelectionConfig(),
                )
            }
        }
    ) == load_settings(wrote(SEED), environ={})


def test_without_a_file_and_without_variables_the_built_in_settings():
    assert RetrievalConfig() == load_retrieval(environ={})


def test_a_table_that_names_a_strategy_has_the_strategys_defaults_and_one_that_does_not_the_built_in_ones():
    named = load_retrieval(wrote('[pipeline.retrieval.rule_selection]\nstrategy = "adaptive_k"\n'), environ={})
    unnamed = load_retrieval(wrote("[pipeline.retrieval.rule_selection]\nalpha = 3\n"), environ={})
    scenarios = load_retrieval(wrote("[pipeline.retrieval.scenario_selection]\nhigh_entropy_k = 4\n"), environ={})

    assert AdaptiveKSelectionConfig() == named.rule_selection
    assert AdaptiveKSelectionConfig(alpha=3) == unnamed.rule_selection
    assert (
        EntropySelectionConfig(low_entropy_k=1, medium_entropy_k=2, high_entropy_k=4, min_score=0.6)
        == scenarios.scenario_selection
    )


def test_tables_of_others_are_none_of_our_business():
    assert (
        7
        == load_retrieval(
            wrote("[log]\nlevel = 1\n[pipeline.generation]\nx = 1\n[pipeline.retrieval]\nmax_k = 7\n"), environ={}
        ).max_k
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alpha = 9.0", "default.toml:2: pipeline.retrieval.rule_selection.alpha is 9.0: allowed: numbers from 0.5 to 5"),
        ('alpha = "2"', "default.toml:2: pipeline.retrieval.rule_selection.alpha is '2': allowed: numbers from 0.5 to 5"),
        ("alpha = nan", "default.toml:2: pipeline.retrieval.rule_selection.alpha is nan: allowed: numbers from 0.5 to 5"),
        (
            "min_score = 1.5",
            (
                "default.toml:2: pipeline.retrieval.rule_selection.min_score is 1.5: allowed: from 0 to 1 for scale "
                "'similarity'; other scores need their scale beside it"
            ),
        ),
        (
            "alhpa = 1.5",
            (
                "default.toml:2: pipeline.retrieval.rule_selection.alhpa: unknown key for the strategy 'adaptive_k' (did you "
                "mean 'alpha'?); known here: alpha, min_score, scale, strategy"
            ),
        ),
        (
            'strategy = "entropie"',
            (
                "default.toml:2: pipeline.retrieval.rule_selection.strategy: unknown strategy 'entropie' (did you mean "
                "'entropy'?); there are: adaptive_k, clustering, conformal, elbow, entropy, entropy_normalized, expected_f1, "
                "fixed_k, largest_gap, otsu, ratio_to_top, score_threshold"
            ),
        ),
        (
            'strategy = "elbow"\ndrop_threshold = 1',
            "default.toml:3: pipeline.retrieval.rule_selection.drop_threshold is 1: allowed: numbers above 0 and below 1",
        ),
        (
            'strategy = "fixed_k"\nk = 0',
            "default.toml:3: pipeline.retrieval.rule_selection.k is 0: allowed: whole numbers from 1",
        ),
        (
            'scale = "cosine"',
            (
                "default.toml:2: pipeline.retrieval.rule_selection.scale is 'cosine': allowed: 'similarity', 'distance', 'bm25', "
                "'rrf', 'logit'"
            ),
        ),
        (
            'strategy = "entropy"\nlow_entropy_k = 7',
            (
                "default.toml:2, default.toml:3: pipeline.retrieval.rule_selection: low_entropy_k, medium_entropy_k and "
                "high_entropy_k are 7, 5 and 10: less certain queries get as many items or more, so low ≤ medium ≤ high"
            ),
        ),
    ],
)
def test_a_mistake_in_a_selection_names_the_line_the_key_and_what_is_allowed(text, expected):
    assert expected == refused(wrote("[pipeline.retrieval.rule_selection]\n" + text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_k = 0", "default.toml:2: pipeline.retrieval.max_k is 0: allowed: whole numbers from 1"),
        ("min_k = 21", "default.toml:2: pipeline.retrieval.min_k is 21: allowed: from 0 to max_k, which is 20"),
        (
            "min_k = 5\ncandidate_k = 4",
            "default.toml:3: pipeline.retrieval.candidate_k is 4: allowed: min_k, which is 5, or more",
        ),
        ("embedding_provider = 5", "default.toml:2: pipeline.retrieval.embedding_provider is 5: allowed: text"),
        (
            'embedding_provider = "defualt"',
            (
                "default.toml:2: pipeline.retrieval.embedding_provider is 'defualt': no such embedding provider (did you mean "
                "'default'?); known are: default; others are registered with jumar.topk.register_embeddings, or named "
                "'module:function'"
            ),
        ),
        (
            'embedding_provider = "nowhere:embed"',
            (
                "default.toml:2: pipeline.retrieval.embedding_provider is 'nowhere:embed': it cannot be loaded "
                "(ModuleNotFoundError: No module named 'nowhere'); known are: default"
            ),
        ),
        (
            'embedding_provider = "math:pi"',
            (
                "default.toml:2: pipeline.retrieval.embedding_provider is 'math:pi': it is no function: it takes a list of texts "
                "and returns their vectors"
            ),
        ),
        ('rule_selection = "otsu"', "default.toml:2: pipeline.retrieval.rule_selection is 'otsu': allowed: a table"),
        (
            "maxk = 4",
            (
                "default.toml:2: pipeline.retrieval.maxk: unknown key (did you mean 'max_k'?); known here: candidate_k, "
                "embedding_provider, max_k, memory_selection, min_k, rule_selection, scenario_selection"
            ),
        ),
    ],
)
def test_a_mistake_in_the_limits_names_the_line_the_key_and_what_is_allowed(text, expected):
    assert expected == refused(wrote("[pipeline.retrieval]\n" + text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[pipline.retrieval]\nmax_k = 3\n", "default.toml: unknown table 'pipline' (did you mean 'pipeline'?)"),
        ("[pipeline.retreival]\nmax_k = 3\n", "default.toml:1: unknown table 'pipeline.retreival' (did you mean 'retrieval'?)"),
        ("pipeline = 3\n", "default.toml:1: 'pipeline' must be a table"),
        ("[pipeline]\nretrieval = 3\n", "default.toml:2: 'pipeline.retrieval' must be a table"),
    ],
)
def test_a_misspelt_table_is_not_passed_over(text, expected):
    assert expected == refused(wrote(text))


def test_every_mistake_is_told_at_once():
    lines = refused(wrote("[pipeline.retrieval]\nmax_k = 0\n[pipeline.retrieval.memory_selection]\neps = 0\n")).splitlines()

    assert ["default.toml:2", "default.toml:4"] == [line.split(": ")[0] for line in lines]


@pytest.mark.parametrize(("text", "message"), [(None, "no such file"), ("a = ", "not valid TOML")])
def test_a_file_that_cannot_be_read(text, message):
    name = "gone.toml" if text is None else wrote(text)

    assert re.match(rf"{name}: {message}", refused(name))


def test_what_tune_wrote_is_not_taken_for_settings():
    expected = "topk.toml: this is a selection that `jumar topk tune` found; copy its [selection] into a file of settings"

    assert expected == refused(wrote('[selection]\nstrategy = "elbow"\n', "topk.toml"))[: len(expected)]


# ------------------------------------------------------------------------------------------------------- environment


def test_the_seeds_variables():
    config, said = told(
        wrote(SEED),
        environ={RULE + "STRATEGY": "entropy", RULE + "LOW_ENTROPY_K": "5", RULE + "MIN_SCORE": "0.6", RULE + "ALPHA": "2.0"},
    )

    assert EntropySelectionConfig(low_entropy_k=5, min_score=0.6) == config.rule_selection
    assert [
        f"{RULE}STRATEGY: the strategy of rule_selection is now 'entropy', which has no alpha (default.toml:8): dropped",
        f"{RULE}ALPHA is ignored: rule_selection has the strategy 'entropy', which has no 'alpha'",
    ] == said


def test_a_single_field_alone():
    config = load_retrieval(wrote(SEED), environ={RULE + "ALPHA": "2.0"})

    assert AdaptiveKSelectionConfig(alpha=2.0, min_score=0.5) == config.rule_selection
    assert AdaptiveKSelectionConfig(alpha=2.0) == load_retrieval(environ={RULE + "ALPHA": "2"}).rule_selection


def test_a_change_of_strategy_keeps_what_both_know_and_says_so():
    config, said = told(wrote(SEED), environ={RULE + "STRATEGY": "elbow"})

    assert ElbowSelectionConfig(drop_threshold=0.15, min_score=0.5) == config.rule_selection
    assert [
        (
            f"{RULE}STRATEGY: the strategy of rule_selection is now 'elbow', which has no alpha (default.toml:8): dropped; "
            "still in force: min_score"
        )
    ] == said


def test_without_a_file_a_change_of_strategy_needs_no_words():
    assert EntropySelectionConfig() == load_retrieval(environ={RULE + "STRATEGY": "entropy"}).rule_selection


def test_the_same_strategy_again_drops_nothing():
    config = load_retrieval(wrote(SEED), environ={RULE + "STRATEGY": "adaptive_k", RULE + "MIN_SCORE": "none"})

    assert AdaptiveKSelectionConfig(alpha=1.5, min_score=None) == config.rule_selection


def test_a_variable_of_another_strategy_than_the_files_is_ignored_with_a_warning():
    config, said = told(wrote(SEED), environ={RULE + "EPS": "0.2"})

    assert AdaptiveKSelectionConfig(min_score=0.5) == config.rule_selection
    assert [f"{RULE}EPS is ignored: rule_selection has the strategy 'adaptive_k', which has no 'eps'"] == said


def test_files_are_layers_too():
    upper = wrote('[pipeline.retrieval]\nmax_k = 9\n[pipeline.retrieval.rule_selection]\nstrategy = "elbow"\n', "mine.toml")
    config, said = told(wrote(SEED), upper, environ={})

    assert (9, 1, ElbowSelectionConfig(min_score=0.5)) == (config.max_k, config.min_k, config.rule_selection)
    assert [
        (
            "mine.toml:4: the strategy of rule_selection is now 'elbow', which has no alpha (default.toml:8): dropped; "
            "still in force: min_score"
        )
    ] == said


def test_an_upper_file_with_a_key_of_another_strategy_is_a_mistake():
    upper = wrote("[pipeline.retrieval.rule_selection]\neps = 0.3\n", "mine.toml")

    assert refused(wrote(SEED), upper).startswith(
        "mine.toml:2: pipeline.retrieval.rule_selection.eps: unknown key for the strategy"
    )


@pytest.mark.parametrize("others", [(), ("lower.toml",), ("lower.toml", "upper.toml")])
def test_what_is_no_table_is_a_mistake_in_every_layer(others):
    wrote('[pipeline.retrieval.rule_selection]\nstrategy = "otsu"\n', "lower.toml")
    wrote("[pipeline.retrieval.rule_selection]\nmin_score = 0.1\n", "upper.toml")
    wrong = wrote('[pipeline.retrieval]\nrule_selection = "elbow"\n', "wrong.toml")
    variable = {"JUMAR_PIPELINE__RETRIEVAL": '{"rule_selection": "elbow"}'}
    said = "pipeline.retrieval.rule_selection is 'elbow': allowed: a table"

    assert [f"wrong.toml:2: {said}"] * 2 == [refused(*others[:1], wrong, *others[1:]), refused(wrong, *others)]
    assert f"JUMAR_PIPELINE__RETRIEVAL: {said}" == refused(*others, environ=variable)
    assert f"JUMAR_PIPELINE__RETRIEVAL: {said}" == refused(*others, environ={**variable, RULE + "STRATEGY": "otsu"})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("JUMAR_PIPELINE__RETRIEVAL__MAX_K", "12", 12),
        ("JUMAR_PIPELINE__RETRIEVAL__MAX_K", "+5", 5),
        ("JUMAR_PIPELINE__RETRIEVAL__MAX_K", "05", 5),
        ("jumar_pipeline__retrieval__max_k", " 12 ", 12),
        ("JUMAR_PIPELINE__RETRIEVAL__MAX_K", "", 30),
        ("JUMAR_PIPELINE__RETRIEVAL", '{"max_k": 11}', 11),
    ],
)
def test_how_a_variable_may_be_written(name, text, expected):
    assert expected == load_retrieval(wrote(SEED), environ={name: text, "JUMAR_ROOT": "x", "HOME": "y"}).max_k


def test_a_table_may_be_one_variable_and_its_keys_go_before_it():
    config = load_retrieval(
        environ={"JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTION": '{"strategy": "fixed_k", "k": 2}', RULE + "K": "4"}
    )

    assert FixedKSelectionConfig(k=4) == config.rule_selection


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (RULE + "ALPHA", "9", RULE + "ALPHA: pipeline.retrieval.rule_selection.alpha is 9: allowed: numbers from 0.5 to 5"),
        (
            RULE + "ALPHA",
            "much",
            RULE + "ALPHA: pipeline.retrieval.rule_selection.alpha is 'much': allowed: numbers from 0.5 to 5",
        ),
        (RULE + "ALHPA", "1", RULE + "ALHPA: pipeline.retrieval.rule_selection.alhpa: unknown key for the strategy 'adaptive_k'"),
        (
            RULE + "STRATEGY",
            "entropie",
            RULE + "STRATEGY: pipeline.retrieval.rule_selection.strategy: unknown strategy 'entropie'",
        ),
        (RULE + "ALPHA__X", "1", RULE + "ALPHA__X: there is no table 'pipeline.retrieval.rule_selection.alpha'; settings are"),
        (RULE[:-2], "otsu", RULE[:-2] + ": this is a table; give a JSON object, or set its keys"),
        (
            "JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTON__ALPHA",
            "2",
            (
                "JUMAR_PIPELINE__RETRIEVAL__RULE_SELECTON__ALPHA: there is no table "
                "'pipeline.retrieval.rule_selecton' (did you mean 'rule_selection'?); settings are"
            ),
        ),
        (
            "JUMAR_PIPELINE__RETREIVAL__MAX_K",
            "2",
            "JUMAR_PIPELINE__RETREIVAL__MAX_K: [pipeline] has no 'retreival' (did you mean",
        ),
        (
            "JUMAR_PIPLINE__RETRIEVAL__MAX_K",
            "2",
            "JUMAR_PIPLINE__RETRIEVAL__MAX_K: settings are written JUMAR_PIPELINE__RETRIEVAL__KEY",
        ),
        ("JUMAR_RETRIEVAL__MAX_K", "2", "JUMAR_RETRIEVAL__MAX_K: settings are written JUMAR_PIPELINE__RETRIEVAL__KEY, with two"),
        (
            "JUMAR_PIPELINE_RETRIEVAL_MAX_K",
            "2",
            "JUMAR_PIPELINE_RETRIEVAL_MAX_K: settings are written JUMAR_PIPELINE__RETRIEVAL__KEY",
        ),
        (
            "JUMAR_PIPELINE__RETRIEVAL__MAXK",
            "2",
            "JUMAR_PIPELINE__RETRIEVAL__MAXK: pipeline.retrieval.maxk: unknown key (did you",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(name, text, expected):
    assert expected == refused(wrote(SEED), environ={name: text})[: len(expected)]


@pytest.mark.parametrize("name", ["JUMAR_PIPELINE__GENERATION__X", "jumar_pipeline__generation", "JUMAR_PIPELINE__A__B__C"])
def test_variables_of_other_tables_of_the_pipeline_are_passed_over_as_in_a_file(name, recwarn):
    assert RetrievalConfig() == load_retrieval(environ={name: "1"})
    assert [] == list(recwarn)


def test_a_level_that_was_left_out_is_told():
    message = refused(environ={"JUMAR_PIPELINE__MAX_K": "3"})

    assert message.startswith(
        "JUMAR_PIPELINE__MAX_K: [pipeline] has no 'max_k'; settings are written JUMAR_PIPELINE__RETRIEVAL__KEY"
    )


def test_one_variable_in_two_cases_is_no_guess():
    upper, lower = "JUMAR_PIPELINE__RETRIEVAL__MAX_K", "jumar_pipeline__retrieval__max_k"

    assert f"{upper} and {lower} are one setting with two values: unset one of them" == refused(environ={lower: "3", upper: "4"})
    assert 3 == load_retrieval(environ={lower: "3", upper: " 3"}).max_k
    assert 4 == load_retrieval(environ={lower: "", upper: "4"}).max_k


def test_a_value_that_is_no_json_by_far_is_text():
    deep = "[" * 100_000

    assert refused(environ={"JUMAR_PIPELINE__RETRIEVAL__MAX_K": deep}).endswith("allowed: whole numbers from 1")
    assert "this is a table; give a JSON object" in refused(environ={"JUMAR_PIPELINE__RETRIEVAL": deep})
    assert refused(environ={"JUMAR_PIPELINE__RETRIEVAL__MAX_K": "9" * 5000}).endswith("allowed: whole numbers from 1")


@pytest.mark.parametrize("name", ["JUMAR_PIPELINE__RETRIEVAL__\x1b[31mK", RULE + "\x1b[31mK"])
def test_the_name_of_a_variable_is_shown_without_control_characters(name):
    message = refused(environ={name: "1"})

    assert "\x1b" not in message
    assert message.startswith(name.replace("\x1b", "\\x1b") + ": pipeline.retrieval")


def test_a_variable_with_levels_that_nobody_reads_is_told():
    _, said = told(environ={"JUMAR_CASH__X": "1"})

    assert [
        (
            "JUMAR_CASH__X is read by nobody; settings are written JUMAR_PIPELINE__RETRIEVAL__KEY, "
            "with two underscores between the levels"
        )
    ] == said


def test_the_real_environment_is_read_unless_another_one_is_given(monkeypatch):
    monkeypatch.setenv("JUMAR_PIPELINE__RETRIEVAL__MIN_K", "3")

    assert [3, 1] == [load_retrieval().min_k, load_retrieval(environ={}).min_k]
    assert 3 == load_settings().pipeline.retrieval.min_k


def test_a_process_started_with_the_variables_builds_the_strategy():
    code = (
        "from jumar.topk.settings import load_retrieval; from jumar.topk import create_selection_strategy as make\n"
        "print(make(load_retrieval('default.toml').rule_selection))"
    )
    wrote(SEED)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, RULE + "ALPHA": "2.5"}, capture_output=True, text=True, check=True
    )

    assert str(create_selection_strategy("adaptive_k", alpha=2.5, min_score=0.5)) == done.stdout.strip()
