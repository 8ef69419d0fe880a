"""Whether Kueue can ever admit a TrainJob, computed from manifests: before any cluster sees the job."""

from __future__ import annotations

from trainjob.validate.queue.check import Verdict, check_queues
from trainjob.validate.queue.demand import PodSet, demand
from trainjob.validate.queue.objects import Queues, QueuesError

__all__ = ["PodSet", "Queues", "QueuesError", "Verdict", "check_queues", "demand"]
