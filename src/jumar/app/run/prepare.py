"""From a configuration to a loop that is ready to run: which loop it is, whether it may go on, and its programs."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from jumar.app.config.config import JumarConfig, LoopConfig
from jumar.app.config.guard import as_recorded, changed_checks, guard_rules, refuse_changed_parts
from jumar.app.config.tables import install_redaction, load_listeners
from jumar.app.run.given import (
    LIMITS,
    Given,
    LimitsInForce,
    config_with,
    defaults_of,
    held,
    last_settings,
    limits_in_force,
    recorded,
    refuse_unseen,
    said_otherwise,
    told_differences,
    words_of,
)
from jumar.app.run.naming import LoopChoice, choose_loop, refuse_another_loop
from jumar.app.run.parts import build_parts, evaluator_warnings, sandbox_of
from jumar.app.run.preflight import earlier_passes, fitting_rules, own_files, refuse_full_disk, refuse_generator
from jumar.app.run.request import DIGESTS, RunRequest
from jumar.core.clock import SystemClock, current_user
from jumar.core.codec import flat
from jumar.core.files import digest_of, read_named
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape
from jumar.errors import ConfigError, ForgedError, UsageError
from jumar.loop.decisions.select import refuse_program
from jumar.loop.engine.engine import Loop, check_settings
from jumar.loop.engine.verdict import never_begun
from jumar.loop.events.events import Listener
from jumar.loop.generators.prompt import check_template
from jumar.loop.settings import GuardRules, LoopSettings, achievable
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.snapshots.tree_size import TreeSize
from jumar.loop.store.in_force import MADE_UP, artifact_rules, config_now
from jumar.loop.store.layout import (
    LoopPaths,
    check_loop_id,
    loops_directory,
    open_to_owner,
    prepare_root,
    tidy_removed,
    tidy_root,
)
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.repair import set_aside
from jumar.loop.store.running import refuse_busy_tree
from jumar.loop.workspace.set_aside import complete
from jumar.loop.workspace.trees import remove_trees
from jumar.loop.workspace.worktrees import check_repository
from jumar.model.budget.pricing import DEFAULT_MAX_ITERATIONS
from jumar.processes.control import StopSwitch, refuse_stop_file
from jumar.processes.environment import check_patterns

_FREE = (
    "loop.max_iterations",
    "loop.id",
    "loop.workers",
    *(f"loop.{key}" for key in ("recheck", "on_stop", "on_stop_timeout", "setup_timeout", "reset_timeout", "sandbox_writable")),
    *(f"evaluator.{key}" for key in ("cache", "concurrency", "timeout", "max_retries", "backoff_base", "price")),
    *("evaluator.max_cost", "evaluator.reserve_cost"),
)
"""Keys that a resume may change freely: the limit, the name by which the loop was found, and how a judge is asked. So is all of
``[stop]``, ``[budget]``, ``[retry]`` and ``[redact]``: none of them changes a score."""

_ALIKE = (LoopConfig.model_fields.keys() & LoopSettings.__dataclass_fields__.keys()) - {
    "objective",
    "workdir",
    "apply",
    "workers",
}
"""Keys of ``[loop]`` that are settings of the engine as they stand; a new one needs no line here."""

_FREE_TABLES = ("stop.", "budget.", "retry.", "redact.", "hooks.", "telemetry.", "mlflow.", "notify.", f"{DIGESTS}.")
_LOOKED_AT_APART = frozenset({"loop.max_iterations", "loop.id", "stop.max_seconds", *(f"budget.{key}" for key in LIMITS)})


def prepare(request: RunRequest, *, switch: StopSwitch, listener: Listener | None) -> Loop:
    """Find or create the loop's store and put the loop together. Nothing is run and nothing is paid for.

    What lies in the store and jumar did not write is set aside, and the loop tells it. Errors: :class:`ConfigError` when the
    configuration differs from the recorded one, and whatever the parts refuse.
    """
    told = [*tidy_root(request.root), *complete(request.root)]
    while True:
        try:
            return _prepared(request, switch, listener, told)
        except ForgedError as error:
            told.append(set_aside(error))


def _prepared(request: RunRequest, switch: StopSwitch, listener: Listener | None, told: Sequence[str]) -> Loop:
    install_redaction(request.config.redact, request.config.notify.secrets())
    request, choice = in_force(request)
    workdir = request.config.directory(request.base)
    if not workdir.is_dir():
        raise ConfigError(f"the working directory {escape(str(workdir))} does not exist; see [loop] workdir")
    loop_id = choice.loop_id
    _check_resume(request, choice)
    refuse_another_loop(request, choice, workdir)
    reader = _reader(request, loop_id)
    defaults = defaults_of(reader)
    limits = limits_of_run(request, loop_id)
    config = limits.config
    known = functools.partial(_cost_known, config, request.root, loop_id)
    refuse_generator(config, workdir, configured=request.path is not None, cost_known=known)
    if config.loop.isolation == "worktree":
        check_repository(workdir)
    sandbox = sandbox_of(config, request.base, request.root)
    if sandbox is not None:
        sandbox.check(workdir)
    if reader is not None and not request.accept_changes:
        _refuse_unseen_settings(reader, _recorded(config, defaults, request.base), request.options)
        refuse_changed_parts(reader, config, workdir=workdir, base=request.base)
    parts = build_parts(config, request.base, switch, root=request.root, since=_began(reader))
    refuse_stop_file(LoopPaths(loops_directory(request.root) / loop_id).stop_files())
    artifacts, said = _artifacts(request, config, loop_id)
    settings = LoopSettings(
        **{key: getattr(config.loop, key) for key in _ALIKE},
        loop_id=loop_id,
        workdir=workdir,
        objective=_objective(config, request.base),
        apply=config.apply,
        artifacts=artifacts,
        weights=config.weights,
        criteria=config.selection.criteria(),
        stop=config.stop_rules(),
        environment=tuple(config.loop.env),
        prompt_template=_prompt_template(config, request.base),
        completion_promise=config.generator.completion_promise,
        resume_session=config.generator.session == "resume",
        recorded=_recorded(config, defaults, request.base),
        defaults=defaults,
        guard=_guard(request, config, workdir),
        workers=config.loop.workers or config.loop.candidates,
        retries=config.retry.retries(),
        budget=config.budget.limits(),
        holdout_weights={} if config.holdout is None else config.holdout.weights,
        allow_broken_start=request.allow_broken_start,
        own=own_files(workdir, request.path, config.reply_directories(request.base)),
        notices=(*request.told, *said, *limits.notices, *evaluator_warnings(parts)),
    )
    check_patterns(config.loop.env)
    check_settings(settings, parts)
    early = _listeners(request, config, settings) if reader is None else None
    store, settings = _store(request, choice, settings, limits)
    listeners = _listeners(request, config, settings) if early is None else early
    settings = replace(settings, notices=(*([choice.told] if choice.told else []), *told, *settings.notices))
    return Loop.of(
        store, settings, parts, clock=SystemClock(), switch=switch, listener=listener, listeners=listeners, steps=request.steps
    )


def _listeners(request: RunRequest, config: JumarConfig, settings: LoopSettings) -> list[Listener]:
    """Import the hooks: of a new loop before anything is made, of another one after a changed configuration was refused."""
    listeners = load_listeners(config.hooks, config.telemetry, request.base)
    return [*listeners, *config.mlflow.listeners(request.root, _told_of(config, settings))]


def _guard(request: RunRequest, config: JumarConfig, workdir: Path) -> GuardRules:
    """Return the rules for what checks need; of an import nobody is told what to protect, because its commits are made."""
    rules = guard_rules(config, workdir=workdir, base=request.base, path=request.path)
    return rules if request.origin is None else replace(rules, notices=())


def _told_of(config: JumarConfig, settings: LoopSettings) -> dict[str, str]:
    """Return what a tracking server is told of the loop before it begins."""
    command, python = config.generator.command, config.generator.python
    checks = ((check.name, check.command or check.python) for check in config.validators)
    return {
        "objective": settings.objective,
        "agent": (command if isinstance(command, str) else shlex.join(command or ())) or python or "",
        "checks": "\n".join(f"{name}: {runs if isinstance(runs, str) else shlex.join(runs or ())}" for name, runs in checks),
    }


def in_force(request: RunRequest) -> tuple[RunRequest, LoopChoice]:
    """Return ``request`` with the configuration that holds for its loop, and that loop.

    Errors: :class:`ConfigError` where no earlier command line makes it whole, or one held a secret.
    """
    choice = _choice(request)
    open_to_owner(LoopPaths(loops_directory(request.root) / choice.loop_id), folders_only=True)
    store = None if choice.fresh else _reader(request, choice.loop_id)
    kept = {} if store is None or request.lay is None else held(request.options, store)
    if request.refused is not None and "agent" not in kept:
        raise request.refused
    if store is None or request.lay is None:
        return request, choice
    options = replace(request.options, said={**kept, **request.options.said})
    if not request.accept_changes:
        _refuse_more_iterations(store, options)
    told = (f"given when the loop was begun, and still in force: {words_of(kept)}",) if kept and request.path else ()
    return replace(request, config=request.lay(kept) if kept else request.config, options=options, told=told), choice


def _refuse_more_iterations(store: LoopReader, options: Given) -> None:
    before, default = recorded(store, "options"), DEFAULT_MAX_ITERATIONS
    if before is None or "max_iterations" in options.said:
        return
    was, now = (each.file.get("max_iterations", default) for each in (before, options))
    if now > was:
        refuse_unseen(store, f"[loop] max_iterations was {was} and is {now}", f"-n {now}")


def _check_resume(request: RunRequest, choice: LoopChoice) -> None:
    """Refuse, before anything is created, what the person said that a run must not do."""
    loop_id = choice.loop_id
    if request.resume == "never" and not (choice.fresh or choice.unbegun):
        raise UsageError(f"loop '{loop_id}' is there already, and --resume never says not to resume it; --new starts another one")
    if request.resume == "require" and choice.fresh:
        named = f"loop '{loop_id}' is not there" if request.named else "no unfinished loop of this command is there"
        raise UsageError(f"{named}, so there is nothing to resume; --resume auto starts one (root: {escape(str(request.root))})")


def _choice(request: RunRequest) -> LoopChoice:
    def same(store: LoopReader) -> bool:
        defaults = defaults_of(store)
        recorded = _recorded(config_with(defaults, request.config_for(store)), defaults, request.base)
        before, now = flat(store.config["run"]), flat(recorded)
        keep_going = request.named or before.get("stop.keep_going") == now.get("stop.keep_going")
        return keep_going and not _differences(before, now)

    choice = choose_loop(request, request.config.directory(request.base), same)
    check_loop_id(choice.loop_id)
    return choice


def limits_of_run(request: RunRequest, loop_id: str) -> LimitsInForce:
    """Return the limits that a run of ``loop_id`` has, with those that were given to it before.

    Their configuration is the whole one that holds: what it leaves unset is as it was when the loop began.
    """
    store = _reader(request, loop_id)
    return limits_in_force(
        config_with(defaults_of(store), request.config), request.limits, store, accepting=request.accept_changes
    )


def _reader(request: RunRequest, loop_id: str) -> LoopReader | None:
    directory = loops_directory(request.root) / loop_id
    found = LoopReader(directory) if (directory / "loop.json").is_file() else None
    return None if found is not None and never_begun(found) else found


def _began(reader: LoopReader | None) -> int | None:
    """Return when a loop of ours began, in nanoseconds: later than that its programs may have written anything."""
    if reader is None or not reader.trust.ours:
        return None
    return int(datetime.fromisoformat(reader.created_at).timestamp() * 1_000_000_000)


def _cost_known(config: JumarConfig, root: Path, loop_id: str) -> bool:
    """Whether this loop has run its generator before, or an earlier one with the same generator learned what it costs."""
    directory = loops_directory(root) / loop_id
    if (directory / "loop.json").is_file() and any(
        attempt.start.purpose == "generate" for attempt in LoopReader(directory).attempts()
    ):
        return True
    return any(use.cost_usd is not None for use in earlier_passes(config, root, besides=loop_id)[0])


def prompt_of(request: RunRequest) -> str:
    """Return the words of the prompt that do not change from iteration to iteration: its template and the objective."""
    return f"{_prompt_template(request.config, request.base) or ''}{_objective(request.config, request.base)}"


def _artifacts(request: RunRequest, config: JumarConfig, loop_id: str) -> tuple[ArtifactRules, tuple[str, ...]]:
    """Return what the loop keeps, and what is to be said of a large directory before it begins.

    A loop that is there has its limits on record where the configuration sets none.
    """
    workdir, store = config.directory(request.base), _reader(request, loop_id)
    own = own_files(workdir, request.path, config.reply_directories(request.base))
    rules = config.artifacts.rules(None if store is None else artifact_rules(store))
    rules = replace(rules, exclude=tuple(dict.fromkeys((*rules.exclude, *own))))
    if store is not None:
        return rules, ()
    size = TreeSize.of(workdir, rules.list(workdir, never=(request.root,)))
    refuse_full_disk(request.root, workdir, size)
    rules, said = fitting_rules(config, rules, size, accept=request.accept_size, ask=request.ask)
    return rules, () if said is None else (said,)


def _store(
    request: RunRequest, choice: LoopChoice, settings: LoopSettings, limits: LimitsInForce
) -> tuple[LoopStore, LoopSettings]:
    """Make the loop, or open the one to go on with. Where another process takes the name meanwhile, it is chosen anew."""
    prepare_root(request.root)
    tidy_removed(request.root)
    if choice.fresh and settings.in_place:
        refuse_busy_tree(request.root, settings.workdir)
    document = {**_document(settings, limits, request.options), MADE_UP: not request.named}
    if request.origin is not None:
        document["origin"] = dict(request.origin)
    while choice.fresh:
        directory, at = loops_directory(request.root) / choice.loop_id, SystemClock().now()
        settings = replace(settings, loop_id=choice.loop_id)
        try:
            return LoopStore.create(directory, choice.loop_id, document, workdir=settings.workdir, created_at=at), settings
        except UsageError:
            earlier, choice = choice, _choice(request)
            if choice == earlier:
                raise
    store = LoopStore.open(loops_directory(request.root) / choice.loop_id)
    refuse_program(choice.loop_id, "run", store.nonce)
    if choice.unbegun:
        return _begun_again(request, store, choice, settings, document)
    if settings.in_place and store.workdir is not None and store.workdir.is_symlink() and not request.accept_changes:
        refuse_unseen(store, f"{escape(str(store.workdir))} became a link to {escape(str(settings.workdir))}")
    settings = replace(settings, loop_id=choice.loop_id)
    left_out = (*artifact_rules(store).exclude, *settings.artifacts.exclude)
    settings = replace(settings, artifacts=replace(settings.artifacts, exclude=tuple(dict.fromkeys(left_out))))
    document = _document(settings, limits, request.options)
    _check_unchanged(request, store, document, changed_checks(store, settings.guard, accepting=request.accept_changes))
    _record_limits(store, limits, request.options, document["run"])
    return store, replace(settings, guard=as_recorded(store, settings.guard))


def _begun_again(
    request: RunRequest, before: LoopStore, choice: LoopChoice, settings: LoopSettings, document: Mapping[str, Any]
) -> tuple[LoopStore, LoopSettings]:
    """Make a loop anew that never began: its start is taken and judged again, with what was mended."""
    directory = loops_directory(request.root) / choice.loop_id
    with before.lock():
        remove_trees(request.root, before.loop_id, settings.workdir)
    settings, at = replace(settings, loop_id=choice.loop_id), SystemClock().now()
    return LoopStore.begin_again(directory, document, workdir=settings.workdir, created_at=at), settings


def _record_limits(store: LoopStore, limits: LimitsInForce, options: Given, settings: Mapping[str, Any]) -> None:
    changes, before = limits_in_force(limits.config, limits.given, store, accepting=True).changes, recorded(store, "options")
    changes = (*changes, *_changed_settings(store, settings, options))
    if before is not None and before.document("options") != options.document("options"):
        changes = (*changes, f"options in force: {words_of(options.said) or 'none'}")
    if changes:
        with store.lock():
            store.add_decision(
                "limits",
                reason="; ".join(changes),
                by=current_user(),
                at=SystemClock().now(),
                data={
                    "limits": limits.given.document("limits"),
                    "run": dict(settings),
                    **({} if before is None else {"options": options.document("options")}),
                },
            )


def _document(settings: LoopSettings, limits: LimitsInForce, options: Given) -> dict[str, Any]:
    """Return what ``loop.json`` keeps: the tracker's keys, so that a tracker can open the loop, and the whole configuration."""
    rules, config = settings.artifacts, limits.config
    absent = [path for path in settings.guard.absent if path not in settings.guard.unasked]  # a configuration may come later
    return {
        "storage_path": None,
        "selection": achievable(settings.criteria, has_validators=bool(config.validators)).to_json(),
        "keep_all_iterations": True,
        "quality_weights": dict(config.weights),
        "override_enabled": config.override.enabled,
        "isolation": settings.isolation,
        "apply": settings.apply,
        "final_output": config.loop.final_output,
        "artifacts": {
            "include": list(rules.include),
            "exclude": list(rules.exclude),
            "max_files": rules.max_files,
            "max_file_bytes": rules.max_file_bytes,
            "max_total_bytes": rules.max_total_bytes,
        },
        "run": dict(settings.recorded),
        "defaults": dict(settings.defaults),
        "checks": settings.guard.recorded(),
        **({"absent": absent} if absent else {}),
        "limits": limits.given.document("limits"),
        "options": options.document("options"),
    }


