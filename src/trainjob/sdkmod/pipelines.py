"""Steps of Kubeflow Pipelines and Argo that create PyTorchJobs: found, and reported with what replaces them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import libcst as cst

from trainjob.findings import Finding, Severity
from trainjob.kube import yaml
from trainjob.kube.yaml import Document
from trainjob.migrate import Migration, migrate_text
from trainjob.sdkmod import codes, objects
from trainjob.sdkmod.data import NotWritten
from trainjob.sdkmod.rawapi import step_name
from trainjob.sdkmod.script import UNKNOWN, Script
from trainjob.sdkmod.source import MARK

_LAUNCHER: Final = re.compile(r"pytorch[-_]?(?:job)?[-_]?launcher|launch_pytorchjob", re.I)
_MANIFEST: Final = re.compile(r"\bPyTorchJob\b|\bpytorchjobs\b", re.I)
_SDK: Final = re.compile(r"\bkubeflow[.-]training\b|\bTrainingClient\b")
# What a migrated step holds, beside words about PyTorchJobs in its messages.
_DONE: Final = re.compile(rf"\bTrainerClient\b|\btrainjobs\b|{re.escape(MARK)}")
_WORKFLOWS: Final = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
REPLACEMENT: Final = (
    "a Python step that creates the TrainJob with TrainerClient (package kubeflow>=0.5,<0.6) and waits for it with "
    "wait_for_job_status; give the job a name of its own for each run, and delete it on exit: a retried step meets its "
    "old job"
)


def python_steps(script: Script, folder: str) -> bool:
    """Report pipeline steps of a script. True when there was one."""
    source = script.source
    found = False
    told: set[str] = set()
    for call in source.nodes(cst.Call):
        names = script.names.qualified(call.func)
        last = {n.rpartition(".")[2] for n in names if n.startswith("kfp")}
        if last & {"load_component_from_url", "load_component_from_file", "load_component_from_text"}:
            if _loads_launcher(script, call, folder):
                found = True
                source.mark(
                    codes.PIPELINE_LAUNCHER,
                    call,
                    "this component launches a PyTorchJob through the v1 API",
                    f"use {REPLACEMENT}",
                )
        elif last & {"ResourceOp", "ContainerOp", "ContainerSpec"}:
            text = source.between(*source.span(call))
            if _MANIFEST.search(text) or _LAUNCHER.search(text) or _resource(script, call):
                found = True
                told.add(step_name(script, call))
                _operator(script, call, last.pop())
    return _texts(script, told) or _functions(script, told) or found


def _loads_launcher(script: Script, call: cst.Call, folder: str) -> bool:
    if not call.args:
        return False
    value = script.literal(call.args[0].value)
    if value is UNKNOWN:
        return False
    text = str(value)
    if _LAUNCHER.search(text):
        return True
    file = Path(folder, text)
    try:
        return text.endswith((".yaml", ".yml")) and bool(_LAUNCHER.search(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, ValueError):
        return False


def _resource(script: Script, call: cst.Call) -> cst.BaseExpression | None:
    """The object of a ResourceOp when it is a PyTorchJob."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "k8s_resource":
            try:
                objects.find(script, arg.value)
            except NotWritten:
                return None
            behind = script.names.value_of(arg.value)
            text = script.source.between(*script.source.span(behind)) if behind is not None else ""
            return arg.value if _MANIFEST.search(text) else None
    return None


def _operator(script: Script, call: cst.Call, name: str) -> None:
    becomes = ""
    resource = _resource(script, call)
    if resource is not None:
        try:
            found = objects.find(script, resource)
            _, result = objects.migrated(script, found)
            becomes = f" (its object becomes {outcome(result)})"
        except NotWritten as err:
            becomes = f" (its object cannot be migrated here: {err})"
    gone = "; Kubeflow Pipelines 2 has no ResourceOp and no ContainerOp" if name != "ContainerSpec" else ""
    script.source.mark(
        codes.PIPELINE_STEP, call, f"this {name} creates a PyTorchJob{becomes}{gone}", f"use {REPLACEMENT}"
    )


