"""Shapes that use what a pod template can hold, a group of fields each."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.differential.jobs import both, job, role
from tests.e2e.differential.shape import Object, Shape
from tests.e2e.differential.staging import stage

_RUN: Final[Object] = {"command": ["python", "train.py"]}
_FIELD: Final = "metadata.labels['team']"
_IMAGE: Final = "registry.example.com/team/side:1"


def _env() -> Object:
    env: list[Object] = [
        {"name": "PLAIN", "value": "a b"},
        {"name": "EMPTY", "value": ""},
        {"name": "COMPOSED", "value": "$(PLAIN)-$(RANK)-$$(PLAIN)"},
        {"name": "FROM_SECRET", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "FROM_MAP", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "nowhere", "key": "x", "optional": True}}},
        {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": _FIELD}}},
        {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ]
    sources = [{"configMapRef": {"name": "more"}}, {"prefix": "S_", "secretRef": {"name": "secrets"}}]
    pod = {"metadata": {"labels": {"team": "blue"}}}
    return job(*both(1, pod=pod, env=env, envFrom=sources, resources={"limits": {"cpu": "150m"}}, **_RUN))


def _volumes() -> Object:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    volumes: list[Object] = [
        {"name": "disk", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "96Mi"}},
        {"name": "map", "configMap": {"name": "conf", "defaultMode": 288, "items": [{"key": "a", "path": "x/a.txt"}]}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 256}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "host", "hostPath": {"path": "/tmp/conformance", "type": "DirectoryOrCreate"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
        {"name": "down", "downwardAPI": {"items": [{"path": "team", "fieldRef": {"fieldPath": _FIELD}}]}},
        {
            "name": "mixed",
            "projected": {
                "sources": [
                    {"configMap": {"name": "conf", "items": [{"key": "b", "path": "b"}]}},
                    {"secret": {"name": "keys", "items": [{"key": "file", "path": "key"}]}},
                ]
            },
        },
    ]
    mounts: list[Object] = [
        {"name": "disk", "mountPath": "/scratch"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "map", "mountPath": "/etc/map", "readOnly": True},
        {"name": "keys", "mountPath": "/etc/keys"},
        {"name": "data", "mountPath": "/data"},
        {"name": "data", "mountPath": "/out", "subPath": "out"},
        {"name": "host", "mountPath": "/host", "mountPropagation": "HostToContainer"},
        {"name": "scratch", "mountPath": "/claim"},
        {"name": "down", "mountPath": "/etc/down"},
        {"name": "mixed", "mountPath": "/etc/mixed"},
    ]
    pod = {"metadata": {"labels": {"team": "blue"}}, "volumes": volumes, "securityContext": {"fsGroup": 1000}}
    return job(*both(1, pod=pod, volumeMounts=mounts, **_RUN))


def _identity() -> Object:
    pod = {
        "serviceAccountName": "trainer",
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "pull"}],
        "securityContext": {
            "runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456, "supplementalGroups": [4567], "runAsNonRoot": True,
        },
    }  # fmt: skip
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return job(*both(1, pod=pod, securityContext=context, **_RUN))


def _placement() -> Object:
    prefer = {
        "weight": 5,
        "preference": {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
    }
    repel = {
        "weight": 9,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": {"team": "blue"}}, "topologyKey": "kubernetes.io/hostname",
        },
    }  # fmt: skip
    spread = {
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"team": "blue"}},
    }  # fmt: skip
    pod = {
        "metadata": {"labels": {"team": "blue"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefer]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [repel]},
        },
        "topologySpreadConstraints": [spread],
        "priorityClassName": "conformance-high",
    }
    return job(*both(1, pod=pod, **_RUN))


def _metadata() -> Object:
    pod = {
        "metadata": {
            "labels": {
                "team": "blue",
                "networkpolicy.example.com/allow": "storage",
                "sidecar.istio.io/inject": "false",
            },
            "annotations": {"prometheus.io/scrape": "true", "sidecar.istio.io/inject": "false"},
        }
    }
    meta = {"labels": {"project": "p1"}, "annotations": {"owner": "me@example.com"}}
    return job(*both(1, pod=pod, **_RUN), meta=meta)


def _resources() -> Object:
    sizes = {
        "requests": {"cpu": "30m", "memory": "32Mi", "ephemeral-storage": "1Mi", "nvidia.com/gpu": "2"},
        "limits": {"cpu": "180m", "memory": "96Mi", "ephemeral-storage": "64Mi", "nvidia.com/gpu": "2"},
    }
    return job(*both(1, resources=sizes, **_RUN))


def _sidecars() -> Object:
    logs = [{"name": "logs", "mountPath": "/logs"}]
    side = {"name": "shipper", "image": _IMAGE, "command": ["ship", "--rank=$(RANK)"], "volumeMounts": logs}
    native = {"name": "proxy", "image": _IMAGE, "command": ["sleep", "600"], "restartPolicy": "Always"}
    pod = {
        "containers": [side],
        "initContainers": [native],
        "volumes": [{"name": "logs", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 2,
    }
    return job(*both(1, pod=pod, volumeMounts=logs, **_RUN))


def _init() -> Object:
    work = [{"name": "work", "mountPath": "/work"}]
    first = {"name": "fetch", "image": _IMAGE, "command": ["sh", "-c", "echo ready > /work/flag"], "volumeMounts": work}
    second = {
        "name": "check", "image": _IMAGE, "command": ["git", "log"], "env": [{"name": "A", "value": "b"}],
        "volumeMounts": work,
    }  # fmt: skip
    pod = {"initContainers": [first, second], "volumes": [{"name": "work", "emptyDir": {}}]}
    return job(*both(1, pod=pod, volumeMounts=work, **_RUN))


def _container() -> Object:
    settings: Object = {
        "workingDir": "/var/tmp",
        "stdin": True,
        "tty": True,
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
        "terminationMessagePath": "/dev/end",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "ports": [{"containerPort": 9090, "name": "metrics"}],
        "imagePullPolicy": "Never",
    }
    return job(*both(1, **settings, **_RUN))


def _pod_settings() -> Object:
    pod = {
        "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["store.example.com"]}],
        "dnsConfig": {"options": [{"name": "ndots", "value": "3"}], "searches": ["example.com"]},
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": 7,
        "enableServiceLinks": False,
    }
    return job(*both(1, pod=pod, **_RUN))


def _host() -> Object:
    pod = {"hostNetwork": True, "hostIPC": True, "hostPID": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return job(role(pod=pod, **_RUN), None)


def _unlike() -> Object:
    master = role(env=[{"name": "WHO", "value": "lead"}], resources={"limits": {"cpu": "150m"}}, **_RUN)
    worker = role(
        2, env=[{"name": "WHO", "value": "crew"}], resources={"limits": {"memory": "64Mi"}}, pod={
            "tolerations": [{"key": "spot", "operator": "Exists"}], "metadata": {"labels": {"part": "crew"}},
        }, **_RUN,
    )  # fmt: skip
    return job(master, worker)


def _two_programs() -> Object:
    return job(role(command=["python", "lead.py"], args=["--a b"]), role(command=["python", "crew.py", "--x='1'"]))


_CI: Final = {"env", "volumes", "identity"}


def features() -> tuple[Shape, ...]:
    made: dict[str, Any] = {
        "env": _env(),
        "volumes": _volumes(),
        "identity": _identity(),
        "placement": _placement(),
        "metadata": _metadata(),
        "resources-gpus": _resources(),
        "sidecars": _sidecars(),
        "init-containers": _init(),
        "container-settings": _container(),
        "pod-settings": _pod_settings(),
        "host-namespaces": _host(),
        "roles-differ": _unlike(),
        "two-programs": _two_programs(),
    }
    out = []
    for name, document in made.items():
        staged = stage([document])
        out.append(Shape(f"pod/{name}", tuple(staged.documents), tuple(staged.objects), ci=name in _CI))
    return tuple(out)
