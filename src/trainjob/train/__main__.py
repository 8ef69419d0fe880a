"""`python -m trainjob.train`: the command line. torch is imported only when there is something to train."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from trainjob.train import settings
from trainjob.train.faults import TrainError

# `trainjob launch` imports these before it forks the ranks: every run needs them.
PRELOAD: Final = ("torch.distributed.fsdp", "transformers.modeling_utils", "transformers.models.auto.tokenization_auto")

_EPILOG: Final = """\
\b
torchrun -m trainjob.train --config job.yaml
torchrun --nproc-per-node 2 -m trainjob.train --config job.yaml --lora.rank 16
python -m trainjob.train --model.path ./granite --data.train docs.jsonl --train.steps 100

Every setting is a key of the file, a variable and a flag: `lora: {rank: 16}`, TRAINJOB_TRAIN_LORA_RANK=16,
--lora.rank 16. The flag wins, then the variable, then the file.

\b
Exit codes. No restart helps: 65 data, 66 not found, 67 loss not finite, 69 data ended, 72 world size,
73 no space, 74 checkpoint, 76 versions differ, 77 no access, 78 configuration.
Worth another try: 79 hub, 80 hang, 81 object store, 82 GPU memory. 143: told to end, and saved.
"""


def _options() -> list[click.Parameter]:
    made: list[click.Parameter] = [
        click.Option(["--config", "-c"], metavar="FILE", help="YAML file of settings, in sections."),
        click.Option(["--print-config"], is_flag=True, help="Print the effective settings as YAML, and train nothing."),
    ]
    for setting in settings.settings():
        shown = ",".join(map(str, setting.default)) if isinstance(setting.default, tuple) else str(setting.default)
        default = "[required]" if setting.required else f"[default: {shown.lower() or 'none'}]"
        made.append(
            click.Option(
                [setting.flag, setting.key.replace(".", "__")],
                metavar="|".join(setting.choices) or {bool: "BOOL", int: "N", float: "X"}.get(setting.type, "TEXT"),
                help=f"{setting.help[:1].upper()}{setting.help[1:]}.  {default}",
            )
        )
    return made


def _run(config: str | None, print_config: bool, **given: str | None) -> int:
    flags = {name.replace("__", "."): value for name, value in given.items() if value is not None}
    try:
        chosen = settings.load(Path(config) if config else None, os.environ, flags)
    except TrainError as error:
        from trainjob.train.watch import last_words

        return last_words.end(error)
    if print_config:
        from trainjob.kube.yaml import dump

        click.echo(dump(settings.effective(chosen)), nl=False)
        return 0
    from trainjob.train.run import run

    return run(chosen)


command: Final = click.Command(
    "python -m trainjob.train",
    params=_options(),
    callback=_run,
    help="Fine-tune a causal language model: full or LoRA, one process or many, resumable.",
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def main(argv: Sequence[str] | None = None) -> Any:
    """Runs the command; returns its exit code."""
    return command.main(
        args=None if argv is None else list(argv), prog_name="python -m trainjob.train", standalone_mode=False
    )


def _leave(code: int) -> NoReturn:
    """Ends the process; one of several under torchrun without the destructors of torch's libraries.

    With gloo they abort it now and then (torch 2.13: 2 of 18 runs of a script that did no more than save), and a
    finished run would be restarted. Under `trainjob launch` a rank is a fork, and ends so anyway.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1" or multiprocessing.parent_process() is not None:
        sys.exit(code)
    from trainjob.train.watch import last_words

    atexit._run_exitfuncs()
    last_words.exit_now(code)


if __name__ == "__main__":
    try:
        code = main()
    except click.ClickException as error:
        error.show()
        code = 78
    _leave(code)
