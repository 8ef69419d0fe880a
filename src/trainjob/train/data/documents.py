"""Lines to pieces of documents, in the order of the files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from trainjob.train import config
from trainjob.train.data import tokens
from trainjob.train.data.chat import Chat, Chats
from trainjob.train.data.files import DataFile, Line, Place, bad_line, lines
from trainjob.train.data.pieces import Encoded, Piece, cut
from trainjob.train.faults import Code, TrainError

# Lines that are tokenised together: enough for all cores, few enough to stop soon.
_TOGETHER: Final = 256


class Documents:
    """The documents of JSONL files, as pieces.

    Text: the tokenizer's own tokens around it, the end-of-text token at the end. Chats: as the chat template
    writes them. Raises TrainError: BAD_DATA naming file and line, CONFIG, NOT_FOUND.
    """

    def __init__(
        self, settings: config.Data, files: Sequence[DataFile], tokenizer: Any, log: Callable[[str], None]
    ) -> None:
        """Reads the first line, to tell text from chats."""
        self.settings = settings
        self.files = files
        self.form = settings.format if settings.format != "auto" else _form(settings, files)
        self._log = log
        self._told = False
        self._texts = tokens.Texts(tokenizer) if self.form == "text" else None
        self._chats = Chats(tokenizer, settings.learn, settings.chat_template) if self.form == "chat" else None

    def template(self) -> str:
        """A digest of the chat template, "" for text."""
        return hashlib.sha256(self._chats.template().encode()).hexdigest()[:16] if self._chats else ""

    def read(self, start: Place) -> Iterator[tuple[list[Piece], Place]]:
        """The pieces of each document from `start` on, none if it has nothing to learn, and the place after it."""
        source = lines(self.files, start)
        while batch := list(islice(source, _TOGETHER)):
            for line, document in zip(batch, self._encode(batch), strict=True):
                pieces = cut(document, self.settings.seq_length)
                if not pieces and not self._told:
                    self._told = True
                    self._log(f"{self._where(line)}: nothing to learn{self._why()}; such lines are left out")
                yield pieces, line.end

    def nothing(self) -> TrainError:
        """BAD_DATA for files without anything to learn."""
        names = ", ".join(file.path for file in self.files[:3]) + (" ..." if len(self.files) > 3 else "")
        return TrainError(
            Code.BAD_DATA,
            f"{names}: no document has anything to learn{self._why()}",
            'messages have "role": "assistant"; or set data.learn: all' if self._chats else "are the files empty?",
        )

    def _why(self) -> str:
        return " (no words of the assistant)" if self._chats and self.settings.learn == "assistant" else ""

    def _where(self, line: Line) -> str:
        return f"{self.files[line.start.file].path}:{line.start.line + 1}"

    def _encode(self, batch: Sequence[Line]) -> list[Encoded]:
        try:
            if self._texts:
                return self._texts.encode([self._text(line) for line in batch])
            assert self._chats
            return self._chats.encode([self._chat(line) for line in batch])
        except Exception as error:
            if len(batch) > 1:
                for line in batch:  # to find the line
                    self._encode([line])
                raise
            raise self._said(batch[0], error) from error

    def _said(self, line: Line, error: Exception) -> TrainError:
        """The error, with file and line."""
        if isinstance(error, TrainError):
            if error.reason.startswith(self._where(line)):
                return error
            return TrainError(error.code, f"{self._where(line)}: {error.reason}", error.fix)
        if _has_surrogates(line.value):
            why = "has half of a surrogate pair (\\ud800 to \\udfff), which is no character"
        elif self._chats:
            why = f"the chat template refuses it: {error}"
        else:
            why = f"cannot be tokenised: {error}"
        file = self.files[line.start.file]
        return bad_line(file, line.start, why, "correct or remove the line")

    def _text(self, line: Line) -> str:
        text = self._field(line, self.settings.text_field, "data.text_field")
        if not isinstance(text, str):
            raise self._bad(line, f'"{self.settings.text_field}" is not a string', "correct or remove the line")
        return text

    def _chat(self, line: Line) -> Chat:
        key = self.settings.chat_field
        messages = self._field(line, key, "data.chat_field")
        fix = 'write [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]'
        if not isinstance(messages, list) or not messages:
            raise self._bad(line, f'"{key}" is not a list of messages', fix)
        for number, message in enumerate(messages, 1):
            if not isinstance(message, dict):
                raise self._bad(line, f'message {number} of "{key}" is not an object', fix)
            if not isinstance(message.get("role"), str):
                raise self._bad(line, f'message {number} of "{key}" has no "role", but {_keys(message)}', fix)
            if message.get("content") is None and not message.get("tool_calls"):
                raise self._bad(line, f'message {number} of "{key}" has no "content", but {_keys(message)}', fix)
        tools = line.value.get("tools") or None
        if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
            raise self._bad(line, '"tools" is not a list of JSON schemas', "correct or remove it")
        return Chat(messages, tools)

    def _field(self, line: Line, key: str, setting: str) -> Any:
        if key not in line.value:
            raise self._bad(line, f'has no "{key}", but {_keys(line.value)}', f"{setting} names the key")
        return line.value[key]

    def _bad(self, line: Line, why: str, fix: str) -> TrainError:
        return bad_line(self.files[line.start.file], line.start, why, fix)


def _has_surrogates(value: dict[str, Any]) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _form(settings: config.Data, files: Sequence[DataFile]) -> str:
    """`text` or `chat`, as the first line says."""
    line = next(lines(files, Place()), None)
    if line is None:
        raise TrainError(
            Code.BAD_DATA,
            f"data.train: no documents in {', '.join(file.path for file in files[:3])}",
            "are they empty?",
        )
    text, chat = settings.text_field in line.value, settings.chat_field in line.value
    file = files[line.start.file]
    if text and chat:
        raise TrainError(
            Code.CONFIG,
            f'{file.path}:{line.start.line + 1}: has both "{settings.text_field}" and "{settings.chat_field}"',
            "say which one is learnt: data.format: text or chat",
        )
    if not (text or chat):
        raise bad_line(
            file,
            line.start,
            f'has neither "{settings.text_field}" nor "{settings.chat_field}", but {_keys(line.value)}',
            "data.text_field or data.chat_field names the key",
        )
    return "text" if text else "chat"


def _keys(value: dict[str, Any]) -> str:
    names = [f'"{key}"' for key in list(value)[:8]]
    more = f" and {len(value) - 8} more" if len(value) > 8 else ""
    return ", ".join(names) + more if names else "no keys"
