"""Reads a Config from file, environment and flags; every error names its place, the field and the fix."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainjob.kube import yaml
from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError

PREFIX: Final = "TRAINJOB_TRAIN_"
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the configuration: `section.name`."""

    section: str
    name: str
    type: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    required: bool = False

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.section}_{self.name}".upper()

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")


def settings() -> Iterator[Setting]:
    """All fields, in the order of the classes."""
    for section in dataclasses.fields(Config):
        made = section.default_factory
        for entry in dataclasses.fields(made):  # type: ignore[arg-type]
            default = entry.default
            yield Setting(section.name, entry.name, type(default), default, **entry.metadata)


def read(text: str | None, file: str, environ: Mapping[str, str], flags: Mapping[str, str]) -> Config:
    """The effective configuration.

    `text`: the YAML file's content, or None; `flags`: `section.name` -> value as typed.
    Raises TrainError(CONFIG) with all that is wrong, one line each.
    """
    known = {setting.key: setting for setting in settings()}
    problems: list[str] = []
    values: dict[str, Any] = {}

    def take(key: str, value: Any, place: str) -> None:
        try:
            values[key] = _convert(known[key], value)
        except ValueError as error:
            problems.append(f"{place}: {error}")

    for key, value, place in _of_file(text, file, known, problems):
        take(key, value, place)
    by_variable = {setting.variable: setting.key for setting in known.values()}
    for name, value in sorted(environ.items()):
        if name in by_variable:
            take(by_variable[name], value, f"variable {name}")
        elif name.startswith(PREFIX):
            problems.append(f"variable {name}: no such setting{_near(name, by_variable)}")
    for key, value in flags.items():
        take(key, value, known[key].flag)
    for setting in known.values():
        if setting.required and not values.get(setting.key):
            problems.append(f"{setting.key} is missing: set it in the file, with {setting.flag} or {setting.variable}")
    config = _assemble(values)
    problems += [] if problems else _together(config)
    if problems:
        raise TrainError(Code.CONFIG, "; ".join(problems), "see python -m trainjob.train --help")
    return config


def load(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, str]) -> Config:
    """`read` with the text of a file."""
    if file is None:
        return read(None, "", environ, flags)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainError(Code.CONFIG, f"{file} cannot be read: {error}") from error
    return read(text, str(file), environ, flags)


def effective(config: Config) -> dict[str, dict[str, Any]]:
    """The configuration as plain data, for `--print-config`, checkpoints and trackers."""
    made = dataclasses.asdict(config)
    return {s: {k: list(v) if isinstance(v, tuple) else v for k, v in body.items()} for s, body in made.items()}


def _of_file(
    text: str | None, file: str, known: Mapping[str, Setting], problems: list[str]
) -> Iterator[tuple[str, Any, str]]:
    """(key, value, place) of each field in the file."""
    if not text or not text.strip():
        return
    try:
        documents = [doc for doc in yaml.load(text, file) if doc.data is not None]
    except yaml.YamlError as error:
        problems.append(f"{error.where}: {error.message}")
        return
    if len(documents) > 1:
        problems.append(f"{file}: {len(documents)} YAML documents, where one is expected")
        return
    for doc in documents:
        for twice in doc.duplicates:
            problems.append(f"{twice.where}: {twice.key} is set twice")
        if not isinstance(doc.data, dict):
            problems.append(f"{file}: a mapping of sections is expected, as `model:` with `path:` below it")
            return
        sections = {setting.section for setting in known.values()}
        for section, body in doc.data.items():
            place = str(doc.locate((section,)))
            if section not in sections:
                problems.append(f"{place}: {section}: no such section{_near(section, sections)}")
            elif not isinstance(body, dict):
                if body is not None:
                    problems.append(f"{place}: {section}: fields are expected below it")
            else:
                for name, value in body.items():
                    key, place = f"{section}.{name}", str(doc.locate((section, name)))
                    if key in known:
                        yield key, value, place
                    else:
                        problems.append(f"{place}: {key}: no such setting{_near(key, known)}")


def _near(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), 1)
    return f", did you mean {close[0]}?" if close else ""