def _recorded(config: JumarConfig, defaults: Mapping[str, Any], base: Path) -> dict[str, Any]:
    recorded = said_otherwise(defaults, config)
    if config.budget.prices is not None and (base / config.budget.prices).is_file():
        recorded[DIGESTS] = {"[budget] prices": f"sha256:{digest_of((base / config.budget.prices).resolve())[:16]}"}
    if config.notify.urls:  # addresses hold tokens
        recorded["notify"]["urls"] = config.notify.digests()
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
        with store.lock():  # while it runs, that is what keeps this run from resuming it
            pass
        shown = "\n".join(f"  {line}" for line in differences)
        raise ConfigError(
            f"the configuration differs from the one that loop '{store.loop_id}' was recorded with:\n{shown}\n"
            "Scores before and after would not compare. Resume with --accept-changes, or start another loop with --new."
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


def _refuse_unseen_settings(store: LoopReader, settings: Mapping[str, Any], options: Given) -> None:
    """Refuse what an agent may have written, before what it names is imported. Errors: :class:`ConfigError`."""
    changed = _changed_settings(store, settings, options)
    if changed:
        with LoopStore.open(store.paths.directory).lock():  # while it runs, that is what keeps this run from resuming it
            pass
        refuse_unseen(store, f"the configuration is another one ({'; '.join(changed)})")


def _changed_settings(store: LoopReader, settings: Mapping[str, Any], options: Given) -> list[str]:
    """Return what the file changes since the last run, but for the limits that an option sets and what options say."""
    before, after = flat(last_settings(store)), flat(settings)
    changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    changed = [key for key in changed if key in before or not key.startswith(f"{DIGESTS}.")]  # no record of an earlier version
    changed = [key for key in changed if key not in _LOOKED_AT_APART and key.rpartition(".")[2] not in options.anew]
    return [escape(line) for key in changed for line in _told(key, before, after)]


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    keys = sorted(key for key in before.keys() | after.keys() if key not in _FREE and not key.startswith(_FREE_TABLES))
    changed = [key for key in keys if before.get(key) != after.get(key)]
    return [escape(line) for key in changed for line in _told(key, before, after)]


def _told(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    shown = "checks" if key == "validators" else key
    if key in before and key in after:
        return told_differences(shown, before[key], after[key])
    if isinstance(before.get(key, after.get(key)), list):  # an empty list is how nothing is written
        return told_differences(shown, before.get(key, []), after.get(key, []))
    return [f"{shown}: {_value(before, key)} → {_value(after, key)}"]


def _value(settings: Mapping[str, Any], key: str) -> str:
    return repr(settings[key]) if key in settings else "its default"


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
        return read_named(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: {escape(str(path))} cannot be read: {error}") from None
