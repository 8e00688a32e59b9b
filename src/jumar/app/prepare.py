"""From a configuration to a loop that is ready to run: which loop it is, whether it may go on, and its programs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from jumar.app.config import JumarConfig
from jumar.app.differences import told_differences
from jumar.app.guard_config import as_recorded, changed_checks, guard_rules
from jumar.app.limits import GivenLimits, LimitsInForce, limits_in_force
from jumar.app.own_files import own_files
from jumar.app.parts import build_parts, evaluator_warnings, sandbox_of
from jumar.app.redact_config import install_redaction
from jumar.app.rehearsal import generator_row
from jumar.app.seeing_config import load_listeners
from jumar.app.templates import AGENT
from jumar.decide.recorded import artifact_rules, config_now
from jumar.decide.treelock import refuse_busy_tree
from jumar.errors import ConfigError, UsageError
from jumar.loop.clock import SystemClock
from jumar.loop.control import StopSwitch, refuse_stop_file
from jumar.loop.engine import Loop, check_settings
from jumar.loop.environment import check_patterns
from jumar.loop.events import Listener
from jumar.loop.identity import current_user
from jumar.loop.prompt import check_template
from jumar.loop.settings import LoopSettings, achievable
from jumar.loop.worktrees import check_repository
from jumar.model.codec import flat
from jumar.model.stopping import LIMIT_REASONS
from jumar.redaction import current, redacted_json
from jumar.store.layout import LoopPaths, check_loop_id, list_loops, loops_directory, prepare_root
from jumar.store.loop_reader import LoopReader
from jumar.store.loop_store import LoopStore
from jumar.store.matching import ArtifactRules
from jumar.text import escape

__all__ = ["RunRequest", "limits_of_run", "loop_to_run", "prepare", "prompt_of"]

_FREE = (
    "loop.max_iterations",
    "loop.id",
    "loop.workers",
    *(f"loop.{key}" for key in ("on_stop", "on_stop_timeout", "setup_timeout", "reset_timeout", "sandbox_writable")),
    *(f"evaluator.{key}" for key in ("cache", "concurrency", "timeout", "max_retries", "backoff_base", "max_cost", "price")),
)
"""Keys that a resume may change freely: the limit, the name by which the loop was found, and how a judge is asked. So is all of
``[stop]``, ``[budget]``, ``[retry]`` and ``[redact]``: none of them changes a score."""

_TO_GO_ON_FROM = LIMIT_REASONS | {"blocked"}
"""How a loop ends that is not at its end: with a higher limit, or once the reason is gone, the same command goes on."""

_FREE_TABLES = ("stop.", "budget.", "retry.", "redact.", "hooks.", "telemetry.")


Resume = Literal["auto", "never", "require"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a person asked to run.

    ``base`` is the directory that relative paths of the configuration start from, ``path`` its file. ``named`` is False
    when the configuration came from the command line alone, so that the loop has no name of its own. ``exact`` is True when
    a person named the loop itself: then it is that one, and not the newest of its configuration. ``resume`` "never" refuses
    to go on with a loop that is there, "require" to start one where none is. ``limits`` says which limits come from where.
    """

    config: JumarConfig
    base: Path
    root: Path
    path: Path | None = None
    named: bool = True
    exact: bool = False
    new: bool = False
    accept_changes: bool = False
    resume: Resume = "auto"
    limits: GivenLimits = field(default_factory=GivenLimits)


def prepare(request: RunRequest, *, switch: StopSwitch, listener: Listener | None) -> Loop:
    """Find or create the loop's store and put the loop together. Nothing is run and nothing is paid for.

    Errors: :class:`ConfigError` when the configuration differs from the recorded one, and whatever the parts refuse.
    """
    install_redaction(request.config.redact)
    workdir = request.config.directory(request.base)
    if not workdir.is_dir():
        raise ConfigError(f"the work directory {escape(str(workdir))} does not exist; see [loop] workdir")
    loop_id = loop_to_run(request)
    _check_resume(request, loop_id)
    limits = limits_of_run(request, loop_id)
    config = limits.config
    _refuse_missing_program(config, workdir)
    if config.loop.isolation == "worktree":
        check_repository(workdir)
    sandbox = sandbox_of(config, request.base, request.root)
    if sandbox is not None:
        sandbox.check(workdir)
    parts = build_parts(config, request.base, switch, root=request.root)
    refuse_stop_file(LoopPaths(loops_directory(request.root) / loop_id).stop_files())
    settings = LoopSettings(
        loop_id=loop_id,
        workdir=workdir,
        objective=_objective(config, request.base),
        continue_from=config.loop.continue_from,
        isolation=config.loop.isolation,
        apply=config.apply,
        artifacts=_rules(config, own_files(workdir, request.path, config.reply_directories(request.base))),
        weights=config.weights,
        criteria=config.selection.criteria(),
        stop=config.stop.rules(config.max_iterations),
        environment=tuple(config.loop.env),
        prompt_template=_prompt_template(config, request.base),
        completion_promise=config.generator.completion_promise,
        resume_session=config.generator.session == "resume",
        recorded=_recorded(config),
        guard=guard_rules(config, workdir=workdir, base=request.base, path=request.path),
        candidates=config.loop.candidates,
        workers=config.loop.workers or config.loop.candidates,
        seed=config.loop.seed,
        retries=config.retry.retries(),
        budget=config.budget.limits(),
        holdout_weights={} if config.holdout is None else config.holdout.weights,
        notices=(*limits.notices, *evaluator_warnings(parts)),
    )
    check_patterns(config.loop.env)
    check_settings(settings, parts)
    listeners = load_listeners(config.hooks, config.telemetry, request.base)
    store, settings = _store(request, settings, limits)
    return Loop.of(store, settings, parts, clock=SystemClock(), switch=switch, listener=listener, listeners=listeners)