def outcome(result: Migration) -> str:
    """A migration in a few words."""
    if not result.jobs:
        errors = [f"{f.code} {f.message}" for f in result.findings if f.severity is Severity.ERROR]
        return f"nothing: {errors[0] if errors else 'it is refused'}"
    spec = result.jobs[0].manifest["spec"]
    nodes = spec["trainer"].get("numNodes", 1)
    own = " of its own" if result.jobs[0].runtime is not None else ""
    return f"a TrainJob of {nodes} node{'s' * (nodes != 1)} on the runtime {spec['runtimeRef']['name']}{own}"


def _texts(script: Script, told: set[str]) -> bool:
    """YAML in a text of the script."""
    found = False
    for node in (*script.source.nodes(cst.SimpleString), *script.source.nodes(cst.FormattedString)):
        raw = script.source.between(*script.source.span(node))
        if not re.search(r"kind[\"']?\s*:\s*[\"']?PyTorchJob", raw) or not re.search("apiVersion|ReplicaSpecs", raw):
            continue
        found = True
        step = step_name(script, node)
        if step and step in told:
            continue
        told.add(step)
        where = f"the pipeline step {step} holds" if step else "here is"
        value = script.literal(node) if isinstance(node, cst.SimpleString) else UNKNOWN
        if isinstance(value, str) and objects.yaml_jobs(value):
            becomes = f"it becomes {outcome(migrate_text(value, file=script.source.file))}"
        else:
            becomes = "it is put together at run time"
        script.source.mark(
            codes.PIPELINE_STEP if step else codes.JOB_OBJECT,
            node,
            f"{where} a PyTorchJob as text; {becomes}",
            "put the text into a file, run `trainjob migrate`, put the TrainJob back, and create it as trainjobs of "
            "trainer.kubeflow.org/v1alpha1",
        )
    return found


def _functions(script: Script, told: set[str]) -> bool:
    """Steps that the other checks did not see: anything about PyTorchJobs inside a component."""
    found = False
    source = script.source
    for function in source.nodes(cst.FunctionDef):
        if not function.decorators and not function.body:
            continue
        name = step_name(script, function.body)
        if name != function.name.value:
            continue
        text = source.between(*source.exact_span(function.body))
        if _SDK.search(text):
            found = True
            script.note(
                codes.PIPELINE_STEP,
                function,
                f"the pipeline step {name} uses the v1 SDK",
                "compile and upload the pipeline again after the migration",
            )
        elif name in told or _said(script, function) or _DONE.search(text):
            continue
        elif _MANIFEST.search(text):
            found = True
            source.mark(
                codes.PIPELINE_STEP, function, f"the pipeline step {name} is about PyTorchJobs", f"use {REPLACEMENT}"
            )
    return found


def _said(script: Script, function: cst.FunctionDef) -> bool:
    """Whether something inside a function was already reported."""
    place = script.source.exact[function]
    first, last = place.start.line, place.end.line
    lines = [f.where.line - script.source.first_line + 1 for f in script.source.findings if f.where is not None]
    return any(first <= line <= last for line in lines)


# Compiled pipelines, workflows and components in YAML


def yaml_steps(text: str, file: str) -> list[Finding]:
    """Report what a compiled pipeline, an Argo workflow or a component file does with PyTorchJobs.

    Raises yaml.YamlError for a text that is no YAML.
    """
    out: list[Finding] = []
    for doc in yaml.split(text, file):
        if not (_MANIFEST.search(doc.text) or _SDK.search(doc.text) or _LAUNCHER.search(doc.text)):
            continue
        data = yaml.parse(doc).data
        if isinstance(data, Mapping):
            out += _executors(doc, data, ())
            out += _workflow(doc, data)
            out += _component(doc, data)
    return out


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _executors(doc: Document, data: Any, path: yaml.Path) -> Iterator[Finding]:
    if isinstance(data, Mapping):
        executors = _at(data, "deploymentSpec", "executors")
        if isinstance(executors, Mapping):
            for name, executor in executors.items():
                yield from _executor(doc, str(name), executor, (*path, "deploymentSpec", "executors", name))
            return
        for key, value in data.items():
            yield from _executors(doc, value, (*path, key))


