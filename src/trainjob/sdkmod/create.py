"""create_job from a function or an image -> client.train(...)."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainjob.catalog import V1_COMPAT, V1_COMPAT_MULTINODE
from trainjob.findings import Severity
from trainjob.kube.names import QUEUE_LABEL
from trainjob.sdkmod import codes, surface
from trainjob.sdkmod.arguments import Argument, Arguments
from trainjob.sdkmod.client import Clients
from trainjob.sdkmod.layout import Group, Part
from trainjob.sdkmod.podsettings import PodSettings
from trainjob.sdkmod.script import UNKNOWN, Script, quoted
from trainjob.sdkmod.volumes import volumes_patch


class Creation:
    """One call that creates a job."""

    def __init__(self, script: Script, clients: Clients, call: cst.Call, arguments: Arguments, method: str) -> None:
        self.script, self.clients, self.call, self.arguments, self.method = script, clients, call, arguments, method
        self.old = method == "create_pytorchjob_from_func"
        self.nodes: int | None = None
        self.pod = PodSettings(script, call, arguments)

    def rewrite(self) -> None:
        """Rewrite the call, or mark it."""
        script, arguments = self.script, self.arguments
        func, image = arguments.take("train_func"), arguments.take("base_image")
        if func is None and image is None:
            script.source.mark(
                codes.DYNAMIC, self.call, f"{self.method} has no job, no function and no image", "v1 refused that too"
            )
            return
        client = self.clients.receiver(self.call, arguments)
        nodes = self._nodes()
        trainer = [Part("image", "")] if image is None else [arguments.part("image", image)]
        if func is not None:
            trainer = [arguments.part("func", func), *self._func_args(func), *(trainer if image is not None else [])]
            trainer += self._packages()
        trainer.append(nodes)
        resources = arguments.take("resources_per_worker")
        trainer += self.pod.resources(resources)
        trainer += self.pod.env()
        runtime = script.runtime
        if func is None:
            runtime = self._container_runtime()
        else:
            self._processes(resources)
            if image is None:
                self._default_image()
        name = script.need("CustomTrainer" if func is not None else "CustomTrainerContainer")
        parts = [
            Part("runtime", quoted(runtime)),
            Part("trainer", Group(f"{name}(", trainer)),
        ]
        options = self._options()
        if options:
            parts.append(Part("options", Group("[", options, "]")))
        self._chiefs()
        arguments.take("job")
        script.leftovers(arguments, self.method)
        if arguments.tail:
            parts[-1].lead += arguments.tail
        script.put(self.call, Group(f"{client}.train(", parts), tall=arguments.tall)

    # The number of pods

    def _nodes(self) -> Part:
        script = self.script
        key = "num_worker_replicas" if self.old else "num_workers"
        argument = self.arguments.take(key)
        if argument is None:
            self.nodes = 1
            script.note(codes.NODES, self.call, f"without {key} v1 ran 1 pod, the Master: num_nodes=1")
            return Part("num_nodes", "1")
        text = self.arguments.text(argument)
        value = script.literal(argument.value)
        direct = isinstance(argument.value, cst.Integer)
        if isinstance(value, int) and not isinstance(value, bool):
            self.nodes = pods(value, old=self.old)
            workers = self.nodes - 1
            shown = f"{text} is {value}" if not direct else text
            script.note(
                codes.NODES,
                argument.value,
                f"{key}={shown} was {self.nodes} pod{'s' * (self.nodes != 1)} in v1 (Master 1"
                + (f" + Worker {workers}" if workers else "")
                + f"), so num_nodes is {self.nodes}",
            )
            if direct:
                return self.arguments.part("num_nodes", argument, str(self.nodes))
        elif not self.old:
            script.note(
                codes.NODES,
                argument.value,
                f"{key}={text} counted the Master as one, so num_nodes is the same",
            )
        else:
            script.note(
                codes.NODES,
                argument.value,
                f"{key}={text} came on top of the Master: 1 pod for 1, else {text} + 1; num_nodes counts them all",
            )
        if not self.old:
            return self.arguments.part("num_nodes", argument)
        base = text if re.fullmatch(r"[\w.]+", text) else f"({text})"
        return self.arguments.part("num_nodes", argument, f"{base} + 1 if {base} > 1 else 1")

    # The function

    def _func_args(self, func: Argument) -> list[Part]:
        script, call = self.script, self.call
        if isinstance(func.value, cst.Lambda):
            script.source.mark(
                codes.FUNCTION, call, "a lambda cannot be sent: the SDK copies the source of a function", "write a def"
            )
        parameters = self.arguments.take("parameters")
        if parameters is None:
            return []
        text = self.arguments.text(parameters)
        function = script.names.function(func.value)
        name = _first_parameter(function) if function is not None else ""
        if name:
            script.note(
                codes.FUNCTION,
                parameters.value,
                f"v2 calls {script.text(func.value)}(**func_args): the dictionary is handed over as {name}=",
            )
            return [Part("func_args", Group("{", [self._item(name, parameters)], "}"), list(parameters.lead))]
        script.source.mark(
            codes.FUNCTION,
            call,
            f"v2 calls {script.text(func.value)}(**func_args), v1 called it with the dictionary as its one "
            "argument, and its "
            "definition is not in this file"
            if function is None
            else f"v2 calls {script.text(func.value)}(**func_args), and it has no parameter that could be named",
            'write func_args={"<name of its parameter>": ...}',
        )
        return [self.arguments.part("func_args", parameters, text)]

    def _item(self, name: str, parameters: Argument) -> Part:
        part = self.arguments.part(quoted(name), parameters)
        part.separator, part.lead = ": ", []
        return part

    def _packages(self) -> list[Part]:
        out = []
        packages = self.arguments.take("packages_to_install")
        if packages is not None:
            out.append(self.arguments.part("packages_to_install", packages))
        index = self.arguments.take("pip_index_url")
        if index is not None:
            out.append(self.arguments.part("pip_index_urls", index, f"[{self.arguments.text(index)}]"))
        return out

    # Processes and image

    def _torchrun(self, processes: Any) -> bool | None:
        """Whether v1 started torchrun; None when the number of workers does not stand in the text.

        kubeflow-training 1.9 training_client.py create_job; 1.7 and 1.8 always start python.
        """
        if self.old or self.script.version < (1, 9):
            return False
        if processes is not None:
            return True
        return None if self.nodes is None else self.nodes > 1

    def _processes(self, resources: Argument | None) -> None:
        script = self.script
        argument = self.arguments.take("num_procs_per_worker")
        given = script.literal(argument.value) if argument is not None else None
        if isinstance(given, str) and given.isdigit():
            given = int(given)
        gpus, cpus = self.pod.devices(resources)
        where = argument.value if argument is not None else self.call
        if given is UNKNOWN or gpus is None:
            text = (
                f"num_procs_per_worker={self.arguments.text(argument)}"
                if argument
                else "the number of processes in a pod"
            )
            script.source.mark(
                codes.PROCESSES,
                where,
                f"{text} cannot be carried: v2 starts a process per GPU, or per CPU without one",
                "check that the pods ask for as many GPUs",
                Severity.WARNING,
            )
            return
        if gpus == 0 and self.pod.names_gpu(resources):
            script.source.mark(
                codes.PROCESSES,
                where,
                "0 GPUs still name a GPU, and v2 then starts a process per CPU of the host",
                "leave the GPU away",
                Severity.WARNING,
            )
            return
        now = gpus or max(1, cpus)
        torchrun = self._torchrun(given)
        before: int | None = 1
        if isinstance(given, int):
            before = given
        elif torchrun is None or torchrun:
            before = gpus or None
        pods_text = "" if self.nodes is None else f"; {self.nodes} x {now} = {self.nodes * now} processes"
        if before is None:
            script.warn(
                codes.PROCESSES,
                where,
                f"without a GPU v1's torchrun started a process per CPU of the host; v2 starts {now}{pods_text}",
                "ask for as many CPUs as there shall be processes",
            )
        elif before == now:
            if argument is not None or gpus > 1 or now > 1:
                script.note(
                    codes.PROCESSES, where, f"{now} process{'es' * (now != 1)} in each pod, as in v1{pods_text}"
                )
        else:
            by = "torchrun" if torchrun else f"python ({_version(script.version)})"
            script.source.mark(
                codes.PROCESSES,
                where,
                f"v1 started {before} process{'es' * (before != 1)} in a pod with {by}, v2 starts {now}",
                "CustomTrainer cannot set numProcPerNode: "
                + (f"ask for {before} GPUs" if gpus else f"ask for {before} CPU" + "s" * (before != 1))
                + ", or create the TrainJob itself with spec.trainer.numProcPerNode",
                Severity.WARNING,
            )

    def _default_image(self) -> None:
        image = surface.IMAGES[(1, 7) if self.old else max((1, 8), self.script.version)]
        self.script.warn(
            codes.IMAGE,
            self.call,
            f"v1 ran the function in {image}, its default; v2 takes the image of the runtime",
            f"to keep it, add image={quoted(image)} to CustomTrainer",
        )

    def _container_runtime(self) -> str:
        script = self.script
        processes = self.arguments.take("num_procs_per_worker")
        runtime = V1_COMPAT if self.nodes == 1 else V1_COMPAT_MULTINODE
        script.note(
            codes.RUNTIME,
            self.call,
            f"the image's own program runs on {runtime}, which gives it MASTER_ADDR, MASTER_PORT, WORLD_SIZE "
            "and RANK as "
            "v1 did",
            "install it: kustomize build overlays/" + ("prod" if runtime == V1_COMPAT else "prod-multi-node"),
        )
        if processes is not None:
            script.source.mark(
                codes.PROCESSES,
                self.call,
                f"num_procs_per_worker={self.arguments.text(processes)} cannot be carried: WORLD_SIZE is the "
                "number of pods",
                "start torchrun in the image, or create the TrainJob itself with spec.trainer.numProcPerNode",
                Severity.WARNING,
            )
        return runtime

    # Options

    def _options(self) -> list[Part]:
        script, arguments = self.script, self.arguments
        out = []
        name = arguments.take("name")
        if name is not None:
            part = arguments.part("", name, f"{script.need('Name')}(name={arguments.text(name)})")
            out.append(part)
        labels, queue = arguments.take("labels"), arguments.take("queue_name")
        if labels is not None or queue is not None:
            out.append(self._labels(labels, queue))
        annotations = arguments.take("annotations")
        if annotations is not None:
            text = f"{script.need('Annotations')}(annotations={arguments.text(annotations)})"
            out.append(arguments.part("", annotations, text))
        volumes, mounts = arguments.take("volumes"), arguments.take("volume_mounts")
        if volumes is not None or mounts is not None:
            patch = volumes_patch(script, self.call, volumes, mounts)
            if patch is not None:
                out.append(patch)
        return out

    def _labels(self, labels: Argument | None, queue: Argument | None) -> Part:
        script, arguments = self.script, self.arguments
        first = labels or queue
        assert first is not None
        if queue is None:
            return arguments.part("", first, f"{script.need('Labels')}(labels={arguments.text(first)})")
        script.note(
            codes.QUEUE,
            queue.value,
            f"the queue is the label {QUEUE_LABEL} now; v1 left it away when the queue did not exist, now the job "
            "waits for it",
        )
        entry = f"{quoted(QUEUE_LABEL)}: {arguments.text(queue)}"
        merged = f"{{**{arguments.text(labels)}, {entry}}}" if labels is not None else f"{{{entry}}}"
        part = arguments.part("", first, f"{script.need('Labels')}(labels={merged})")
        if labels is not None:
            part.lead += queue.lead
        return part

    def _chiefs(self) -> None:
        for name in ("num_chief_replicas", "num_ps_replicas"):
            if self.arguments.take(name) is not None:
                self.script.source.mark(codes.KIND, self.call, f"{name} is for TFJobs", surface.OTHER_RUNTIMES["TFJob"])


def pods(value: int, *, old: bool) -> int:
    """Pods that v1 really ran for a number of workers.

    1.8 and newer (utils/utils.py get_pytorchjob_template): Master 1 + Worker N - 1. 1.7
    (training_client.py create_pytorchjob_from_func): Master 1, and Worker N when N > 1.
    """
    if value < 1:
        return 1
    if not old:
        return value
    return value + 1 if value > 1 else 1


def _first_parameter(function: cst.FunctionDef) -> str:
    params = function.params
    if params.posonly_params or not params.params:
        return ""
    return params.params[0].name.value


def _version(version: tuple[int, int]) -> str:
    return f"kubeflow-training {version[0]}.{version[1]}"