def _convert(setting: Setting, value: Any) -> Any:
    """The value in the field's own type; ValueError says what is wrong."""
    made: Any
    if setting.type is tuple:
        made = _many(setting, value)
    elif setting.type is bool:
        made = _bool(setting, value)
    elif setting.type is str:
        if isinstance(value, dict | list):
            raise ValueError(f"{setting.key} is a text, not a {'mapping' if isinstance(value, dict) else 'list'}")
        made = "" if value is None else str(value)
    else:
        made = _number(setting, value)
    if setting.choices and made not in setting.choices:
        raise ValueError(f"{setting.key} is {made!r}; there are {', '.join(setting.choices)}")
    return made


def _many(setting: Setting, value: Any) -> tuple[Any, ...]:
    parts = value if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]
    if setting.default and isinstance(setting.default[0], float):
        numbers = tuple(_number(dataclasses.replace(setting, type=float), part) for part in parts)
        if len(numbers) != len(setting.default) or not all(0 <= number < 1 for number in numbers):
            raise ValueError(f"{setting.key} is {value!r}; {len(setting.default)} numbers from 0 to 1 are expected")
        return numbers
    if any(isinstance(part, dict | list) for part in parts):
        raise ValueError(f"{setting.key} is a list of texts")
    return tuple(str(part) for part in parts)


def _bool(setting: Setting, value: Any) -> bool:
    text = str(value).lower()
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ValueError(f"{setting.key} is {value!r}; true or false is expected")


def _number(setting: Setting, value: Any) -> Any:
    try:
        if isinstance(value, bool):
            raise ValueError
        made = setting.type(str(value).replace("_", "") if isinstance(value, str) else value)
        if setting.type is int and made != float(value):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        what = "a whole number" if setting.type is int else "a number"
        raise ValueError(f"{setting.key} is {value!r}; {what} is expected") from None
    if not made >= setting.least or math.isinf(made):
        raise ValueError(f"{setting.key} is {value!r}; at least {setting.least:g} is expected")
    return made


def _assemble(values: Mapping[str, Any]) -> Config:
    sections: dict[str, Any] = {}
    for entry in dataclasses.fields(Config):
        made: Any = entry.default_factory
        given = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{entry.name}.")}
        sections[entry.name] = made(**given)
    return Config(**sections)


def _together(config: Config) -> Iterator[str]:
    """What is wrong between fields."""
    steps, resume = config.train.steps, config.checkpoint.resume
    if resume not in ("auto", "never") and not resume.isdigit():
        yield f"checkpoint.resume is {resume!r}; there are auto, never, or the number of a step"
    if steps and config.optim.warmup_steps > steps:
        yield f"optim.warmup_steps is {config.optim.warmup_steps}, more than train.steps, {steps}"
    if config.optim.min_lr_ratio > 1:
        yield f"optim.min_lr_ratio is {config.optim.min_lr_ratio:g}; it is a part of the peak, 0 to 1"
    if config.lora.quantize != "none" and not config.lora.rank:
        yield f"lora.quantize is {config.lora.quantize}, but lora.rank is 0: 4-bit weights cannot be trained themselves"
    if config.lora.quantize != "none" and config.model.init == "random":
        yield "lora.quantize needs the weights of a model: model.init is random"
    if config.export.kind in ("adapter", "merged") and not config.lora.rank:
        yield f"export.kind is {config.export.kind}, but lora.rank is 0: there is no adapter"
    if config.export.kind == "full" and config.lora.rank:
        yield "export.kind is full, but lora.rank is set; there are adapter and merged"
    if config.lora.rank and not config.lora.targets:
        yield "lora.targets is empty; `all-linear` or names of layers are expected"
    if config.train.micro_batch > config.train.global_batch:
        yield (
            f"train.micro_batch is {config.train.micro_batch}, more than train.global_batch, "
            f"{config.train.global_batch}, the rows of a step over all ranks"
        )
    if config.parallel.cpu_offload and config.parallel.mode in ("ddp", "none"):
        yield f"parallel.cpu_offload needs mode fsdp, and it is {config.parallel.mode}"
