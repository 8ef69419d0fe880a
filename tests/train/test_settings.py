"""File, environment and flags: who wins, and what is refused with which words."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from trainjob.kube.yaml import dump
from trainjob.train import settings
from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError

LEAST = "model:\n  path: m\ndata:\n  train: [a.jsonl]\n"


def read(text: str = LEAST, env: dict[str, str] | None = None, **flags: str) -> Config:
    return settings.read(text, "job.yaml", env or {}, {k.replace("__", "."): v for k, v in flags.items()})


def refused(text: str = LEAST, env: dict[str, str] | None = None, **flags: str) -> str:
    with pytest.raises(TrainError) as caught:
        read(text, env, **flags)
    assert caught.value.code is Code.CONFIG
    return str(caught.value)


def test_the_flag_wins_then_the_variable_then_the_file_then_the_default() -> None:
    text = LEAST + "lora:\n  rank: 1\n"
    env = {"TRAINJOB_TRAIN_LORA_RANK": "2"}
    assert read().lora.rank == 0
    assert read(text).lora.rank == 1
    assert read(text, env).lora.rank == 2
    assert read(text, env, lora__rank="3").lora.rank == 3


def test_every_setting_can_be_given_in_each_way() -> None:
    """The default of each, written as a text, is read back from the file, a variable and a flag."""
    for setting in settings.settings():
        if setting.required:
            continue
        typed = ",".join(map(str, setting.default)) if setting.type is tuple else str(setting.default)
        given: dict[str, dict[str, object]] = {"model": {"path": "m"}, "data": {"train": ["a.jsonl"]}}
        plain = list(setting.default) if setting.type is tuple else setting.default
        given.setdefault(setting.section, {})[setting.name] = plain
        ways = read(dump(given)), read(env={setting.variable: typed}), read(**{setting.key: typed})
        for config in ways:
            assert getattr(getattr(config, setting.section), setting.name) == setting.default, setting.key


def test_what_is_effective_can_be_read_again() -> None:
    config = read(LEAST, optim__betas="0.8,0.9", lora__targets="q_proj, v_proj", lora__rank="4")
    assert settings.read(dump(settings.effective(config)), "again.yaml", {}, {}) == config


def test_all_problems_are_told_at_once_with_their_places() -> None:
    said = refused(
        "model:\n  pth: x\ntrain:\n  steps: 1.5\n  precision: fp16\nlorra: {}\n",
        {"TRAINJOB_TRAIN_LORA_RNK": "3", "TRAINJOB_TRAIN_OPTIM_LR": "fast"},
        data__packing="maybe",
    )
    for part in (
        "job.yaml:2:3: model.pth: no such setting, did you mean model.path?",
        "job.yaml:4:3: train.steps is 1.5; a whole number is expected",
        "job.yaml:5:3: train.precision is 'fp16'; there are bf16, fp32",
        "job.yaml:6:1: lorra: no such section, did you mean lora?",
        "variable TRAINJOB_TRAIN_LORA_RNK: no such setting, did you mean TRAINJOB_TRAIN_LORA_RANK?",
        "variable TRAINJOB_TRAIN_OPTIM_LR: optim.lr is 'fast'; a number is expected",
        "--data.packing: data.packing is 'maybe'; true or false is expected",
        "model.path is missing: set it in the file, with --model.path or TRAINJOB_TRAIN_MODEL_PATH",
        "data.train is missing",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"checkpoint__resume": "latest"}, "checkpoint.resume is 'latest'"),
        ({"train__steps": "5", "optim__warmup_steps": "6"}, "more than train.steps, 5"),
        ({"lora__quantize": "nf4"}, "lora.rank is 0"),
        ({"lora__quantize": "nf4", "lora__rank": "4", "model__init": "random"}, "model.init is random"),
        ({"export__kind": "merged"}, "there is no adapter"),
        ({"export__kind": "full", "lora__rank": "4"}, "there are adapter and merged"),
        ({"train__micro_batch": "9"}, "more than train.global_batch, 8"),
        ({"parallel__mode": "ddp", "parallel__cpu_offload": "true"}, "needs mode fsdp"),
        ({"train__steps": "-1"}, "at least 0"),
        ({"optim__betas": "0.9"}, "2 numbers from 0 to 1"),
        ({"optim__min_lr_ratio": "2"}, "a part of the peak"),
        ({"optim__lr": "nan"}, "at least 0"),
        ({"train__seed": "1e400"}, "a whole number"),
        ({"lora__rank": "4", "lora__targets": ""}, "lora.targets is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused(flags: dict[str, str], words: str) -> None:
    assert words in refused(**flags)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a\n", "a mapping of sections is expected"),
        ("model: [", "job.yaml:"),
        ("a: 1\n---\nb: 2\n", "2 YAML documents"),
        ("model: x\n", "model: fields are expected below it"),
        ("model:\n  path: a\n  path: b\n", "path is set twice"),
        ("model:\n  path: {a: 1}\n", "model.path is a text, not a mapping"),
        ("data:\n  train: [[a]]\n", "data.train is a list of texts"),
    ],
)
def test_broken_files_are_told_with_their_place(text: str, words: str) -> None:
    assert words in refused(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="cannot be read"):
        settings.load(tmp_path / "no.yaml", {}, {})


def test_an_error_travels_between_ranks() -> None:
    error = TrainError(Code.HUB, "the hub does not answer", "try again")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, str(again)) == (Code.HUB, "the hub does not answer; try again")


def test_every_setting_has_a_help_text_and_a_name_of_its_own() -> None:
    made = list(settings.settings())
    assert len({s.variable for s in made}) == len({s.flag for s in made}) == len(made) > 40
    assert all(s.help and s.type in (str, int, float, bool, tuple) for s in made)
    assert {s.section for s in made} == {f.name for f in dataclasses.fields(Config)}
