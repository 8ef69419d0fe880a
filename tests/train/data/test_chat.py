"""Chats to tokens, and which are learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.train.data.material import CHATML, CHATML_MARKED, FORGETFUL, chat, tokenizer
from trainjob.train.data.chat import Chat, Chats
from trainjob.train.data.pieces import Encoded
from trainjob.train.faults import Code, TrainError

TALKS = [
    chat("the data", "in order"),
    [{"role": "system", "content": "one batch"}, *chat("x", " a row \n", "naïve?", "東京 Straße")],
    chat("no answer"),
    [*chat("a", "the"), {"role": "assistant", "content": "and its labels"}],
    chat("a", "", "b", "c</s>"),
]


def learnt(made: Any, document: Encoded) -> list[str]:
    assert document.learnt is not None
    return [made.decode(document.tokens[a:b].tolist()) for a, b in document.learnt]


@pytest.mark.parametrize("template", [CHATML, CHATML_MARKED], ids=["derived", "marked"])
def test_the_assistants_words_and_the_end_of_its_turn(template: str) -> None:
    made = tokenizer(template)
    documents = Chats(made, "assistant").encode([Chat(talk) for talk in TALKS])
    assert [learnt(made, document) for document in documents] == [
        ["in order<|im_end|>"],
        [" a row \n<|im_end|>", "東京 Straße<|im_end|>"],
        [],
        ["the<|im_end|>", "and its labels<|im_end|>"],
        ["<|im_end|>", "c</s><|im_end|>"],
    ]
    for document, talk in zip(documents, TALKS, strict=True):
        assert document.tokens.tolist() == made.apply_chat_template(talk)["input_ids"]


def test_marked_as_transformers_marks() -> None:
    made = tokenizer(CHATML_MARKED)
    for document, talk in zip(Chats(made, "assistant").encode([Chat(t) for t in TALKS]), TALKS, strict=True):
        mask = made.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True)["assistant_masks"]
        assert document.learnt is not None
        assert [int(any(a <= at < b for a, b in document.learnt)) for at in range(len(mask))] == mask


def test_derived_and_marked_are_the_same() -> None:
    chats = [Chat(talk) for talk in TALKS]
    assert Chats(tokenizer(CHATML), "assistant").encode(chats) == Chats(tokenizer(CHATML_MARKED), "assistant").encode(
        chats
    )


def test_all_words() -> None:
    made = tokenizer(FORGETFUL)
    for document, talk in zip(Chats(made, "all").encode([Chat(t) for t in TALKS]), TALKS, strict=True):
        assert document == Encoded(document.tokens, None)
        assert document.tokens.tolist() == made.apply_chat_template(talk)["input_ids"]


@pytest.mark.parametrize("learn", ["assistant", "all"])
@pytest.mark.parametrize("template", [CHATML, CHATML_MARKED])
def test_tools_are_each_chats_own(template: str, learn: str) -> None:
    made = tokenizer("{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}" + template)
    tool = {"type": "function", "function": {"name": "labels", "description": "x", "parameters": {}}}
    called = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "labels", "arguments": {}}}]},
    ]
    with_tool, without = Chats(made, learn).encode([Chat(called, [tool]), Chat(chat("x", "y"))])
    assert made.decode(with_tool.tokens.tolist()).startswith("labels\n<|im_start|>user")
    assert made.decode(without.tokens.tolist()).startswith("<|im_start|>user")


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "template.jinja"
    file.write_text(CHATML, "utf-8")
    chats = [Chat(talk) for talk in TALKS]
    assert Chats(tokenizer(FORGETFUL), "assistant", str(file)).encode(chats) == Chats(
        tokenizer(CHATML), "assistant"
    ).encode(chats)
    assert Chats(tokenizer(), "assistant", str(file)).template() == CHATML


@pytest.mark.parametrize(
    ("template", "talk", "says"),
    [
        (FORGETFUL, chat("a", "b", "c", "d"), "writes message 2 differently when others follow"),
        (CHATML, chat("a", "b", "c")[1:], "begins with the assistant"),
    ],
)
def test_a_template_that_hides_who_wrote_what(template: str, talk: list[dict[str, str]], says: str) -> None:
    with pytest.raises(TrainError, match=says) as caught:
        Chats(tokenizer(template), "assistant").encode([Chat(talk)])
    assert caught.value.code is Code.CONFIG
    assert "{% generation %}" in caught.value.fix
    assert "data.learn: all" in caught.value.fix


def test_a_marked_template_may_begin_with_the_assistant() -> None:
    made = tokenizer(CHATML_MARKED)
    talk = [{"role": "assistant", "content": "in order"}, *chat("the data", "rank")]
    (document,) = Chats(made, "assistant").encode([Chat(talk)])
    assert learnt(made, document) == ["in order<|im_end|>", "rank<|im_end|>"]


def test_no_template() -> None:
    with pytest.raises(TrainError, match="no chat template") as caught:
        Chats(tokenizer(), "assistant")
    assert caught.value.code is Code.CONFIG


def test_a_template_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match=r"none\.jinja: No such file") as caught:
        Chats(tokenizer(), "assistant", str(tmp_path / "none.jinja"))
    assert caught.value.code is Code.NOT_FOUND
