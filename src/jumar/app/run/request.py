"""From command-line options to a configuration: laid over a file, or standing alone."""

from __future__ import annotations

import copy
import functools
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_origin

from jumar.app.agents import AGENTS, Agent, agent_called, cannot_run, installed_agents
from jumar.app.config.config import JumarConfig, find_config, load_config, parse_config
from jumar.app.config.tables import option_of
from jumar.app.machine import likely_check
from jumar.app.run.given import LIMITS, Given, held, limits_in
from jumar.core.rendering.figures import dollars
from jumar.core.text import escape, nearest
from jumar.core.toml import model_in, read_toml
from jumar.errors import ConfigError
from jumar.loop.generators.generators import PLACEHOLDER
from jumar.loop.generators.workdir import WORKDIR
from jumar.loop.settings import IN_PLACE
from jumar.loop.store.in_force import config_now, is_made_up
from jumar.loop.store.layout import loops_directory
from jumar.loop.store.loop_reader import LoopReader

Resume = Literal["auto", "never", "require"]
DEFAULT_ROOT = ".jumar"


_OF_THE_ITERATION = ("timeout", "prompt", "completion_promise")
_STAND_IN = ": ;"  # a command for a file that has none
_MAX_ITERATIONS = ("loop", "stop")  # the tables that may say it
DIGESTS = "digests"
"""The table of a recorded configuration with what files that it names held: no configuration has it."""

_HELD_ALIKE = ("agent", "objective", "checks", "scores", "keep_going", "max_iterations")


@functools.cache
def _places(*, lists: bool) -> Mapping[str, tuple[str, str]]:
    """Return the table and key that an option sets by itself, or of ``lists`` adds to, by option."""
    places: dict[str, tuple[str, str]] = {}
    for table, section in ((table, model_in(info.annotation)) for table, info in JumarConfig.model_fields.items()):
        for key, info in () if section is None else section.model_fields.items():
            if (option := option_of(info)) is not None and (get_origin(info.annotation) is list) is lists:
                places[option] = (table, key)
    return places


_DIMENSION = re.compile(r"\s*([a-z][a-z0-9_-]*)=(?=\s*\S)")


def configured(given: Mapping[str, Any], command: Sequence[str] | None = None) -> tuple[JumarConfig, Path | None]:
    """Return the configuration that ``jumar run`` was given, and its file, None where the command line says it all.

    Options are laid over the file. A ``command`` stands alone; an ``--agent`` stands in for the generator of the file, where
    there is one. Errors: :class:`ConfigError`, also when nothing says what to run.
    """
    if command is not None:
        return parse_config(_overlaid({"generator": {"command": list(command)}}, given), "the command line"), None
    path = find_config(given["config"])
    agent = given.get("agent")
    generator = None if agent is None else agent_generator(agent)
    if path is None:
        if generator is None:
            raise ConfigError(_nothing_to_run())
        return parse_config(_overlaid({"generator": generator}, given), "the command line"), None
    if given["config"] is not None and not path.exists() and re.fullmatch(r"[\w-]+", str(path)):
        raise ConfigError(
            f"there is no file '{path}'; if that is your agent: jumar run --agent {path} …, or put -- before its command: "
            f"jumar run … -- {path} …"
        )
    config = load_config(path) if generator is None else _with_generator(path, generator)
    data = config.model_dump(mode="json", exclude_unset=True)
    changed = _overlaid(data, given)
    where = f"{path} with the command line's options"
    return (config if changed == data else parse_config(changed, where)), path


def _configured_or_refused(
    given: Mapping[str, Any], command: Sequence[str] | None
) -> tuple[JumarConfig, Path | None, ConfigError | None]:
    """Return what :func:`configured` does, and why it does not do where only an earlier ``--agent`` makes the file whole.

    Errors: :class:`ConfigError` where not even that would.
    """
    try:
        return *configured(given, command), None
    except ConfigError as error:
        path = find_config(given["config"])
        if command is not None or path is None or not path.is_file() or given.get("agent") is not None:
            raise
        if {"generator", "cases"} & read_toml(path, "jumar init")[0].keys():
            raise
        return *configured({**given, "agent": _STAND_IN}, command), error


def _layer(
    given: Mapping[str, Any], command: Sequence[str] | None, path: Path | None, known: tuple[JumarConfig, Path] | None
) -> Callable[[Mapping[str, Any]], JumarConfig] | None:
    """Return what lays options of earlier command lines below those ``given``; None for a command line that says it all."""
    if path is not None:
        return lambda held: configured({**given, **held}, command)[0]
    if known is None:
        return None
    data = known[0].model_dump(mode="json", exclude_unset=True)
    where = "the recorded configuration with the options given to the loop before"
    return lambda held: parse_config(_overlaid(data, {**held, "agent": None}), where)


