"""Lines to documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.train.data.material import CHATML, chat, data, texts, tokenizer, write, write_texts
from trainjob.train.data import documents
from trainjob.train.data.documents import Documents
from trainjob.train.data.files import Place, expand
from trainjob.train.data.pieces import Piece
from trainjob.train.faults import Code, TrainError

GOOD = chat("the data", "in order")


def made(paths: list[Path], template: str = CHATML, log: list[str] | None = None, **more: Any) -> Documents:
    settings = data(*paths, **more)
    told = log if log is not None else []
    return Documents(settings, expand(settings.train), tokenizer(template), told.append)


def refused(path: Path, values: list[Any], **more: Any) -> TrainError:
    write(path, values)
    with pytest.raises(TrainError) as caught:
        list(made([path], **more).read(Place()))
    return caught.value


def pieces(of: Documents, start: Place = Place()) -> list[Piece]:  # noqa: B008
    return [piece for some, _ in of.read(start) for piece in some]


def test_the_first_line_tells_the_format(tmp_path: Path) -> None:
    assert made([write_texts(tmp_path / "a.jsonl", ["x"])]).form == "text"
    assert made([write(tmp_path / "b.jsonl", [{"messages": GOOD}])]).form == "chat"
    assert made([write(tmp_path / "c.jsonl", [{"body": "x"}])], text_field="body").form == "text"
    assert made([write(tmp_path / "d.jsonl", [{"talk": GOOD}])], chat_field="talk").form == "chat"
    (tmp_path / "e.jsonl").write_text("\n\n")
    assert made([tmp_path / "e.jsonl", tmp_path / "b.jsonl"]).form == "chat"


def test_one_format_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"text": "x", "messages": GOOD}])
    assert made([path], format="chat").form == "chat"
    with pytest.raises(TrainError, match=r'a\.jsonl:1: has both "text" and "messages"') as caught:
        made([path])
    assert caught.value.code is Code.CONFIG


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(TrainError, match="no documents in") as caught:
        made([tmp_path / "a.jsonl"])
    assert caught.value.code is Code.BAD_DATA


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"body": "x", "id": 3}, 'has no "text", but "body", "id"'),
        ({}, 'has no "text", but no keys'),
        ({str(n): n for n in range(10)}, '"7" and 2 more'),
        ({"text": None}, '"text" is not a string'),
        ({"text": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_a_bad_text(tmp_path: Path, value: Any, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n\n' + json.dumps(value) + "\n")
    with pytest.raises(TrainError) as caught:
        list(made([path]).read(Place()))
    assert caught.value.code is Code.BAD_DATA
    assert caught.value.reason.startswith(f"{path}:3: ")
    assert says in caught.value.reason
    assert caught.value.fix


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"conversations": []}, 'has no "messages", but "conversations"'),
        ({"messages": []}, '"messages" is not a list of messages'),
        ({"messages": "hello"}, '"messages" is not a list of messages'),
        ({"messages": ["hello"]}, 'message 1 of "messages" is not an object'),
        ({"messages": [GOOD[0], {"from": "gpt", "value": "x"}]}, 'has no "role", but "from", "value"'),
        ({"messages": [{"role": "user"}]}, 'message 1 of "messages" has no "content", but "role"'),
        ({"messages": GOOD, "tools": "none"}, '"tools" is not a list of JSON schemas'),
    ],
)  # fmt: skip
def test_a_bad_chat(tmp_path: Path, value: Any, says: str) -> None:
    path = tmp_path / "a.jsonl"
    error = refused(path, [{"messages": GOOD}, value, {"messages": GOOD}])
    assert error.code is Code.BAD_DATA
    assert error.reason.startswith(f"{path}:2: ")
    assert says in error.reason
    assert error.fix


def test_neither(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.jsonl", [{"prompt": "x", "completion": "y"}])
    assert 'a.jsonl:1: has neither "text" nor "messages", but "prompt", "completion"' in error.reason


@pytest.mark.parametrize(
    ("template", "code", "says"),
    [
        ("{{ raise_exception('roles must take turns') }}", Code.BAD_DATA, "refuses it: roles must take turns"),
        ("{% for m in messages %}{{ m.content }}{{ loop.last }}{% endfor %}", Code.CONFIG, "message 2 differently"),
    ],
)
def test_the_line_that_a_template_refuses(tmp_path: Path, template: str, code: Code, says: str) -> None:
    guarded = "{% if messages | length > 2 %}" + template + "{% else %}" + CHATML + "{% endif %}"
    error = refused(tmp_path / "a.jsonl", [{"messages": GOOD}, {"messages": GOOD + GOOD}], template=guarded)
    assert error.code is code
    assert "a.jsonl:2: " in error.reason
    assert error.reason.count("a.jsonl") == 1
    assert says in error.reason


def test_nothing_to_learn_is_told_once(tmp_path: Path) -> None:
    log: list[str] = []
    path = write(tmp_path / "a.jsonl", [{"messages": some} for some in (GOOD, chat("x"), chat("y"), GOOD)])
    found = list(made([path], log=log).read(Place()))
    assert [len(some) for some, _ in found] == [1, 0, 0, 1]
    assert log == [f"{path}:2: nothing to learn (no words of the assistant); such lines are left out"]


def test_from_any_place_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_TOGETHER", 4)
    paths = [write_texts(tmp_path / f"{n}.jsonl", texts(7, seed=n)) for n in range(3)]
    of = made(paths, seq_length=16)
    whole = list(of.read(Place()))
    assert len(whole) == 21
    for number, (_, end) in enumerate(whole):
        assert list(of.read(end)) == whole[number + 1 :]


def test_texts_end_once_and_long_ones_are_cut(tmp_path: Path) -> None:
    tok = tokenizer()
    short, long = "the data", "the data in order " * 30
    of = made([write_texts(tmp_path / "a.jsonl", [short, long, short + "</s>"])], seq_length=32)
    first, *middle, last = pieces(of)
    assert first.tokens.tolist() == last.tokens.tolist() == [*tok.encode(short), tok.eos_token_id]
    assert [piece.size for piece in middle[:-1]] == [32] * (len(middle) - 1)
    ids = [token for piece in middle for token in piece.tokens[:-1]] + [middle[-1].tokens[-1]]
    assert ids == [*tok.encode(long), tok.eos_token_id]


def test_the_template_that_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"messages": GOOD}])
    assert made([write_texts(tmp_path / "b.jsonl", ["x"])]).template() == ""
    assert made([path]).template() == made([path]).template() != made([path], template=CHATML + " ").template()
