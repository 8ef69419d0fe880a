"""The image of an S3 server: Versity's gateway (Apache-2.0), which keeps objects as files in a folder.

Nothing of the stack needs it, so it is built when a test asks for it: `python -m tests.cluster load s3`.
"""

from __future__ import annotations

from typing import Final

from . import binaries, container
from .context import Context
from .versions import S3_SERVER

IMAGE: Final = f"localhost/trainjob-s3:{S3_SERVER.module.version}"
PORT: Final = 7070
_PLACE: Final = "/versitygw"
_USER: Final = "65532:65532"


def ensure(ctx: Context) -> str:
    """Makes the image if there is none of this recipe; returns its name."""
    recipe = container.recipe(S3_SERVER, ctx.host.arch, _PLACE, _USER)
    if not container.has(ctx, IMAGE, recipe):
        program = binaries.provide(ctx, [S3_SERVER])[S3_SERVER.name]
        container.import_files(ctx, IMAGE, {_PLACE: program}, container.changes(recipe, (_PLACE,), user=_USER))
    return IMAGE
