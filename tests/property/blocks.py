"""Building blocks of v1 jobs: what public manifests write, one distinct value per place.

Values differ from place to place, so that a test can tell which of them was lost.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
V1 = "training.kubeflow.org"

# (command, args); None is an absent field.
PROGRAMS: list[tuple[list[str] | None, list[str] | None]] = [
    (None, None),
    (None, ["--epochs=7", "--data", "/data/set"]),
    (None, ["python", "args_only.py"]),
    (["python", "train.py"], None),
    (["python3", "-u", "/opt/train.py"], ["--backend", "nccl"]),
    (["/usr/bin/python3.11", "-m", "pkg.train"], ["--lr=1e-4"]),
    (["torchrun", "bare.py"], None),
    (["torchrun", "--nnodes=2", "--nproc_per_node=2", "flags.py"], None),
    (["torchrun", "--nnodes", "$(WORLD_SIZE)", "--node-rank=$(RANK)", "expand.py"], None),
    (["/opt/conda/bin/torchrun", "--rdzv_backend=c10d", "--rdzv_endpoint=demo-worker-0:29500", "rdzv.py"], None),
    (["python", "-m", "torch.distributed.run", "--nproc-per-node", "1", "run.py"], None),
    (["python", "-m", "torch.distributed.launch", "launch.py"], None),
    (["accelerate", "launch", "--num_processes", "4", "acc.py"], None),
    (["deepspeed", "ds.py"], None),
    (["sh", "-c"], ["torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK sh.py"]),
    (["bash", "-lc", "source ~/.bashrc && python login.py"], None),
    (["/bin/bash", "-c", "--"], ["python dash.py"]),
    (["bash", "-c", "cat <<'EOF' > x.py\nprint('$$RANK')\nEOF\npython x.py\n"], None),
    (["env", "OMP_NUM_THREADS=1", "torchrun", "behind_env.py"], None),
    (["numactl", "--cpunodebind=0", "python", "numa.py"], None),
    (["composer", "compose.py"], ["--master", "demo-master-0:23456"]),
    (["sh", "-c", "torchrun --master_addr=${MASTER_ADDR} a.py; echo done > /out/done"], None),
    (["python", "-c", "import torch\nprint(torch.cuda.device_count())\n"], None),
    (["sh", "-c", 'python x.py --rank "${HOSTNAME##*-}"'], None),
]

ENV: list[Obj] = [
    {"name": "PLAIN", "value": "plain value"},
    {"name": "NUMBER", "value": "0042"},
    {"name": "EMPTY", "value": ""},
    {"name": "LINES", "value": "first\nsecond: x\n"},
    {"name": "UNICODE", "value": "größe → 3"},
    {"name": "NAMED", "value": "pytorch"},
    {"name": "HOST", "value": "tcp://demo-master-0:9999"},
    {"name": "EXPANDED", "value": "$(PLAIN)/below"},
    {"name": "RANK", "value": "77"},
    {"name": "MASTER_ADDR", "value": "10.77.0.1"},
    {"name": "PET_NNODES", "value": "66"},
    {"name": "PET_RDZV_BACKEND", "value": "static-66"},
    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "secret-a", "key": "key-a"}}},
    {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "map-a", "key": "key-b", "optional": True}}},
    {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
    {"name": "JOB", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{V1}/job-name']"}}},
    {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{V1}/replica-index']"}}},
    {
        "name": "LIMIT",
        "valueFrom": {"resourceFieldRef": {"containerName": "pytorch", "resource": "limits.cpu", "divisor": "1m"}},
    },
]

RESOURCES: list[Obj] = [
    {},
    {"limits": {"nvidia.com/gpu": 1}},
    {"limits": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi"}, "requests": {"cpu": 32.5, "memory": "256Gi"}},
    {"requests": {"cpu": "500m", "memory": "1e9"}},
    {"limits": {"nvidia.com/mig-1g.10gb": 2, "cpu": "3"}},
    {"limits": {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": 4}},
    {"limits": {"amd.com/gpu": 0, "cpu": 0.25}},
    {"limits": {"habana.ai/gaudi": 8, "hugepages-2Mi": "95000Mi", "memory": "409Gi", "cpu": "95"}},
]

# Further fields of the training container.
CONTAINER: list[Obj] = [
    {"imagePullPolicy": "Always"},
    {"imagePullPolicy": "IfNotPresent"},
    {"workingDir": "/workspace/run"},
    {"envFrom": [{"secretRef": {"name": "from-secret"}}, {"prefix": "P_", "configMapRef": {"name": "from-map"}}]},
    {"securityContext": {"privileged": False, "runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}},
    {"securityContext": {"privileged": True}},
    {"tty": True, "stdin": True},
    {"terminationMessagePolicy": "FallbackToLogsOnError", "terminationMessagePath": "/dev/termination-log"},
    {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 3"]}}}},
    {"startupProbe": {"exec": {"command": ["test", "-f", "/ready"]}, "failureThreshold": 61}},
    {"livenessProbe": {"httpGet": {"path": "/live", "port": 8088, "scheme": "HTTP"}}},
    {"readinessProbe": {"tcpSocket": {"port": "metrics"}, "periodSeconds": 17}},
    {"ports": [{"name": "pytorchjob-port", "containerPort": 23456}]},
    {"ports": [{"name": "metrics", "containerPort": 8088, "protocol": "TCP"}]},
    {"ports": [{"containerPort": 9443, "hostPort": 9443}]},
]

# (volume, mounts of the training container)
VOLUMES: list[tuple[Obj, list[Obj]]] = [
    ({"name": "data", "persistentVolumeClaim": {"claimName": "claim-a"}}, [{"name": "data", "mountPath": "/data"}]),
    (
        {"name": "ro", "persistentVolumeClaim": {"claimName": "claim-b", "readOnly": True}},
        [{"name": "ro", "mountPath": "/ro", "readOnly": True, "subPath": "part-a"}],
    ),
    (
        {"name": "twice", "persistentVolumeClaim": {"claimName": "claim-c"}},
        [
            {"name": "twice", "mountPath": "/in", "subPath": "part-b"},
            {"name": "twice", "mountPath": "/out", "subPathExpr": "$(POD)-x"},
        ],
    ),
    (
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "11Gi"}},
        [{"name": "shm", "mountPath": "/dev/shm"}],
    ),
    ({"name": "0-scratch", "emptyDir": {}}, [{"name": "0-scratch", "mountPath": "/scratch"}]),
    (
        {"name": "host", "hostPath": {"path": "/mnt/host", "type": "Directory"}},
        [{"name": "host", "mountPath": "/host"}],
    ),
    (
        {"name": "code", "configMap": {"name": "code-map", "defaultMode": 493, "items": [{"key": "k", "path": "p"}]}},
        [{"name": "code", "mountPath": "/code", "readOnly": False}],
    ),
    (
        {"name": "keys", "secret": {"secretName": "keys-secret", "optional": False}},
        [{"name": "keys", "mountPath": "/k"}],
    ),
    ({"name": "nfs", "nfs": {"server": "10.1.2.3", "path": "/export"}}, [{"name": "nfs", "mountPath": "/nfs"}]),
    (
        {"name": "dw", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        [{"name": "dw", "mountPath": "/info"}],
    ),
    (
        {
            "name": "eph",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "",
                        "resources": {"requests": {"storage": "13Gi"}},
                    }
                }
            },
        },
        [{"name": "eph", "mountPath": "/eph"}],
    ),
    ({"name": "unused", "emptyDir": {"medium": ""}}, []),
]

OWN_PODS = {"matchLabels": {f"{V1}/job-name": "demo"}}
POD: list[Obj] = [
    {"nodeSelector": {"pool": "gpu-pool", "empty-text": ""}},
    {"nodeSelector": {f"{V1}/node-label": "node-kept"}},
    {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists"}]},
    {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["zone-a", "zone-b"]}]}
                    ]
                }
            }
        }
    },
    {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 37, "podAffinityTerm": {"labelSelector": OWN_PODS, "topologyKey": "host-key"}}
                ]
            }
        }
    },
    {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {
                            "matchExpressions": [
                                {"key": f"{V1}/replica-type", "operator": "In", "values": ["worker"]},
                                {"key": "own", "operator": "Exists"},
                            ]
                        },
                        "topologyKey": "rack-key",
                    }
                ]
            }
        }
    },
    {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "tk", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": OWN_PODS}
        ]
    },
    {"schedulerName": "volcano"},
    {"schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30},
    {"priorityClassName": "high-class", "preemptionPolicy": "Never"},
    {"runtimeClassName": "nvidia-class"},
    {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet", "hostIPC": True},
    {"hostNetwork": True},
    {"hostPID": False, "hostUsers": False, "shareProcessNamespace": True},
    {
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["hh"]}],
    },
    {"serviceAccountName": "account-a", "imagePullSecrets": [{"name": "pull-a"}]},
    {"serviceAccount": "account-b", "automountServiceAccountToken": False},
    {"securityContext": {"runAsNonRoot": True, "fsGroup": 0, "supplementalGroups": [101, 102]}},
    {"terminationGracePeriodSeconds": 611},
    {"enableServiceLinks": False, "activeDeadlineSeconds": 7001},
    {"restartPolicy": "Never"},
    {"hostname": "own-host"},
]

INIT: list[Obj] = [
    {"name": "fetch", "image": "fetch:1", "command": ["fetch"], "env": [{"name": "FROM", "value": "s3://bucket"}]},
    {
        "name": "chown",
        "image": "busybox:2",
        "command": ["sh", "-c", "chown 1:1 /data"],
        "resources": {"limits": {"cpu": 1}},
    },
    {
        "name": "init-pytorch",
        "image": "alpine:3.10",
        "command": ["sh", "-c", "until nslookup demo-master-0; do sleep 2; done"],
    },
]
SIDECARS: list[Obj] = [
    {"name": "exporter", "image": "exporter:3", "ports": [{"containerPort": 9400}]},
    {
        "name": "logs",
        "image": "logs:4",
        "env": [{"name": "LEVEL", "value": "debug-level"}, {"name": "RANK", "value": "55"}],
    },
]
POD_LABELS: list[Obj] = [
    {"labels": {"app": "app-label"}},
    {"labels": {"kueue.x-k8s.io/queue-name": "pod-queue", "team": "team-label"}},
    {"annotations": {"sidecar.istio.io/inject": "false"}},
    {"annotations": {"k8s.v1.cni.cncf.io/networks": "net-a,net-b"}},
    {"labels": {f"{V1}/job-role": "master"}},
    {"name": "template-name", "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack-topology"}},
]
JOB_META: list[Obj] = [
    {"labels": {"kueue.x-k8s.io/queue-name": "queue-label", "app.kubernetes.io/name": "name-label"}},
    {"labels": {"kai.scheduler/queue": "kai-queue"}},
    {"annotations": {"kueue.x-k8s.io/queue-name": "queue-annotation"}},
    {
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": '{"kind":"PyTorchJob"}',
            "own/key": "own-note",
        }
    },
    {"uid": "uid-1", "resourceVersion": "4711", "generation": 3, "creationTimestamp": "2024-05-06T07:08:09Z"},
    {"finalizers": ["own/finalizer"], "ownerReferences": [{"kind": "Owner", "name": "owner-1", "uid": "u"}]},
]
RUN_POLICY: list[Obj] = [
    {"cleanPodPolicy": "None"},
    {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 3601},
    {"backoffLimit": 5},
    {"activeDeadlineSeconds": 86401},
    {"suspend": True},
    {"suspend": False, "managedBy": "kubeflow.org/training-operator"},
    {"managedBy": "kueue.x-k8s.io/multikueue"},
    {"schedulingPolicy": {"minAvailable": 9, "queue": "vc-queue", "minResources": {"cpu": 31}}},
]
ELASTIC: list[Obj] = [
    {"minReplicas": 1, "maxReplicas": 16, "maxRestarts": 101},
    {"maxReplicas": 21, "rdzvBackend": "etcd-v2", "rdzvHost": "etcd.host", "rdzvPort": 2379, "rdzvId": "id-1"},
    {"rdzvHost": "demo-worker-0", "rdzvConf": [{"key": "timeout", "value": "901"}], "nProcPerNode": 2},
    {
        "minReplicas": 2,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 81}},
            }
        ],
    },
]
STATUS: list[Obj] = [
    {"conditions": [{"type": "Succeeded", "status": "True"}]},
    {"conditions": [{"type": "Running", "status": "True"}], "startTime": "2024-05-06T07:08:09Z"},
]
