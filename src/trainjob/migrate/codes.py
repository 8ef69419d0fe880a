"""The engine's own findings, TJ9xx: about the input as a whole, not about one v1 field."""

from __future__ import annotations

from typing import Final

UNCLAIMED: Final = "TJ900"
UNKNOWN_FIELD: Final = "TJ901"
WRONG_TYPE: Final = "TJ902"
UNQUOTED: Final = "TJ903"
DUPLICATE_KEY: Final = "TJ904"
YAML_ERROR: Final = "TJ905"
PLACEHOLDER: Final = "TJ906"
OTHER_API: Final = "TJ907"
WRAPPER: Final = "TJ908"
JOB_IN_TEXT: Final = "TJ909"
NO_JOB: Final = "TJ910"
REFUSED_BY_V1: Final = "TJ911"
CANNOT_READ: Final = "TJ912"
COMMENTS: Final = "TJ913"
WRAPPER_EDIT: Final = "TJ914"
INVALID_OUTPUT: Final = "TJ915"
FOREIGN_RUNTIME: Final = "TJ916"
GATED: Final = "TJ917"

# code -> (short name, what it says); docs/rules are generated from this.
CODES: Final[dict[str, tuple[str, str]]] = {
    UNCLAIMED: ("unclaimed-field", "A field is present that no rule answers for; the job is refused."),
    UNKNOWN_FIELD: ("unknown-field", "The v1 API does not know the field and dropped it; so does migrate."),
    WRONG_TYPE: ("wrong-type", "The v1 API server refuses this value: it has the wrong type."),
    UNQUOTED: ("unquoted-scalar", "A number, boolean or date stands where text belongs; its written text is used."),
    DUPLICATE_KEY: ("duplicate-key", "A key stands twice in one mapping; the last one holds, as for kubectl."),
    YAML_ERROR: ("yaml-error", "The input is no YAML (or JSON) that can be read."),
    PLACEHOLDER: ("template-placeholder", "A template is not rendered: Helm, Jinja, envsubst or <NAME>."),
    OTHER_API: ("other-api", "The kind or its apiVersion is not kubeflow.org/v1 PyTorchJob."),
    WRAPPER: ("unknown-wrapper", "A PyTorchJob stands inside a kind that migrate does not know; it is left untouched."),
    JOB_IN_TEXT: ("job-in-text", "A PyTorchJob stands inside a text and cannot be rewritten there."),
    NO_JOB: ("no-job", "The input holds no PyTorchJob."),
    REFUSED_BY_V1: ("refused-by-v1", "The v1 webhook or controller refuses the job, or has to repair it."),
    CANNOT_READ: ("cannot-read", "A file or folder cannot be read or written."),
    COMMENTS: ("comments-lost", "A converted document is written anew: its comments are not kept."),
    WRAPPER_EDIT: ("wrapper-edit", "Something around the job was changed with it, or has to be."),
    INVALID_OUTPUT: ("invalid-output", "The TrainJob would be refused by its Trainer version."),
    FOREIGN_RUNTIME: ("foreign-runtime", "The runtime asked for is not in the catalogue and cannot be checked."),
    GATED: ("gated-runtime", "The job needs a runtime that no overlay installs unless its component is chosen."),
}  # fmt: skip