def _check_resume(request: RunRequest, loop_id: str) -> None:
    """Refuse, before anything is created, what the person said that a run must not do."""
    there = (loops_directory(request.root) / loop_id).exists()
    if request.resume == "never" and there:
        raise UsageError(
            f"loop '{loop_id}' is there already, and --resume never says not to go on with it; --new starts another one"
        )
    if request.resume == "require" and not there:
        named = f"loop '{loop_id}' is not there" if request.named else "no unfinished loop of this command is there"
        raise UsageError(
            f"{named}, so there is nothing to go on with; --resume auto starts one (root: {escape(str(request.root))})"
        )


def loop_to_run(request: RunRequest) -> str:
    """Return the id of the loop that :func:`prepare` would go on with, or create."""
    return check_loop_id(_loop_id(request, _recorded(request.config), request.config.directory(request.base)))


def limits_of_run(request: RunRequest, loop_id: str) -> LimitsInForce:
    """Return the limits that a run of ``loop_id`` has, with those that were given to it before."""
    directory = loops_directory(request.root) / loop_id
    store = LoopReader(directory) if (directory / "loop.json").is_file() else None
    return limits_in_force(request.config, request.limits, store)


def prompt_of(request: RunRequest) -> str:
    """Return the words of the prompt that do not change from pass to pass: its template and the objective."""
    return f"{_prompt_template(request.config, request.base) or ''}{_objective(request.config, request.base)}"


def _refuse_missing_program(config: JumarConfig, workdir: Path) -> None:
    """Refuse, before anything is created, a command without a shell whose program is not there."""
    command = config.generator.command
    if isinstance(command, list) or (command is not None and AGENT in command.split()):
        row = generator_row(config, workdir)
        if row.state == "red":
            raise ConfigError(f"[generator] {row.detail}; {row.fix}")


def _rules(config: JumarConfig, own: Iterable[str]) -> ArtifactRules:
    rules = config.artifacts.rules()
    return replace(rules, exclude=tuple(dict.fromkeys((*rules.exclude, *own))))


def _store(request: RunRequest, settings: LoopSettings, limits: LimitsInForce) -> tuple[LoopStore, LoopSettings]:
    directory = loops_directory(request.root) / settings.loop_id
    prepare_root(request.root)
    if not directory.exists():
        if settings.in_place:
            refuse_busy_tree(request.root, settings.workdir)
        document, at = _document(settings, limits), SystemClock().now()
        return LoopStore.create(directory, settings.loop_id, document, workdir=settings.workdir, created_at=at), settings
    store = LoopStore.open(directory)
    left_out = (*artifact_rules(store).exclude, *settings.artifacts.exclude)
    settings = replace(settings, artifacts=replace(settings.artifacts, exclude=tuple(dict.fromkeys(left_out))))
    _check_unchanged(
        request,
        store,
        _document(settings, limits),
        changed_checks(store, settings.guard, accepting=request.accept_changes),
    )
    _record_limits(store, limits)
    return store, replace(settings, guard=as_recorded(store, settings.guard))


def _record_limits(store: LoopStore, limits: LimitsInForce) -> None:
    if limits_in_force(limits.config, limits.given, store).changes:
        with store.lock():
            store.add_decision(
                "limits",
                reason="; ".join(limits.changes),
                by=current_user(),
                at=SystemClock().now(),
                data={"limits": limits.given.to_json()},
            )


def _document(settings: LoopSettings, limits: LimitsInForce) -> dict[str, Any]:
    """Return what ``loop.json`` keeps: the tracker's keys, so that a tracker can open the loop, and the whole configuration."""
    rules, config = settings.artifacts, limits.config
    return {
        "storage_path": None,
        "selection": achievable(settings.criteria, has_validators=bool(config.validators)).to_json(),
        "keep_all_iterations": True,
        "quality_weights": dict(config.weights),
        "override_enabled": config.override.enabled,
        "isolation": settings.isolation,
        "apply": settings.apply,
        "artifacts": {
            "include": list(rules.include),
            "exclude": list(rules.exclude),
            "max_files": rules.max_files,
            "max_file_bytes": rules.max_file_bytes,
            "max_total_bytes": rules.max_total_bytes,
        },
        "run": dict(settings.recorded),
        "checks": settings.guard.recorded(),
        "limits": limits.given.to_json(),
    }


