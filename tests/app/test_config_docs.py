"""The page of configuration keys and the models that read them say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumar.app.config import cases as cases_config
from jumar.app.config import config, evaluator, tables
from jumar.app.config.tables import Caps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"
TABLES = {
    "[loop]": config.LoopConfig,
    "[artifacts]": config.ArtifactsConfig,
    "[generator]": config.GeneratorConfig,
    "[[checks]]": config.ValidatorConfig,
    "[[scorers]]": config.ScorerConfig,
    "[selection]": config.SelectionConfig,
    "[stop]": config.StopConfig,
    "[budget]": tables.BudgetConfig,
    "[retry]": tables.RetryConfig,
    "[noise]": tables.NoiseConfig,
    "[holdout]": config.HoldoutConfig,
    "[hooks]": tables.HooksConfig,
    "[telemetry]": tables.TelemetryConfig,
    "[mlflow]": tables.MlflowConfig,
    "[notify]": tables.NotifyConfig,
    "[override]": config.OverrideConfig,
    "[memory]": tables.MemoryConfig,
    "[evaluator]": evaluator.EvaluatorConfig,
    "[redact]": tables.RedactConfig,
}


@pytest.mark.parametrize("table", TABLES)
def test_the_page_lists_the_keys_of_every_table(table: str) -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next(section for section in sections if section.startswith(f"`{table}`"))
    documented = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))

    assert set(TABLES[table].model_fields) == documented


def test_every_table_has_its_section() -> None:
    fields = set(config.JumarConfig.model_fields) - {"weights"}

    assert fields == {table.strip("[]").replace("checks", "validators") for table in TABLES}


CASES_PAGE = PAGE.with_name("cases.md")
CASES_TABLES = {
    "[run]": cases_config.RunConfig,
    "[start]": cases_config.StartConfig,
    "[[cases]]": cases_config.CaseConfig,
    "[case_file]": cases_config.CaseFileConfig,
    "[[steps]]": cases_config.StepConfig,
    "[roles.NAME]": cases_config.RoleConfig,
    "[ranking]": cases_config.RankingConfig,
    "[stop]": cases_config.CaseStopConfig,
    "[budget]": Caps,
    "[dry_run]": cases_config.DryRunConfig,
}


@pytest.mark.parametrize("table", CASES_TABLES)
def test_the_page_of_cases_lists_the_keys_of_every_table(table: str) -> None:
    sections = re.split(r"^## ", CASES_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next(section for section in sections if section.startswith(f"`{table}`"))
    first = section.partition("\n\n| role |")[0].partition("\n\n| key | where")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", first, re.MULTILINE))

    assert set(CASES_TABLES[table].model_fields) == documented


def test_every_table_of_cases_has_its_section() -> None:
    assert set(cases_config.CasesConfig.model_fields) == {table.strip("[]").partition(".")[0] for table in CASES_TABLES}
