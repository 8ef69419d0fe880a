"""The tokenizer: loading it, and text to tokens.

AutoTokenizer alone, no lighter way: which of tokenizer.json, tokenizer_config.json and the class named there
counts is decided in transformers, differently for each model (5.24, models/auto/tokenization_auto.py), and
once the model's class is imported AutoTokenizer costs 3 ms more (measured, transformers 5.24).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from trainjob.train import config, hub
from trainjob.train.data.pieces import Encoded
from trainjob.train.faults import Code, TrainError

# Shows most of what two tokenizers do differently: case, spaces, digits, accents, CJK, bytes, lines.
_PROBE: Final = "Hello  World 12345 naïve Straße 東京 🚀\n\tdef f(x): return x != '…'"


def load(model: config.Model) -> Any:
    """The transformers tokenizer of `model`, from a folder or the hub.

    Raises TrainError: NOT_FOUND, NO_ACCESS (gated, private), HUB (not reached after the library's retries),
    CONFIG (needs the repository's own code).
    """
    from transformers import AutoTokenizer

    name = model.tokenizer or model.path
    # A tokenizer of its own repository has its own revisions.
    more = {"revision": model.revision} if model.revision and not model.tokenizer else {}
    if (name[:1] in "./~" or name.count("/") > 1) and not Path(name).expanduser().is_dir():
        raise TrainError(Code.NOT_FOUND, f"the tokenizer's folder {name} does not exist", _WHERE)
    folder = str(Path(name).expanduser()) if Path(name).expanduser().is_dir() else name
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=model.trust_remote_code, **more)
    except Exception as error:
        raise _not_loaded(name, error) from error


_WHERE: Final = (
    "model.path or model.tokenizer names a folder with tokenizer.json and tokenizer_config.json, or a name on the hub"
)


def _not_loaded(name: str, error: BaseException) -> TrainError:
    told, first = hub.code(error), hub.line(error)
    if told is Code.NO_ACCESS:
        return TrainError(
            Code.NO_ACCESS,
            f"the hub does not give out the tokenizer of {name}: {first}",
            "accept its licence on the hub, and set HF_TOKEN to a token that may read it; is the name right?",
        )
    if told is Code.HUB:
        return TrainError(
            Code.HUB,
            f"the hub cannot be reached for the tokenizer of {name}, and it is not in the cache",
            "mount the model as a folder and set model.path to it, or let the pod reach the hub (HF_ENDPOINT, proxy)",
        )
    if "trust_remote_code" in str(error):
        return TrainError(
            Code.CONFIG,
            f"the tokenizer of {name} runs code of its repository",
            "read that code, then set model.trust_remote_code: true",
        )
    if Path(name).expanduser().is_dir() and "Couldn't instantiate the backend tokenizer" in str(error):
        return TrainError(Code.NOT_FOUND, f"no tokenizer in the folder {name}", _WHERE)
    return TrainError(Code.NOT_FOUND, f"the tokenizer of {name} cannot be loaded: {first}", _WHERE)


def check_vocabulary(tokenizer: Any, vocab_size: int) -> None:
    """Raises TrainError(CONFIG) when the tokenizer has tokens that a model of `vocab_size` embeddings lacks."""
    if len(tokenizer) > vocab_size:
        raise TrainError(
            Code.CONFIG,
            f"the tokenizer has {len(tokenizer)} tokens, the model embeddings for {vocab_size}",
            "model.tokenizer must name the tokenizer that the model was made with",
        )


class Texts:
    """Text to tokens: as the tokenizer begins and ends a text, and the end-of-text token, once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend = backend(tokenizer)
        self._end: int | None = tokenizer.eos_token_id
        if self._end is None:
            raise TrainError(
                Code.CONFIG,
                "the tokenizer has no end-of-text token: the model would not learn where a document ends",
                "name it in tokenizer_config.json: eos_token",
            )

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Each text by itself, on all cores."""
        if self._backend is None:
            rows = [self._tokenizer.encode(text) for text in texts]
        else:
            rows = [each.ids for each in self._backend.encode_batch_fast(list(texts), add_special_tokens=True)]
        for row in rows:
            if row[-1:] != [self._end]:
                row.append(self._end)
        return [Encoded(array("i", row)) for row in rows]


def backend(tokenizer: Any) -> Any:
    """The Rust tokenizer within, which neither cuts nor pads; None for one in Python."""
    if not getattr(tokenizer, "is_fast", False):
        return None
    inner = tokenizer.backend_tokenizer
    # tokenizer.json may bring both, for whoever calls it without saying otherwise.
    inner.no_truncation()
    inner.no_padding()
    return inner


def fingerprint(tokenizer: Any) -> str:
    """Tells tokenizers apart by what they do to a text that most treat differently."""
    facts = (len(tokenizer), tokenizer.eos_token_id, tokenizer.encode(_PROBE))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
