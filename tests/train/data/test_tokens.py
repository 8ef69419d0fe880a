"""Loading the tokenizer, and text to tokens."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.train.data.material import texts, tokenizer
from trainjob.train import config
from trainjob.train.data import tokens
from trainjob.train.faults import Code, TrainError


def refused(**model: Any) -> TrainError:
    with pytest.raises(TrainError) as caught:
        tokens.load(config.Model(**model))
    return caught.value


def test_from_a_folder_as_transformers_loads_it(tmp_path: Path) -> None:
    tokenizer("{{ messages }}", bos=True).save_pretrained(tmp_path)
    made = tokens.load(config.Model(path="/none", tokenizer=str(tmp_path)))
    assert (made.bos_token, made.eos_token, made.chat_template) == ("<s>", "</s>", "{{ messages }}")
    some = [*texts(20, seed=1), "", "a</s>", " x <|im_end|>", "🚀\n\n\t"]
    encoded = [each.tokens.tolist() for each in tokens.Texts(made).encode(some)]
    for text, ids in zip(some, encoded, strict=True):
        plain = made(text)["input_ids"]
        assert ids == (plain if plain[-1] == made.eos_token_id else [*plain, made.eos_token_id])
        assert ids.count(made.eos_token_id) == 1
        assert ids[0] == made.bos_token_id


def test_truncation_and_padding_of_the_file_are_not_applied(tmp_path: Path) -> None:
    made = tokenizer()
    made.backend_tokenizer.enable_truncation(5)
    made.backend_tokenizer.enable_padding(length=50)
    made.save_pretrained(tmp_path)
    assert '"max_length": 5' in (tmp_path / "tokenizer.json").read_text()
    loaded = tokens.load(config.Model(path=str(tmp_path)))
    long = " ".join(texts(10))
    assert tokens.Texts(loaded).encode([long, "a"]) == tokens.Texts(tokenizer()).encode([long, "a"])


def test_no_end_of_text() -> None:
    with pytest.raises(TrainError, match="no end-of-text token") as caught:
        tokens.Texts(tokenizer(eos=""))
    assert caught.value.code is Code.CONFIG


@pytest.mark.parametrize("name", ["/none/model", "./none", "~/none"])
def test_a_folder_that_is_not_there(name: str) -> None:
    error = refused(path=name)
    assert error.code is Code.NOT_FOUND
    assert name in error.reason


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    error = refused(path=str(tmp_path))
    assert (error.code, error.reason) == (Code.NOT_FOUND, f"no tokenizer in the folder {tmp_path}")


def test_a_broken_tokenizer(tmp_path: Path) -> None:
    tokenizer().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "model": ')
    error = refused(path=str(tmp_path))
    assert error.code is Code.NOT_FOUND
    assert str(tmp_path) in error.reason


def test_the_hub_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    error = refused(path="someone/some-model")
    assert error.code is Code.HUB
    assert "someone/some-model" in error.reason


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, "GatedRepoError", Code.NO_ACCESS),
        (403, "GatedRepoError", Code.NO_ACCESS),
        (404, "RevisionNotFoundError", Code.NOT_FOUND),
        (429, "HfHubHTTPError", Code.HUB),
        (503, "HfHubHTTPError", Code.HUB),
    ],
)
def test_what_the_hub_answers(monkeypatch: pytest.MonkeyPatch, status: int, kind: str, code: Code) -> None:
    """As transformers passes it on: an OSError whose cause is the hub's."""
    import huggingface_hub.errors
    import transformers

    class Response:
        status_code = status
        headers = MappingProxyType({"x-request-id": "1"})
        request = None

    def fails(*_: Any, **__: Any) -> Any:
        try:
            raise getattr(huggingface_hub.errors, kind)("the hub's words", response=Response())
        except OSError as error:
            raise OSError("transformers' words\nand more") from error

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", fails)
    assert refused(path="someone/some-model").code is code


def test_a_vocabulary_larger_than_the_model() -> None:
    made = tokenizer()
    tokens.check_vocabulary(made, len(made))
    with pytest.raises(TrainError, match=f"{len(made)} tokens, the model embeddings for {len(made) - 1}"):
        tokens.check_vocabulary(made, len(made) - 1)


def test_fingerprint() -> None:
    assert tokens.fingerprint(tokenizer()) == tokens.fingerprint(tokenizer())
    assert len({tokens.fingerprint(each) for each in (tokenizer(), tokenizer(bos=True), tokenizer(eos="<s>"))}) == 3