def _recorded(config: JumarConfig) -> dict[str, Any]:
    recorded = config.model_dump(mode="json", exclude_defaults=True)
    return {**redacted_json(recorded, current().redact), **({"redact": recorded["redact"]} if "redact" in recorded else {})}


def _check_unchanged(request: RunRequest, store: LoopStore, document: Mapping[str, Any], checks: list[str]) -> None:
    """Refuse to mix two configurations in one history, unless the person says so; the change is then on record."""
    before = config_now(store).get("run")
    if before is None:
        raise ConfigError(
            f"loop '{store.loop_id}' was recorded by a tracker, not by `jumar run`; choose another [loop] id or --root"
        )
    differences = [*_differences(flat(before), flat(document["run"])), *checks]
    if not differences and config_now(store).get("artifacts") == document["artifacts"]:
        return
    if differences and not request.accept_changes:
        shown = "\n".join(f"  {line}" for line in differences)
        raise ConfigError(
            f"the configuration differs from the one that loop '{store.loop_id}' was recorded with:\n{shown}\n"
            "Scores before and after would not compare. Go on with --accept-changes, or start another loop with --new."
        )
    with store.lock():
        store.add_decision(
            "accept",
            best_iteration=None,
            final_iteration=store.iteration_numbers()[-1] if store.iteration_numbers() else None,
            delta=None,
            decision=None,
            reason="; ".join(differences) or "where jumar's output goes is left out of the artifacts",
            by=current_user(),
            at=SystemClock().now(),
            data={"config": dict(document)},
        )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    keys = sorted(key for key in before.keys() | after.keys() if key not in _FREE and not key.startswith(_FREE_TABLES))
    changed = [key for key in keys if before.get(key) != after.get(key)]
    return [escape(line) for key in changed for line in _told(key, before, after)]


def _told(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    if key in before and key in after:
        return told_differences(key, before[key], after[key])
    if isinstance(before.get(key, after.get(key)), list):  # an empty list is how nothing is written
        return told_differences(key, before.get(key, []), after.get(key, []))
    return [f"{key}: {_value(before, key)} → {_value(after, key)}"]


def _value(settings: Mapping[str, Any], key: str) -> str:
    return repr(settings[key]) if key in settings else "its default"


def _loop_id(request: RunRequest, recorded: Mapping[str, Any], workdir: Path) -> str:
    """Return the loop to go on with, or the name of a new one.

    A named configuration goes on with the newest of its loops. A command line without a name goes on with a loop that was started
    with the same words in the same directory and is unfinished, or is the newest of them and was ended by a limit: its budget is
    not to be had a second time by running the command again. Otherwise the name is made up.
    """
    existing = list_loops(request.root)
    if not request.named:
        same = None if request.new else _unfinished_twin(request.root, existing, recorded, workdir)
        return same or f"{_slug(workdir.name)}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    name = request.config.loop.id or _slug(workdir.name)
    if request.exact and not request.new and name in existing:
        return name
    numbers = [number for loop in existing if (number := _generation(loop, name)) is not None]
    if not numbers:
        return name
    newest = max(numbers)
    return _numbered(name, newest + 1 if request.new else newest)


def _unfinished_twin(root: Path, existing: tuple[str, ...], recorded: Mapping[str, Any], workdir: Path) -> str | None:
    wanted, newest = flat(dict(recorded)), True
    for loop in reversed(existing):
        directory = loops_directory(root) / loop
        if not (directory / "loop.json").exists():
            continue
        store = LoopStore.open(directory)
        run = store.config.get("run")
        if run is None or store.workdir != workdir or _differences(flat(run), wanted):
            continue
        end = store.last_end()
        if end is None or (newest and end.data.get("stop_reason") in _TO_GO_ON_FROM):
            return loop
        newest = False
    return None


def _generation(loop: str, name: str) -> int | None:
    """Return 1 for ``name``, N for ``name-N``, None for another loop."""
    if loop == name:
        return 1
    match = re.fullmatch(re.escape(name) + r"-(\d{1,6})", loop)
    return int(match.group(1)) if match and int(match.group(1)) > 1 else None


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:60] or "loop"


def _objective(config: JumarConfig, base: Path) -> str:
    if config.loop.objective_file is None:
        return config.loop.objective
    return _read(base / config.loop.objective_file, "[loop] objective_file")


def _prompt_template(config: JumarConfig, base: Path) -> str | None:
    if config.generator.prompt is None:
        return None
    template = _read(base / config.generator.prompt, "[generator] prompt")
    check_template(template, where=escape(config.generator.prompt))
    return template


def _read(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: {escape(str(path))} cannot be read: {error}") from None
