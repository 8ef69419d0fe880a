"""Every version in one place: programs with the Go module each comes from, images, Debian, node image.

`checksum` is the module's own, as go.sum writes it: a module that differs is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .problems import ClusterError

KUBERNETES: Final = "v1.34.4"
# The published node image: the 1.34 that is known to exist under this name.
PUBLISHED_NODE: Final = "kindest/node:v1.34.3"
DEBIAN_SUITE: Final = "trixie"
# The same as in images/trainer/Containerfile.
DEBIAN_IMAGE: Final = (
    "debian:trixie-20261005-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f"
)


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module at one version. `wrapper` names a folder of gomod/ where it cannot be built by itself."""

    path: str
    version: str
    checksum: str
    wrapper: str = ""

    @property
    def at(self) -> str:
        return f"{self.path}@{self.version}"


@dataclass(frozen=True, slots=True)
class Program:
    """A program built from a module. `package` is below the module, or a full path with a wrapper.

    `on_host`: it runs on this machine, not in a container.
    """

    name: str
    module: Module
    package: str
    on_host: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}@{self.module.version}"


KUBERNETES_MODULE: Final = Module(
    "k8s.io/kubernetes", KUBERNETES, "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=", "kubernetes"
)
_ETCD: Final = Module("go.etcd.io/etcd/server/v3", "v3.6.16", "h1:sLkpvz3RFtiNd/yPrZBKz5kT+XO1ZJkhmuUJeqc7OmA=", "etcd")
KIND_MODULE: Final = Module("sigs.k8s.io/kind", "v0.33.0", "h1:AjvDv3vOygb/VKLVQW87lfktIBzkxR8Ump9DjxC8+Lk=")
KUEUE_MODULE: Final = Module("sigs.k8s.io/kueue", "v0.17.0", "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=")
OPERATOR_MODULE: Final = Module(
    "github.com/kubeflow/training-operator", "v1.9.4", "h1:MjYXzeaHGBmF47BlhCo6+Mb7ypHrVfO6vsys1ZHF56A="
)
STORAGE_MODULE: Final = Module(
    "github.com/rancher/local-path-provisioner", "v0.0.30", "h1:OkiuofkCSscddl7tma/B9Ox1wu+JEVSrP7IcZI65Ggo="
)

KUBERNETES_PROGRAMS: Final = tuple(
    Program(name, KUBERNETES_MODULE, f"k8s.io/kubernetes/cmd/{name}")
    for name in (
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
        "kubeadm",
        "kubectl",
    )
)
ETCD: Final = Program("etcd", _ETCD, "go.etcd.io/etcd/server/v3")
COREDNS: Final = Program(
    "coredns",
    Module("github.com/coredns/coredns", "v1.12.1", "h1:haptbGscSbdWU46xrjdPj1vp3wvH1Z2FgCSQKEdgN5s="),
    ".",
)
KIND: Final = Program("kind", KIND_MODULE, ".", on_host=True)
STORAGE: Final = Program("local-path-provisioner", STORAGE_MODULE, ".")
# A server that speaks S3, for checkpoints in object storage; made and loaded when a test needs it.
S3_SERVER: Final = Program(
    "versitygw",
    Module("github.com/versity/versitygw", "v1.8.0", "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc="),
    "./cmd/versitygw",
)
KUEUE: Final = Program("kueue", KUEUE_MODULE, "./cmd/kueue")
OPERATOR: Final = Program("training-operator.v1", OPERATOR_MODULE, "./cmd/training-operator.v1")


@dataclass(frozen=True, slots=True)
class Manager:
    """A controller that runs as a pod: its program, its image as the manifests name it, where it is deployed."""

    program: Program
    image: str
    namespace: str
    deployment: str
    entrypoint: str = "/manager"
    # Numeric user of the image; the local-path provisioner's manifests expect root.
    user: str = "65532:65532"


KUEUE_MANAGER: Final = Manager(
    KUEUE, f"registry.k8s.io/kueue/kueue:{KUEUE_MODULE.version}", "kueue-system", "kueue-controller-manager"
)
OPERATOR_MANAGER: Final = Manager(
    OPERATOR,
    # The tag that the manifests of this version name.
    "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489",
    "kubeflow",
    "training-operator",
)
STORAGE_MANAGER: Final = Manager(
    STORAGE,
    f"docker.io/rancher/local-path-provisioner:{STORAGE_MODULE.version}",
    "local-path-storage",
    "local-path-provisioner",
    entrypoint="/usr/bin/local-path-provisioner",
    user="0:0",
)