def _recorded_config(given: Mapping[str, Any], root: Path) -> tuple[JumarConfig, Path] | None:
    """Return the configuration that the loop called ``--id`` was begun with, the options laid over it, and where it runs.

    So a loop of a command line is resumed by its name alone. None where a configuration file speaks for it, or no such loop is
    there. Errors: :class:`ConfigError` when what was recorded is not the whole of it.
    """
    name = given.get("loop_id")
    directory = loops_directory(root) / (name or "")
    if not name or given.get("agent") or given["config"] is not None or not (directory / "loop.json").is_file():
        return None
    store = LoopReader(directory)
    if find_config(None) is not None and not is_made_up(store):
        return None
    run: object = config_now(store).get("run")
    if not isinstance(run, Mapping) or store.workdir is None:
        return None
    recorded = {table: keys for table, keys in cast("Mapping[str, Any]", run).items() if table not in {"notify", DIGESTS}}
    where = f"the recorded configuration of loop '{escape(name)}'"
    if "[redacted" in json.dumps(recorded):
        raise ConfigError(f"{where} leaves a secret out: resume with the whole command that began it")
    if recorded.get("loop", {}).get("workdir") is not None:
        raise ConfigError(f"{where} came from a file that is not here: name it, `jumar run FILE`")
    return parse_config(_overlaid(recorded, given), where), store.workdir


def _nothing_to_run() -> str:
    here = installed_agents()
    agents = f"installed here: {', '.join(here)}" if here else f"jumar knows {', '.join(agent.program for agent in AGENTS)}"
    return (
        f"there is no jumar.toml here and no agent is named; `jumar init` writes a configuration, or try ({agents})\n"
        f"  jumar run --agent {here[0] if here else 'NAME'} -p 'make the tests pass' --check {likely_check(Path())}"
    )


def agent_generator(agent: str) -> dict[str, Any]:
    """Return the ``[generator]`` that ``--agent`` stands for: of a known agent by name, else of a command.

    A command goes to the shell and gets the prompt on its standard input, unless it names ``JUMAR_PROMPT_FILE``; one with
    ``{prompt}`` or another placeholder of ``[generator] command`` is split into words instead. Errors: :class:`ConfigError` when
    a known agent, or a single word, is not installed.
    """
    if agent == WORKDIR:
        return {"builtin": WORKDIR}
    known = agent_called(agent)
    if known is not None:
        if shutil.which(known.program) is None:
            raise ConfigError(f"--agent: {known.title} is not installed: '{agent}' is not on PATH{_instead()}\n  {known.install}")
        return known.generator()
    if not agent.strip():
        raise ConfigError("--agent is empty: give it the name of an agent, or a command")
    if agent.split() == [agent] and shutil.which(agent) is None:
        names, problem = tuple(agent.program for agent in AGENTS), cannot_run(agent, Path())
        if problem is not None:
            raise ConfigError(f"--agent: '{escape(agent)}' {escape(problem)}")
        raise ConfigError(
            f"--agent: '{escape(agent)}' is no agent that jumar knows{nearest(agent, names)} and no program on PATH; known are "
            f"{', '.join(names)}{_instead()}; any other is given as its command: --agent 'CMD …'"
        )
    if PLACEHOLDER.search(agent):
        return {"command": _words(agent)}
    return {"command": agent, **({} if "JUMAR_PROMPT_FILE" in agent else {"stdin": "prompt"})}


def _instead() -> str:
    here = installed_agents()
    return f"; installed here: {', '.join(here)}" if here else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--agent: {escape(command)} cannot be split into words: {error}") from None


def _with_generator(path: Path, generator: Mapping[str, Any]) -> JumarConfig:
    """Return the file's configuration with another generator; what its own says of the iteration, not of the agent, is kept."""
    data, text = read_toml(path, "jumar init")
    own: object = data.get("generator")
    kept = {key: value for key, value in _table(own).items() if key in _OF_THE_ITERATION}
    return parse_config({**data, "generator": {**kept, **generator}}, str(path), text)


def _given_limits(given: Mapping[str, Any], path: Path | None, config: JumarConfig) -> Given:
    """Return which limits the options gave, and which the configuration in ``path`` says without them.

    What ``--agent`` sets aside beside a ``--max-cost`` counts as given with it, and stays when the loop is resumed without both.
    """
    options = {key: given.get(option) for key, option in LIMITS.items()}
    in_file = {} if path is None else limits_in(read_toml(path, "jumar init")[0])
    if agent_called(given.get("agent") or "") is not None and given.get("max_cost") is not None:
        options["reserve_cost_usd"] = None if "reserve_cost_usd" in in_file else config.budget.reserve_cost_usd
    return Given(said={key: value for key, value in options.items() if value is not None}, file=in_file)


