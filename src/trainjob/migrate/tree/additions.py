"""What is added to a kustomization, as text."""

from __future__ import annotations

from typing import Final

CONFIGURATION: Final = "trainjob-kustomizeconfig.yaml"
RUNTIMES: Final = "trainjob-runtimes.yaml"
CONFIGURATION_TEXT: Final = """\
# Where kustomize finds images and the names of runtimes in a TrainJob, which it does not know.
images:
- path: spec/trainer/image
  kind: TrainJob
nameReference:
- kind: TrainingRuntime
  fieldSpecs:
  - path: spec/runtimeRef/name
    kind: TrainJob
"""
# kustomize's own order (api/internal/builtins/SortOrderTransformer.go, v5.8.1), and TrainJobs at the end:
# by name alone a TrainJob stands before its TrainingRuntime, and Trainer's webhook refuses it.
SORT: Final = """\
sortOptions:
  order: legacy
  legacySortOptions:
    orderFirst: [Namespace, ResourceQuota, StorageClass, CustomResourceDefinition, ServiceAccount, PodSecurityPolicy, Role,
      ClusterRole, RoleBinding, ClusterRoleBinding, ConfigMap, Secret, Endpoints, Service, LimitRange, PriorityClass,
      PersistentVolume, PersistentVolumeClaim, Deployment, StatefulSet, CronJob, PodDisruptionBudget]
    orderLast: [TrainJob, MutatingWebhookConfiguration, ValidatingWebhookConfiguration]
"""  # noqa: E501
