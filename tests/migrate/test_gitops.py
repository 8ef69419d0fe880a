"""Argo CD and Flux: order of a runtime and its job, and what a sync deletes."""

from __future__ import annotations

import pytest

from tests.migrate.rules.support import v1
from trainjob.findings import Severity
from trainjob.kube import yaml
from trainjob.migrate import Options, migrate_text
from trainjob.migrate.gitops import App, Moved, apps, check

WAVE = "argocd.argoproj.io/sync-wave"
HOOK = "argocd.argoproj.io/hook"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: nlp
spec:
  source:
    path: ./teams/nlp
  syncPolicy:
    automated:
      prune: true
"""
SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all}
spec:
  template:
    spec:
      sources: [{path: "teams/{{name}}"}]
      syncPolicy: {automated: {selfHeal: true}}
"""
FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: nlp}
spec:
  path: ./teams/nlp
  prune: true
"""


def annotations(kind: str, notes: dict[str, str], *, argo: bool = False) -> dict[str, str]:
    """What a job with a runtime of its own has after the migration."""
    job = v1({"workingDir": "/w"}, metadata={"name": "a", "annotations": notes})
    result = migrate_text(yaml.dump(job), options=Options(argo=argo))
    found = {d.data["kind"]: d.data["metadata"].get("annotations", {}) for d in yaml.load(result.text)}
    return {k: v for k, v in found[kind].items() if "argocd" in k}


class TestOrder:
    @pytest.mark.parametrize(
        ("notes", "runtime"),
        [
            ({WAVE: "3"}, {WAVE: "2"}),
            ({"argocd.argoproj.io/sync-options": "Prune=false"}, {WAVE: "-1"}),
            ({HOOK: "PreSync"}, {WAVE: "-1", HOOK: "PreSync", f"{HOOK}-delete-policy": "BeforeHookCreation"}),
            ({WAVE: "late"}, {}),
            ({}, {}),
        ],
    )
    def test_the_runtime_has_the_wave_before(self, notes: dict[str, str], runtime: dict[str, str]) -> None:
        assert annotations("TrainJob", notes) == notes
        assert annotations("TrainingRuntime", notes) == runtime

    def test_a_tree_of_argo_cd_needs_no_mark_on_the_job(self) -> None:
        assert annotations("TrainingRuntime", {}, argo=True) == {WAVE: "-1"}

    def test_a_job_without_a_runtime_of_its_own_is_as_before(self) -> None:
        job = yaml.dump(v1())
        assert migrate_text(job, options=Options(argo=True)).text == migrate_text(job).text


class TestApps:
    def test_what_applies_a_folder(self) -> None:
        (app,) = apps("app.yaml", APPLICATION)
        assert (app.kind, app.name, app.path, app.prune, app.where.line) == (
            "Argo CD Application", "nlp", "teams/nlp", True, 10,
        )  # fmt: skip
        (many,) = apps("set.yaml", SET)
        assert (many.path, many.prune) == ("", False)
        (flux,) = apps("flux.yaml", FLUX)
        assert (flux.argo, flux.path, flux.prune) == (False, "teams/nlp", True)

    @pytest.mark.parametrize("text", ["kind: Application\n", "a: [argoproj.io/", APPLICATION.replace("source", "x")])
    def test_other_texts(self, text: str) -> None:
        assert [a.path for a in apps("x.yaml", text)] in ([], [""])

    @pytest.mark.parametrize(
        ("path", "file", "covered"),
        [
            ("teams/nlp", "teams/nlp/job.yaml", True),
            ("repo/teams/nlp", "teams/nlp/job.yaml", False),
            ("nlp", "teams/nlp/a/job.yaml", True),
            ("teams/nl", "teams/nlp/job.yaml", False),
            ("", "job.yaml", True),
        ],
    )
    def test_cover(self, path: str, file: str, covered: bool) -> None:
        (app,) = apps("a", APPLICATION.replace("./teams/nlp", path or "."))
        assert app.covers(file) is covered


def moved(name: str = "tune", *, file: str = "teams/nlp/job.yaml", runtime: bool = False, **notes: str) -> Moved:
    return Moved(file, name, {k.replace("__", "/"): v for k, v in notes.items()}, runtime)


def told(text: str, *jobs: Moved, severity: Severity = Severity.WARNING) -> list[tuple[str, str]]:
    found: list[App] = list(apps("app.yaml", text)) if text else []
    return [(f.code, f.message) for f in check(found, list(jobs)) if f.severity is severity]


class TestPrune:
    @pytest.mark.parametrize("text", [APPLICATION, FLUX], ids=["argo", "flux"])
    def test_an_app_that_prunes(self, text: str) -> None:
        ((code, message),) = told(text, moved("a"), moved("b"))
        assert code == "TJ922"
        assert "deletes the PyTorchJobs a, b, running ones too" in message

    def test_jobs_that_are_kept(self) -> None:
        argo = Moved("teams/nlp/a.yaml", "a", {"argocd.argoproj.io/sync-options": "Validate=false, Prune=false"}, False)
        flux = Moved("teams/nlp/a.yaml", "a", {"kustomize.toolkit.fluxcd.io/prune": "disabled"}, False)
        assert told(APPLICATION, argo) == []
        assert told(FLUX, flux) == []

    def test_an_app_that_does_not_prune(self) -> None:
        text = APPLICATION.replace("prune: true", "prune: false")
        assert told(text, moved()) == []
        assert any("leaves the PyTorchJobs tune" in m for _, m in told(text, moved(), severity=Severity.NOTE))

    def test_an_app_of_another_folder(self) -> None:
        assert told(APPLICATION, moved(file="teams/vision/job.yaml")) == []

    def test_an_overlay_that_reaches_the_job(self) -> None:
        (app,) = apps("app.yaml", APPLICATION)
        reached = {"teams/nlp/kustomization.yaml": {"base/job.yaml"}}
        assert "TJ922" in [f.code for f in check([app], [moved(file="base/job.yaml")], reached)]

    def test_a_job_of_an_application_elsewhere(self) -> None:
        job = Moved("job.yaml", "a", {WAVE: "1"}, False)
        ((code, message),) = told("", job)
        assert (code, "by an Application that is not in this tree" in message) == ("TJ922", True)


class TestFlux:
    def test_a_runtime_in_the_same_kustomization_is_a_deadlock(self) -> None:
        found = told(FLUX, moved(runtime=True))
        assert [c for c, _ in found] == ["TJ922", "TJ923"]
        assert "in a dry run before it applies any" in found[1][1]

    def test_no_runtime_no_word(self) -> None:
        assert [c for c, _ in told(FLUX, moved())] == ["TJ922"]
