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
NO_RUNTIME: Final = "TJ918"
KUSTOMIZE_EDIT: Final = "TJ920"
KUSTOMIZE_REFUSED: Final = "TJ921"
GITOPS_PRUNE: Final = "TJ922"
GITOPS_ORDER: Final = "TJ923"
TEMPLATE_EDIT: Final = "TJ924"
TEMPLATE_REFUSED: Final = "TJ925"
IN_PLACE: Final = "TJ926"
CLUSTER_READ: Final = "TJ930"
CREATOR: Final = "TJ931"
RUNNING: Final = "TJ932"
CLUSTER_MISSING: Final = "TJ933"
CLUSTER_QUOTA: Final = "TJ934"
CLUSTER_VERSION: Final = "TJ935"

# code -> (short name, what it says); docs/rules are generated from this.
CODES: Final[dict[str, tuple[str, str]]] = {
    UNCLAIMED: ("unclaimed-field", "A field is present that no rule answers for; the job is refused."),
    UNKNOWN_FIELD: ("unknown-field", "The v1 API does not know the field and dropped it; so does migrate."),
    WRONG_TYPE: ("wrong-type", "The v1 API server refuses this value: it has the wrong type."),
    UNQUOTED: ("unquoted-scalar", "A number, boolean or date stands where text belongs; its written text is used."),
    DUPLICATE_KEY: ("duplicate-key", "A key stands twice in one mapping; the last one holds, as for kubectl."),
    YAML_ERROR: ("yaml-error", "The input is no YAML (or JSON) that can be read."),
    PLACEHOLDER: ("template-placeholder", "A template is not rendered: Helm, Jinja, envsubst or <NAME>."),
    OTHER_API: ("other-api", "The apiVersion of the job is another controller's, or older than kubeflow.org/v1."),
    WRAPPER: ("unknown-wrapper", "A PyTorchJob stands inside a kind that migrate does not know; it is left untouched."),
    JOB_IN_TEXT: ("job-in-text", "A PyTorchJob stands inside a text and cannot be rewritten there."),
    NO_JOB: ("no-job", "The input holds no v1 training job."),
    REFUSED_BY_V1: ("refused-by-v1", "The v1 webhook or controller refuses the job, or has to repair it."),
    CANNOT_READ: ("cannot-read", "A file or folder cannot be read or written."),
    COMMENTS: ("comments-lost", "A converted document is written anew: its comments are not kept."),
    WRAPPER_EDIT: ("wrapper-edit", "Something around the job was changed with it, or has to be."),
    INVALID_OUTPUT: ("invalid-output", "The TrainJob would be refused by its Trainer version."),
    FOREIGN_RUNTIME: ("foreign-runtime", "The runtime asked for is not in the catalogue and cannot be checked."),
    GATED: ("gated-runtime", "Several nodes: the runtime is that of a component, or the namespace has to be opened."),
    NO_RUNTIME: ("no-runtime-for-kind", "Trainer has no runtime for a v1 job of this kind; see what to use instead."),
    KUSTOMIZE_EDIT: ("kustomize-edit", "A kustomization was changed so that it renders the migrated jobs."),
    KUSTOMIZE_REFUSED: ("kustomize-refused", "A kustomization cannot be migrated; nothing of its tree is written."),
    GITOPS_PRUNE: ("gitops-prune", "Argo CD or Flux deletes PyTorchJobs that leave Git, running ones too."),
    GITOPS_ORDER: ("gitops-order", "The order in which Argo CD or Flux applies a TrainJob and its runtime."),
    TEMPLATE_EDIT: ("template-edit", "A line of a Helm template that makes a PyTorchJob, and what to write there."),
    TEMPLATE_REFUSED: ("template-refused", "A Helm chart cannot be rendered, or not be rewritten."),
    IN_PLACE: ("not-in-place", "A file is not replaced: it is not saved in Git, a link, or a job is refused."),
    CLUSTER_READ: ("cluster-not-read", "Something in the cluster could not be listed, so it was not looked at."),
    CREATOR: ("job-creator", "Something in the cluster creates PyTorchJobs, and has to change with them."),
    RUNNING: ("job-running", "A PyTorchJob is running: migrated and applied now, it trains twice."),
    CLUSTER_MISSING: ("cluster-missing", "The target cluster lacks something that a migrated job names."),
    CLUSTER_QUOTA: ("cluster-quota", "A ResourceQuota of the target is smaller than a job's GPUs."),
    CLUSTER_VERSION: ("cluster-version", "The CRDs of the target are missing, or of another Trainer version."),
}  # fmt: skip
