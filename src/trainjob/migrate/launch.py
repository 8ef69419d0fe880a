"""How a container starts its training, read from command and args.

What counts: whether torchrun sets the rendezvous variables for the script (then the script
cannot tell v1 from v2), or the script takes RANK and WORLD_SIZE from the pod's env.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from trainjob.v1.pytorchjob import number

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
# How many words may stand before the shell of a command line.
_PREFIX: Final = 8
_PYTHON: Final = re.compile(r"(?:pypy|python)[0-9.]*\Z")
# Options of torch.distributed.run that take no value (torch 2.9, torch/distributed/run.py).
_SWITCHES: Final = frozenset({"standalone", "no-python", "run-path", "module", "m", "h", "help"})
_RANK_ENV: Final = re.compile(
    r"\$\{?(RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK)\b|\$\((RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)\)"
)
_READS_ENV: Final = re.compile(r"\b(RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|PET_[A-Z_]+)\b|init_process_group|env://")
_HOST_RANK: Final = re.compile(
    r"\$\{HOSTNAME\s*[#%/:]|\*-(?:worker|master)-|(?:\bhostname\b|\$\{?HOSTNAME\}?)[^\n;&]*\|\s*(?:sed|awk|cut|grep|rev|tr)\b"
    r"|gethostname\(\)[^\n]*(?:split|rsplit|partition|re\.)|HOSTNAME[\"'\])]+[^\n]*(?:split|rpartition)"
)


class Style(StrEnum):
    """The launcher that starts the training processes."""

    TORCHRUN = "torchrun"
    TORCH_RUN = "python -m torch.distributed.run"
    TORCH_LAUNCH = "python -m torch.distributed.launch"
    ACCELERATE = "accelerate launch"
    DEEPSPEED = "deepspeed"
    PYTHON = "python"
    ENTRYPOINT = "the image's entrypoint"
    OTHER = "another program"

    @property
    def torch(self) -> bool:
        return self in (Style.TORCHRUN, Style.TORCH_RUN, Style.TORCH_LAUNCH)


@dataclass(frozen=True, slots=True)
class Launch:
    """`bare`: the container's first program is torchrun itself, no shell, nothing read from env.

    `flags` are the launcher's own options, with `-` instead of `_`.
    """

    style: Style
    shell: bool
    bare: bool
    text: str
    flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_rank_env(self) -> bool:
        return bool(_RANK_ENV.search(self.text))

    @property
    def rank_from_hostname(self) -> re.Match[str] | None:
        return _HOST_RANK.search(self.text)

    @property
    def many_processes(self) -> bool:
        """The launcher starts one process per device of the node."""
        return self.style.torch or self.style in (Style.ACCELERATE, Style.DEEPSPEED)

    def literal(self, flag: str) -> int | None:
        """The value of a launcher flag, when it is a plain number."""
        return number(self.flags.get(flag, ""))


def classify(command: Sequence[str] | None, args: Sequence[str] | None) -> Launch:
    """The launch of a container. `$$` is Kubernetes' escape of `$` and is read as `$`."""
    words = [w.replace("$$", "$") for w in [*(command or ()), *(args or ())]]
    text = "\n".join(words)
    if not command:
        # Args alone go to the image's entrypoint, unless they start a launcher themselves.
        if not words or _launcher(words, 0)[0] is None:
            return Launch(Style.ENTRYPOINT, False, False, text)
        found, flags = _find(words)
        return Launch(found, False, False, text, flags)
    script = shell_script(list(command), list(args or ()))
    if script is not None:
        tokens = _tokens(words[script[0]])
        found, flags = _find(tokens)
        return Launch(found, True, False, text, flags)
    style, length = _launcher(words, 0)
    if style is not None:
        flags = _flags(words[length:])
        bare = style.torch and not _RANK_ENV.search(text)
        return Launch(style, False, bare, text, flags)
    found, flags = _find(words)
    return Launch(found, False, False, text, flags)