def _given_options(given: Mapping[str, Any], path: Path | None) -> Given:
    """Return what the options said of the configuration, and what the file in ``path`` says in their places.

    The limits are apart: :func:`_given_limits`.
    """
    places = {option: place for option, place in _places(lists=False).items() if option not in {"loop_id", *LIMITS.values()}}
    options = {option: given.get(option) for option in (*places, *_places(lists=True), *_HELD_ALIKE)}
    said: dict[str, Any] = {option: _as_json(value) for option, value in options.items() if _is_given(value)}
    objective = str(said.get("objective", ""))
    if objective.startswith("@"):
        said["objective"] = f"@{Path(objective[1:]).absolute()}"
    data = {} if path is None else read_toml(path, "jumar init")[0]
    file = {option: data.get(table, {}).get(key) for option, (table, key) in places.items()}
    file["max_iterations"] = next(
        (each for table in _MAX_ITERATIONS if (each := data.get(table, {}).get("max_iterations"))), None
    )
    return Given(said=said, file={option: value for option, value in file.items() if value is not None})


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _as_json(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def _cost_notice(given: Mapping[str, Any], config: JumarConfig) -> str | None:
    """Return what a limit in dollars means for an ``--agent`` that reports tokens alone; None for any other."""
    agent, reserve = agent_called(given.get("agent") or ""), config.budget.reserve_cost_usd
    if agent is None or agent.reports_cost or config.budget.max_cost_usd is None or reserve is None:
        return None
    return (
        f"{agent.program} reports tokens, no cost: an iteration whose tokens have no known price is charged "
        f"{dollars(reserve, places=2)} (--reserve-cost USD changes that, [budget] model names a price)"
    )


def _objective_notice(given: Mapping[str, Any], config: JumarConfig) -> str | None:
    """Return what to say of an ``--agent`` that nobody gave anything to do; None for any other."""
    if not given.get("agent") or config.loop.objective.strip() or config.loop.objective_file is not None:
        return None
    return "the agent is given no objective: say what is to be done with -p 'make the tests pass', or -p @FILE"


def _overlaid(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = copy.deepcopy(dict(data))
    for option, (table, key) in _places(lists=False).items():
        if _is_given(given.get(option)):
            merged.setdefault(table, {})[key] = given[option]
    for option, (table, key) in _places(lists=True).items():
        if given.get(option):
            section: dict[str, Any] = merged.setdefault(table, {})
            section[key] = list(dict.fromkeys([*section.get(key, []), *given[option]]))
    if given.get("max_iterations") is not None:
        merged.get("stop", {}).pop("max_iterations", None)
        merged.setdefault("loop", {})["max_iterations"] = given["max_iterations"]
    if given.get("max_seconds") is not None:
        merged.get("stop", {}).pop("max_seconds", None)
    if given.get("keep_going"):
        stop: dict[str, Any] = merged.setdefault("stop", {})
        stop.pop("target", None)
        stop["keep_going"] = True
    _lay_objective(merged, given.get("objective"))
    _lay_agent(merged, agent_called(given.get("agent") or ""))
    if given.get("agent") == WORKDIR:
        _lay_recorded(merged.setdefault("loop", {}))
    if given.get("checks"):
        merged["checks"] = _with(merged.pop("validators", []), _checks(given["checks"]))
    if given.get("scores"):
        merged["scorers"] = _with(merged.get("scorers", []), map(scorer_of, dict.fromkeys(given["scores"])))
    return merged


def _with(tables: Sequence[Mapping[str, Any]], given: Iterable[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """Return ``tables`` with those ``given`` that say something else: an option that repeats what is there changes nothing."""
    return [*tables, *(each for each in given if not any(each.items() <= table.items() for table in tables))]


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _lay_objective(merged: dict[str, Any], objective: str | None) -> None:
    """Set the objective: a text, or ``@FILE``, which is read whenever the loop is run."""
    if objective is None:
        return
    loop: dict[str, Any] = merged.setdefault("loop", {})
    loop.pop("objective", None)
    loop.pop("objective_file", None)
    if not objective.startswith("@"):
        loop["objective"] = objective
        return
    path = Path(objective[1:]).absolute()
    if not path.is_file():
        raise ConfigError(f"-p {escape(objective)}: no such file; a text that begins with @ needs a space before it")
    loop["objective_file"] = str(path)


def _lay_agent(merged: dict[str, Any], agent: Agent | None) -> None:
    """Leave out the agent's own files, and set aside what an iteration is charged that doesn't say what it cost.

    That is what the table says; at most a quarter of the limit where the agent reports its cost, so that what is set aside ends
    no loop early; where it doesn't, at most the limit.
    """
    if agent is None:
        return
    if agent.exclude:
        artifacts: dict[str, Any] = merged.setdefault("artifacts", {})
        artifacts["exclude"] = list(dict.fromkeys([*artifacts.get("exclude", []), *agent.exclude]))
    budget = merged.get("budget", {})
    limit = budget.get("max_cost_usd")
    if limit is not None and budget.get("reserve_cost_usd") is None:
        budget["reserve_cost_usd"] = min(agent.reserve_usd, limit / 4 if agent.reports_cost else limit)
    if not merged.get("loop", {}).get("objective") and not merged.get("loop", {}).get("objective_file"):
        raise ConfigError(f"--agent {agent.program}: say what it is to do: -p 'make the tests pass', or -p @FILE")


def _lay_recorded(loop: dict[str, Any]) -> None:
    """Have another's work recorded: in a copy, one at a time, each after the one before it, and never put in place unasked."""
    loop.update(candidates=1, continue_from="previous", apply="never")
    if loop.get("isolation", "none") in IN_PLACE:
        loop["isolation"] = "copy"


def scorer_of(score: str) -> dict[str, Any]:
    """Return the scorer of ``DIMENSION=COMMAND``, or of a command alone; ``MODE=fast COMMAND`` sets a variable."""
    named = _DIMENSION.match(score)
    return {"dimension": named[1], "command": score[named.end() :]} if named else {"dimension": "quality", "command": score}


def _checks(checks: Sequence[str]) -> list[dict[str, Any]]:
    return [{"name": check, "command": check} for check in dict.fromkeys(checks)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a person asked to run.

    ``base`` is the directory that relative paths of the configuration start from, ``path`` its file. ``named`` is False
    when the configuration came from the command line alone, so that the loop has no name of its own. ``exact`` is True when
    a person named the loop itself: then it is that one, and not the newest of its configuration. ``resume`` "never" refuses
    to resume a loop that is there, "require" to start one where none is. ``steps`` is how many iterations this run may make,
    None for all. ``limits`` says which limits come from where.
    ``options`` is what the command line said of the configuration, ``lay`` returns the one with further options of earlier
    command lines; without them it is ``config``, which is ``refused`` where only they could make it whole.
    ``origin`` is where the iterations come from, where they are imported.
    ``notices`` are what the person should know before anything runs, ``told`` what the loop says of them.
    ``ask`` puts a question to the person and returns whether the answer is yes; None where nobody is there to answer.
    """

    config: JumarConfig
    base: Path
    root: Path
    path: Path | None = None
    named: bool = True
    exact: bool = False
    new: bool = False
    accept_changes: bool = False
    allow_broken_start: bool = False
    accept_size: bool = False
    ask: Callable[[str], bool] | None = None
    resume: Resume = "auto"
    steps: int | None = None
    limits: Given = field(default_factory=Given)
    options: Given = field(default_factory=Given)
    lay: Callable[[Mapping[str, Any]], JumarConfig] | None = None
    refused: ConfigError | None = None
    told: tuple[str, ...] = ()
    origin: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()

    def config_for(self, store: LoopReader) -> JumarConfig:
        """Return the configuration that a resume of the loop in ``store`` has."""
        kept = {} if self.lay is None else held(self.options, store)
        return self.config if self.lay is None or not kept else self.lay(kept)


def request_of(
    given: Mapping[str, Any], command: Sequence[str] | None = None, *, ask: Callable[[str], bool] | None = None
) -> RunRequest:
    """Return what the options ``given`` ask for, by their names as keywords, a ``command`` standing for the generator.

    Errors: :class:`ConfigError` where they and the configuration do not say what to run.
    """
    known = _recorded_config(given, given["root"] or Path(DEFAULT_ROOT)) if command is None else None
    refused = None
    if known is not None:
        (config, base), path = known, None
    else:
        config, path, refused = _configured_or_refused(given, command)
        base = Path.cwd() if path is None else path.parent
    return RunRequest(
        config=config,
        base=base,
        root=given["root"] or (Path.cwd() if path is None else base) / DEFAULT_ROOT,
        path=path,
        named=path is not None or given["loop_id"] is not None,
        exact=given["loop_id"] is not None,
        new=given["new"],
        accept_changes=given["accept_changes"],
        allow_broken_start=given["allow_broken_start"],
        accept_size=given["accept_size"],
        ask=ask,
        resume=given["resume"],
        steps=given["steps"],
        limits=_given_limits(given, path, config),
        options=_given_options(given, path),
        lay=_layer(given, command, path, known),
        refused=refused,
        notices=tuple(notice for notice in (_objective_notice(given, config), _cost_notice(given, config)) if notice is not None),
    )
