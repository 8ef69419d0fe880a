"""Service account and pull secrets are carried.

What it does: copies serviceAccountName (and its old name serviceAccount), imagePullSecrets and
automountServiceAccountToken. Why it matters: without the pull secret the image cannot be pulled, and
on OpenShift the service account decides which security constraints apply.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainjob.findings import Finding
from trainjob.migrate.rule import POD, Claim, Draft, Outcome, Rule, Say
from trainjob.v1.pytorchjob import PyTorchJob


def _apply(job: PyTorchJob, draft: Draft) -> Iterator[Finding]:
    say = Say("TJ306", job)
    for role in draft.roles:
        pod = role.pod
        account = pod.get("serviceAccountName") or pod.get("serviceAccount")
        if account:
            role.spec["serviceAccountName"] = account
        if pod.get("serviceAccount") and not pod.get("serviceAccountName"):
            yield say.note(role.at("serviceAccount"), "serviceAccount is the old name of serviceAccountName")
        elif pod.get("serviceAccount") and pod["serviceAccount"] != account:
            yield say.note(role.at("serviceAccount"), f"serviceAccount is ignored beside serviceAccountName {account}")
        secrets = [s for s in pod.get("imagePullSecrets") or () if s.get("name")]
        if secrets:
            role.spec["imagePullSecrets"] = secrets
        if pod.get("automountServiceAccountToken") is not None:
            role.spec["automountServiceAccountToken"] = pod["automountServiceAccountToken"]
            yield say.note(
                role.at("automountServiceAccountToken"), "automountServiceAccountToken needs a generated runtime"
            )


RULE = Rule(
    "TJ306",
    "identity",
    (
        Claim(f"{POD}.serviceAccountName", Outcome.CARRIED, "patch serviceAccountName"),
        Claim(f"{POD}.serviceAccount", Outcome.TRANSLATED, "patch serviceAccountName"),
        Claim(f"{POD}.imagePullSecrets", Outcome.CARRIED, "patch imagePullSecrets"),
        Claim(f"{POD}.automountServiceAccountToken", Outcome.TRANSLATED, "TrainingRuntime"),
    ),
    _apply,
)