def shell_script(command: Sequence[str], args: Sequence[str]) -> tuple[int, int] | None:
    """Where `sh -c` keeps its script: (index in command+args, index of the shell itself), or None."""
    words = [*command, *args]
    for start, word in enumerate(words[:_PREFIX]):  # behind env, tini, numactl and their like
        if _launcher(words, start)[0] is not None:
            return None
        if _base(word) in _SHELLS:
            return _script_of(words, start)
    return None


def _script_of(words: Sequence[str], start: int) -> tuple[int, int] | None:
    saw_c = value = False
    for i in range(start + 1, len(words)):
        if value:  # of `-o pipefail`
            value = False
        elif words[i] == "--" and saw_c:
            continue
        elif words[i].startswith("-") or (words[i].startswith("+") and not saw_c):
            saw_c = saw_c or bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", words[i]))
            value = bool(re.fullmatch(r"[-+][a-zA-Z]*[oO]|--(?:rcfile|init-file)", words[i]))
        else:
            return (i, start) if saw_c else None
    return None


def reads_env(script: str) -> bool:
    """True when a script's text takes its rank or address from the environment."""
    return bool(_READS_ENV.search(script))


def reads_v1_env(script: str) -> bool:
    """True when it reads names that v1 set and v2 does not (PET_* is the same in both)."""
    return bool(re.search(r"(?<!PET_)\b(RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)\b|env://|init_process_group", script))


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _launcher(words: Sequence[str], i: int) -> tuple[Style | None, int]:
    """The launcher that starts at word i, and the index of its first argument."""
    base = _base(words[i]) if i < len(words) else ""
    if base == "torchrun":
        return Style.TORCHRUN, i + 1
    if base == "accelerate" and words[i + 1 : i + 2] == ["launch"]:
        return Style.ACCELERATE, i + 2
    if base in ("deepspeed", "ds"):
        return Style.DEEPSPEED, i + 1
    if _PYTHON.match(base):
        j = i + 1
        while j < len(words) and words[j].startswith("-") and words[j] not in ("-m", "-c"):
            j += 2 if words[j] in ("-W", "-X") else 1
        if j < len(words) and _base(words[j]) in ("torchrun", "accelerate", "deepspeed"):
            style, after = _launcher(words, j)  # python /opt/conda/bin/torchrun
            if style is not None:
                return style, after
        module = words[j + 1] if words[j : j + 1] == ["-m"] and j + 1 < len(words) else ""
        known = {
            "torch.distributed.run": Style.TORCH_RUN,
            "torch.distributed.launch": Style.TORCH_LAUNCH,
            "torch.distributed.launcher.api": Style.TORCH_RUN,
            "accelerate.commands.launch": Style.ACCELERATE,
            "deepspeed.launcher.runner": Style.DEEPSPEED,
        }
        return known.get(module, Style.PYTHON), (j + 2 if module in known else j)
    return None, i


def _find(words: Sequence[str]) -> tuple[Style, dict[str, str]]:
    """The launcher anywhere in a command line; torchrun and its like before plain python."""
    plain = None
    for i in range(len(words)):
        style, after = _launcher(words, i)
        if style is not None and style is not Style.PYTHON:
            return style, _flags(words[after:])
        plain = plain or style
    return plain or Style.OTHER, {}


def _flags(words: Sequence[str]) -> dict[str, str]:
    """Options up to the script. Options may be given as --a-b, --a_b, with `=` or a space."""
    out: dict[str, str] = {}
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "--":
        key, eq, value = words[i].lstrip("-").partition("=")
        key = key.replace("_", "-")
        if not eq and key not in _SWITCHES and i + 1 < len(words) and not words[i + 1].startswith("-"):
            i += 1
            value = words[i]
        out[key] = value
        i += 1
    return out


def _tokens(script: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", script)
    out: list[str] = []
    for line in joined.splitlines():
        try:
            out += shlex.split(line, comments=True)
        except ValueError:
            out += line.split()
    return [t for t in (token.strip(";&|()") for token in out) if t]