def _executor(doc: Document, name: str, executor: Any, path: yaml.Path) -> Iterator[Finding]:
    container = _at(executor, "container")
    if not isinstance(container, Mapping):
        return
    command = [str(w) for key in ("command", "args") for w in container.get(key) or ()]
    words = " ".join([str(container.get("image", "")), *command])
    how = _how(words)
    if not how:
        return
    args = [str(a) for a in container.get("args") or ()]
    function = args[args.index("--function_to_execute") + 1] if "--function_to_execute" in args[:-1] else ""
    step = function or name.removeprefix("exec-")
    yield Finding(
        codes.PIPELINE_IR,
        Severity.ERROR,
        f"the step {step} handles PyTorchJobs {how}{_embedded(command, doc.file)}",
        doc.locate((*path, "container")),
        "a compiled pipeline is not edited: run `trainjob migrate-sdk` on its Python source, compile and "
        "upload it again; "
        f"what replaces the step: {REPLACEMENT}",
        step,
    )


def _how(words: str) -> str:
    if _LAUNCHER.search(words):
        return "with the launcher component of the v1 API"
    if _SDK.search(words):
        return "with the v1 SDK"
    return "through the Kubernetes API" if _MANIFEST.search(words) else ""


def _embedded(command: list[str], file: str) -> str:
    """What the rewrite would do with the function that is compiled into a step."""
    from trainjob.sdkmod.engine import migrate_script

    for text in command:
        if re.search(r"^\s*def \w+\(", text, re.M):
            result = migrate_script(text, file=file)
            if result.found:
                return f" ({result.calls} places of its code can be rewritten, {result.marks} need a decision)"
    return ""


def _workflow(doc: Document, data: Mapping[str, Any]) -> Iterator[Finding]:
    if data.get("kind") not in _WORKFLOWS:
        return
    base: yaml.Path = ("spec", "workflowSpec") if data["kind"] == "CronWorkflow" else ("spec",)
    templates = _at(data, *(str(b) for b in base), "templates")
    for i, template in enumerate(templates if isinstance(templates, list) else ()):
        path = (*base, "templates", i)
        name = str(_at(template, "name") or i)
        manifest = _at(template, "resource", "manifest")
        if isinstance(manifest, str) and _MANIFEST.search(manifest):
            yield _resource_template(doc, (*path, "resource", "manifest"), name, template["resource"])
            continue
        for part in ("container", "script"):
            body = _at(template, part)
            if isinstance(body, Mapping):
                words = " ".join(str(body.get(k, "")) for k in ("image", "command", "args", "source"))
                how = _how(words)
                if how:
                    yield Finding(
                        codes.WORKFLOW,
                        Severity.ERROR,
                        f"the template {name} handles PyTorchJobs {how}",
                        doc.locate((*path, part)),
                        f"use {REPLACEMENT}",
                        name,
                    )


def _resource_template(doc: Document, path: yaml.Path, name: str, resource: Mapping[str, Any]) -> Finding:
    result = migrate_text(str(resource["manifest"]), file=doc.file)
    reads = [k for k in ("successCondition", "failureCondition") if resource.get(k)]
    conditions = (
        f"; its {' and '.join(reads)} read{'s' * (len(reads) == 1)} the status of v1: a TrainJob has the conditions "
        "Complete and Failed, and no replicaStatuses"
        if reads
        else ""
    )
    return Finding(
        codes.WORKFLOW,
        Severity.ERROR,
        f"the template {name} creates a PyTorchJob: it becomes {outcome(result)}{conditions}",
        doc.locate(path),
        "put the manifest into a file, run `trainjob migrate`, put the TrainJob back, and let the workflow's service "
        "account create trainjobs of trainer.kubeflow.org",
        name,
    )


def _component(doc: Document, data: Mapping[str, Any]) -> Iterator[Finding]:
    container = _at(data, "implementation", "container")
    if isinstance(container, Mapping):
        words = str(container.get("image", "")) + str(container.get("command", "")) + str(container.get("args", ""))
        how = _how(words)
        if how:
            yield Finding(
                codes.PIPELINE_LAUNCHER,
                Severity.ERROR,
                f"the component {data.get('name', '?')!r} handles PyTorchJobs {how}",
                doc.locate(("implementation", "container")),
                f"replace it by {REPLACEMENT}",
            )