@dataclass(frozen=True, slots=True)
class Trainer:
    """One Trainer version with the JobSet that it was released for."""

    module: Module
    jobset: Module

    @property
    def version(self) -> str:
        """Without the v, as the command line writes it."""
        return self.module.version.removeprefix("v")

    @property
    def manager(self) -> Manager:
        return Manager(
            Program("trainer-controller-manager", self.module, "./cmd/trainer-controller-manager"),
            f"ghcr.io/kubeflow/trainer/trainer-controller-manager:{self.module.version}",
            "kubeflow-system",
            "kubeflow-trainer-controller-manager",
        )

    @property
    def jobset_manager(self) -> Manager:
        # Trainer's overlay installs JobSet into Trainer's own namespace.
        return Manager(
            Program("jobset", self.jobset, "."),
            f"registry.k8s.io/jobset/jobset:{self.jobset.version}",
            "kubeflow-system",
            "jobset-controller-manager",
        )


def _trainer(version: str, checksum: str, jobset: str, jobset_checksum: str) -> Trainer:
    module = Module("github.com/kubeflow/trainer/v2", version, checksum)
    return Trainer(module, Module("sigs.k8s.io/jobset", jobset, jobset_checksum))


TRAINERS: Final = {
    trainer.version: trainer
    for trainer in (
        _trainer(
            "v2.3.0", "h1:Je+e7zvTLzB4qW09J1fB7pZrqvPtWuGng2NqdN5p5QU=",
            "v0.12.0", "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
        ),
        _trainer(
            "v2.2.0", "h1:whChZckEtycLo1UKH/M0hiNaCUozbLvf9JrgmMv+TAg=",
            "v0.11.1", "h1:WgLEBnXTeX+4MxfVkIbfm4jIVgjvIY6Jfaei2okxKNk=",
        ),
        _trainer(
            "v2.1.0", "h1:jRABD9ZYToamNH2atHze3L/VC/v6KCAqUEqsOQOjVTg=",
            "v0.10.1", "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=",
        ),
        _trainer(
            "v2.0.1", "h1:4bMZdFIpQBHjcUene6P+MqbY5v7ccyLUIKkefOhUFG8=",
            "v0.8.2", "h1:WC5a5G7MqfJJy4p+6OxGMpfbB90KoDSay96Mc4yMMZM=",
        ),
    )
}  # fmt: skip
DEFAULT_TRAINER: Final = "2.3.0"


def trainer(version: str) -> Trainer:
    """The row of the version matrix; `v2.1.0` and `2.1.0` are the same."""
    try:
        return TRAINERS[version.removeprefix("v")]
    except KeyError:
        raise ClusterError(
            f"Trainer {version} is not in the version matrix", f"choose one of {', '.join(TRAINERS)}"
        ) from None


@dataclass(frozen=True, slots=True)
class PreloadedImage:
    """An image that kubeadm expects on the node. `packages` makes it a Debian image with these packages."""

    name: str
    program: str
    packages: tuple[str, ...] = ()
    entrypoint: bool = False


# As `kubeadm config images list` of this Kubernetes names them.
PRELOADED: Final = (
    PreloadedImage(f"registry.k8s.io/kube-apiserver:{KUBERNETES}", "kube-apiserver"),
    PreloadedImage(f"registry.k8s.io/kube-controller-manager:{KUBERNETES}", "kube-controller-manager"),
    PreloadedImage(f"registry.k8s.io/kube-scheduler:{KUBERNETES}", "kube-scheduler"),
    PreloadedImage(f"registry.k8s.io/kube-proxy:{KUBERNETES}", "kube-proxy", ("iptables", "nftables", "conntrack")),
    PreloadedImage("registry.k8s.io/etcd:3.6.5-0", "etcd"),
    PreloadedImage("registry.k8s.io/coredns/coredns:v1.12.1", "coredns", entrypoint=True),
)
PAUSE_IMAGE: Final = "registry.k8s.io/pause:3.10.1"
# The image of the v1 operator's init container, which waits until the master's name resolves.
INIT_IMAGE: Final = "docker.io/library/alpine:3.10"
# The image of the storage provisioner's helper pod.
HELPER_IMAGE: Final = "docker.io/library/busybox:latest"

NODE_PROGRAMS: Final = (*KUBERNETES_PROGRAMS, ETCD, COREDNS)
