"""Run, build, migrate and check distributed training on Kubeflow Trainer v2."""

__version__ = "0.1.0"
