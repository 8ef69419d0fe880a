"""One Python script: read, find the v1 SDK, rewrite what can be, mark what cannot."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from trainjob.findings import Finding, Location, Severity
from trainjob.sdkmod import codes, logs, methods, objects, pipelines, rawapi, results, surface
from trainjob.sdkmod.arguments import Arguments
from trainjob.sdkmod.client import Clients
from trainjob.sdkmod.create import Creation
from trainjob.sdkmod.imports import rewrite_imports
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.names import Kind, Names
from trainjob.sdkmod.script import Script
from trainjob.sdkmod.source import Source
from trainjob.sdkmod.words import client_name, constant, mentions_v1, string

_WORDS: Final = ("kubeflow", "PyTorchJob", "pytorchjob", "pytorch-launcher", "TODO(trainjob)")
_PIN: Final = re.compile(r"kubeflow[-_.]training\s*(?:\[[^\]]*\])?\s*(==|~=|>=|<=|=)\s*v?1\.(\d+)")
DEFAULT_RUNTIME: Final = "torch-distributed"


@dataclass(frozen=True, slots=True)
class Options:
    """How to migrate. `runtime`: what functions run on. `version`: of kubeflow-training, found out when None."""

    runtime: str = DEFAULT_RUNTIME
    version: tuple[int, int] | None = None
    pins: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """`text` is the input where nothing was rewritten. `calls`: how many places were; `found`: v1 was there."""

    text: str
    findings: tuple[Finding, ...]
    calls: int = 0
    found: bool = False
    marks: int = field(default=0)


def migrate_script(text: str, *, file: str, options: Options | None = None, first_line: int = 1) -> ScriptResult:
    """Migrate one script. Never raises for bad input: that is a finding."""
    options = options or Options()
    if not any(word in text for word in _WORDS):
        return ScriptResult(text, ())
    bom, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    try:
        source = Source(body, file, first_line)
    except cst.ParserSyntaxError as err:
        return ScriptResult(text, (_syntax(file, err, first_line),))
    names = Names(source)
    script = Script(source, names, options.runtime, surface.NEWEST)
    opened = list(source.open_marks())
    _read_version(script, options, body)
    found = _rewrite(script)
    found = pipelines.python_steps(script, options.folder) or found
    once = source.result()
    marks = once.count("# TODO(trainjob):")
    out = once
    if script.calls or marks > len(opened) or mentions_v1(source):
        out = rewrite_imports(Source(once, file), source, script.introduced)
    out = _checked(script, out, body)
    found = found or bool(script.calls) or mentions_v1(source)
    findings = sorted(source.findings, key=lambda f: (f.where.line, f.where.column) if f.where else (0, 0))
    findings += _open(source, opened, findings)
    return ScriptResult(bom + out, tuple(findings), script.calls, found or bool(opened), out.count("# TODO(trainjob):"))


def _checked(script: Script, out: str, body: str) -> str:
    """The new text if it is Python; else the old one, and an error: never a broken script."""
    try:
        cst.parse_module(out)
    except cst.ParserSyntaxError as err:
        line = err.raw_line
        shown = out.splitlines()[line - 1].strip() if line <= len(out.splitlines()) else ""
        script.source.findings.append(
            Finding(
                codes.SYNTAX,
                Severity.ERROR,
                f"the rewritten script would be no Python ({shown!r}); it is left as it was",
                Location(script.source.file, 1, 1),
                "report it with the script, or take the calls apart",
            )
        )
        script.calls = 0
        return body
    return out


def _syntax(file: str, err: cst.ParserSyntaxError, first_line: int) -> Finding:
    place = Location(file, err.raw_line + first_line - 1, err.raw_column + 1)
    return Finding(
        codes.SYNTAX,
        Severity.ERROR,
        f"this is no Python that can be read: {err.message.splitlines()[0]}",
        place,
        "notebooks: export them as a script first, without lines that begin with % or !",
        unreadable=True,
    )


def _read_version(script: Script, options: Options, text: str) -> None:
    """Which v1 SDK the script was written for: by what it calls, by what is asked for, by a pin."""
    called = {c.func.attr.value for c in script.source.nodes(cst.Call) if isinstance(c.func, cst.Attribute)}
    pinned = _PIN.search(text) or _PIN.search(options.pins)
    if options.version is not None:
        script.version = options.version
    elif called & set(surface.OLD_NAMES) and not called & {"create_job", "get_job", "list_jobs", "delete_job"}:
        script.version = (1, 7)
        _say_version(script, "its calls are those of 1.7 and older")
    elif pinned:
        asked = (1, int(pinned[2]))
        script.version = surface.NEWEST if pinned[1] == ">=" else min(max((1, 7), asked), surface.NEWEST)
        if "create_job" in called:
            script.version = max(script.version, (1, 8))
        _say_version(script, "that is what a requirement names")
    elif "create_job" in called and script.names.constructors:
        _say_version(script, "no requirement names another; say --sdk-version 1.8 if it was that")


def _say_version(script: Script, why: str) -> None:
    imports = [n for n in script.source.nodes(cst.ImportFrom) if n.module is not None]
    first = next((n for n in imports if "training" in script.source.text_of(n)), None)
    if first is not None:
        version = ".".join(map(str, script.version))
        script.note(codes.VERSION, first, f"read as a script for kubeflow-training {version}: {why}")


def _rewrite(script: Script) -> bool:
    source, names = script.source, script.names
    clients = Clients(script)
    found = bool(names.constructors)
    # Children before parents, for an outer edit takes the inner ones with it.
    for node in source.all_nodes():
        if isinstance(node, (cst.Attribute, cst.Name)) and not constant(script, node):
            client_name(script, node)
        if isinstance(node, cst.Attribute):
            clients.rewrite_attribute(node)
            results.rewrite_result(script, node)
        elif isinstance(node, cst.SimpleString):
            string(script, node)
        elif isinstance(node, cst.Subscript):
            logs.mark_key(script, node)
        elif isinstance(node, cst.Call):
            found = _any_call(script, clients, node) or found
    return found


def _any_call(script: Script, clients: Clients, call: cst.Call) -> bool:
    names = script.names
    if names.v1_name(call.func) == surface.CLIENT:
        clients.rewrite_maker(call)
    elif rawapi.rewrite_raw(script, call):
        pass
    elif isinstance(call.func, cst.Attribute) and names.is_client(call.func.value):
        _call(script, clients, call, call.func.attr.value)
    elif names.v1_name(call.func) in surface.OLD_CLIENTS:
        methods.no_method(
            script,
            call,
            names.v1_name(call.func),
            "a client from before kubeflow-training 1.6",
            "write the job as YAML and run `trainjob migrate`",
        )
    else:
        _hands_on(script, call)
        return False
    return True


def _hands_on(script: Script, call: cst.Call) -> None:
    """Say where a client goes to code that is not in this script."""
    if script.names.is_local(call):
        return
    if any(script.names.is_client(a.value) for a in call.args):
        script.warn(
            codes.CLIENT,
            call,
            f"the client is handed to {script.text(call.func)}, which is not in this file",
            "it gets a TrainerClient now: migrate it, too",
        )


def _call(script: Script, clients: Clients, call: cst.Call, method: str) -> None:
    known = surface.positional(method, script.version)
    name = surface.OLD_NAMES.get(method, method)
    if known is None:
        _unknown(script, call, method)
        return
    arguments = script.arguments(call, method)
    if arguments is None:
        return
    if name == "create_job":
        _create(script, clients, call, arguments, method)
    elif name == "train":
        _fine_tuning(script, call, arguments)
    elif name == "get_job":
        methods.get_job(script, clients, call, arguments)
    elif name == "list_jobs":
        methods.list_jobs(script, clients, call, arguments)
    elif name == "delete_job":
        methods.delete_job(script, clients, call, arguments)
    elif name == "wait_for_job_conditions":
        methods.wait(script, clients, call, arguments)
    elif name.startswith("is_job_"):
        methods.status(script, clients, call, arguments, name)
    elif name == "get_job_logs":
        logs.get_job_logs(script, clients, call, arguments)
    elif name == "get_job_pod_names":
        methods.pod_names(script, clients, call, arguments)
    elif name == "get_job_pods":
        methods.pods(script, clients, call, arguments)
    elif name == "get_job_conditions":
        methods.no_method(
            script,
            call,
            method,
            "a TrainJob of the SDK has one status and no conditions",
            "read get_job(name).status, or the object with client.backend.custom_api.get_namespaced_custom_object",
        )
    elif name == "update_job":
        methods.no_method(
            script,
            call,
            method,
            "TrainerClient changes no jobs, and most of a TrainJob cannot be changed",
            "delete it and train anew, or patch it with client.backend.custom_api.patch_namespaced_custom_object",
        )


def _unknown(script: Script, call: cst.Call, method: str) -> None:
    for kind in surface.OTHER_KINDS:
        if kind.lower() in method:
            script.source.mark(
                codes.KIND, call, f"{method} is for a {kind}: not rewritten", surface.OTHER_RUNTIMES[kind]
            )
            return
    if method in ("list_runtimes", "get_runtime", "get_runtime_packages", "wait_for_job_status", "get_job_events"):
        return
    methods.no_method(script, call, method, "no version of TrainingClient is known to have it", "look at it")


def _create(script: Script, clients: Clients, call: cst.Call, arguments: Arguments, method: str) -> None:
    kind, _ = clients.kind_of(call, arguments)
    job = arguments.take("job")
    if job is None:
        if kind != "PyTorchJob":
            shown = kind or "that cannot be read here"
            script.source.mark(
                codes.KIND,
                call,
                f"{method} is for a job of the kind {shown}: not rewritten",
                surface.OTHER_RUNTIMES.get(kind, "write the kind out if it is PyTorchJob"),
            )
            return
        Creation(script, clients, call, arguments, method).rewrite()
        return
    if names_other_kind(script, job.value):
        script.source.mark(
            codes.KIND,
            call,
            f"{method} gets a {names_other_kind(script, job.value)}: not rewritten",
            surface.OTHER_RUNTIMES[names_other_kind(script, job.value)],
        )
        return
    namespace = arguments.take("namespace")
    assert isinstance(call.func, cst.Attribute)
    client = script.text(call.func.value)
    space = arguments.text(namespace) if namespace is not None else f"{client}.backend.namespace"

    def put(body: str) -> None:
        group = Group(
            f"{client}.backend.custom_api.create_namespaced_custom_object(",
            [
                Part("group", '"trainer.kubeflow.org"'),
                Part("version", '"v1alpha1"'),
                Part("namespace", space),
                Part("plural", '"trainjobs"'),
                Part("body", body),
            ],
        )
        script.put(call, group, tall=arguments.tall)

    queue = arguments.take("queue_name")
    if queue is not None:
        script.source.mark(
            codes.QUEUE,
            call,
            f"queue_name={arguments.text(queue)} is gone",
            'put it into the object: metadata.labels["kueue.x-k8s.io/queue-name"]',
        )
    for ignored in ("labels", "annotations"):  # v1 took them and ignored them beside a job
        arguments.take(ignored)
    script.leftovers(arguments, method)
    objects.create(script, call, job.value, put, method)


def names_other_kind(script: Script, node: cst.BaseExpression) -> str:
    """The kind of a job object when it is a model of another kind."""
    behind = script.names.value_of(node)
    if isinstance(behind, cst.Call):
        name = script.names.v1_name(behind.func)
        return next((k for k in surface.OTHER_KINDS if name == f"KubeflowOrgV1{k}"), "")
    return ""


def _fine_tuning(script: Script, call: cst.Call, arguments: Arguments) -> None:
    workers = arguments.all.get("num_workers")
    count = script.text(workers.value) if workers is not None else "1"
    script.source.mark(
        codes.FINE_TUNING,
        call,
        f"train() for Hugging Face models has no counterpart; it ran {count} pods (num_workers counts the Master)",
        "write the fine-tuning as a function for CustomTrainer(func, num_nodes=" + count + "), or use BuiltinTrainer("
        "config=TorchTuneConfig(...)) with Initializer(model=HuggingFaceModelInitializer(...), "
        "dataset=HuggingFaceDatasetInitializer(...)) on a torchtune runtime",
    )


def _open(source: Source, opened: list[tuple[int, str]], findings: list[Finding]) -> list[Finding]:
    """Marks of an earlier run whose reason was not found again just now."""
    said = {(f.code, f.message[:30]) for f in findings}
    out = []
    for line, words in opened:
        code, _, rest = words.partition(" ")
        if any(c == code and rest.startswith(m[:20]) for c, m in said):
            continue
        out.append(
            Finding(
                codes.OPEN,
                Severity.WARNING,
                f"still open: {words}",
                Location(source.file, line + source.first_line - 1, 1),
                "do what it says, then take the comment out",
            )
        )
    return out


__all__ = ["DEFAULT_RUNTIME", "Kind", "Options", "ScriptResult", "migrate_script"]
