"""Chats to tokens through the tokenizer's chat template, and which of these are the assistant's."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainjob.train.data.pieces import Encoded, Spans, spans_of, tokens_in
from trainjob.train.data.tokens import backend
from trainjob.train.faults import Code, TrainError

# A template that says itself what the assistant wrote (transformers 5.24, utils/chat_template_utils.py).
_GENERATION: Final = re.compile(r"\{%-?\s*generation\s*-?%\}")
_MARK: Final = (
    "put {% generation %}...{% endgeneration %} around the assistant's words in a template of your own "
    "(data.chat_template), or set data.learn: all"
)


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, and the tools (JSON schemas) that it may use."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None


class Chats:
    """Chats to tokens. The template writes all of a document, its beginning and end too."""

    def __init__(self, tokenizer: Any, learn: str, template_file: str = "") -> None:
        """`learn`: `assistant` or `all`. Raises TrainError: CONFIG without a template, NOT_FOUND without its file."""
        self._tokenizer = tokenizer
        self._backend = backend(tokenizer)
        self._template = _read(template_file) if template_file else None
        self._assistant = learn == "assistant"
        if not (self._template or tokenizer.chat_template):
            raise TrainError(
                Code.CONFIG,
                "the data are chats, but the tokenizer has no chat template: a base model's?",
                "name a file with one: data.chat_template, or the tokenizer of the chat model: model.tokenizer",
            )
        if self._assistant and self._backend is None:
            raise TrainError(
                Code.CONFIG,
                f"{type(tokenizer).__name__} does not tell which characters a token stands for, so the "
                "assistant's tokens cannot be found",
                "use a tokenizer with tokenizer.json, or set data.learn: all",
            )

    def template(self, tools: list[dict[str, Any]] | None = None) -> str:
        """The Jinja template in use."""
        return str(self._tokenizer.get_chat_template(self._template, tools))

    def encode(self, chats: Sequence[Chat]) -> list[Encoded]:
        """Raises what the template or the tokenizer raises; TrainError(CONFIG) if it hides who wrote what."""
        if not self._assistant:
            texts = [self._render(chat, chat.messages) for chat in chats]
            if self._backend is None:
                rows = [self._tokenizer.encode(text, add_special_tokens=False) for text in texts]
            else:
                rows = [each.ids for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]
            return [Encoded(array("i", row)) for row in rows]
        if all(_GENERATION.search(self.template(chat.tools)) for chat in chats):
            return self._marked(chats)
        return self._derived(chats)

    def _render(self, chat: Chat, messages: list[dict[str, Any]], prompt: bool = False) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                messages, tools=chat.tools, chat_template=self._template, add_generation_prompt=prompt, tokenize=False
            )
        )

    def _marked(self, chats: Sequence[Chat]) -> list[Encoded]:
        """By the template's {% generation %}. Those with tools one by one: a call takes the tools of one."""
        alike = not any(chat.tools for chat in chats)
        if not alike and len(chats) > 1:
            return [self._marked([chat])[0] for chat in chats]
        made = self._tokenizer.apply_chat_template(
            [chat.messages for chat in chats],
            tools=chats[0].tools,
            chat_template=self._template,
            return_dict=True,
            return_assistant_tokens_mask=True,
            tokenizer_kwargs={"verbose": False},
        )
        return [
            Encoded(array("i", ids), spans_of(mask))
            for ids, mask in zip(made["input_ids"], made["assistant_masks"], strict=True)
        ]

    def _derived(self, chats: Sequence[Chat]) -> list[Encoded]:
        """By rendering a chat up to each of the assistant's messages, and up to its end."""
        texts, spans = [], []
        for chat in chats:
            text = self._render(chat, chat.messages)
            texts.append(text)
            spans.append(self._written(chat, text))
        made = self._backend.encode_batch(texts, add_special_tokens=False)
        return [
            Encoded(array("i", each.ids), tokens_in(each.offsets, chars))
            for each, chars in zip(made, spans, strict=True)
        ]

    def _written(self, chat: Chat, text: str) -> Spans:
        """The characters of `text` that the assistant wrote, what ends its turn included.

        Not the white space after that: it belongs to the next turn's beginning, and is never generated.
        """
        spans: list[tuple[int, int]] = []
        for at, message in enumerate(chat.messages):
            if message.get("role") != "assistant":
                continue
            if at == 0:
                raise TrainError(
                    Code.CONFIG,
                    "the chat begins with the assistant: where its words begin cannot be seen from the chat template",
                    _MARK,
                )
            before = self._render(chat, chat.messages[:at], prompt=True)
            after = text if at + 1 == len(chat.messages) else self._render(chat, chat.messages[: at + 1])
            if not (text.startswith(before) and text.startswith(after) and len(before) <= len(after)):
                raise TrainError(
                    Code.CONFIG,
                    f"the chat template writes message {at + 1} differently when others follow, so the "
                    "assistant's tokens cannot be found",
                    _MARK,
                )
            end = len(before) + len(after[len(before) :].rstrip())
            spans.append((len(before), end))
        return tuple((a, b) for a, b in spans if a < b)


def _read(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise TrainError(
            Code.NOT_FOUND, f"data.chat_template: {file}: {why}", "is the volume or ConfigMap mounted?"
        ) from None
