"""A real Kubernetes cluster for the tests: `python -m tests.cluster up`.

kind with Kubernetes 1.34, Trainer, JobSet, Kueue, the v1 Training Operator and fake GPUs. It works on
a laptop, where images come from registries, and on a machine that can reach package registries only,
where every image is made from Go modules and Debian packages. docs/howto/cluster.md tells the rest.

Where to look: `up.py` is the order of things; `versions.py` every version; `images.py` the two sources;
one module a concern for the others.
"""
