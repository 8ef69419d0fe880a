"""Whether an object is valid for its Trainer version, before a cluster sees it."""

from __future__ import annotations

from trainjob.validate.codes import BY_CODE, CHECKS, Check
from trainjob.validate.documents import check_documents, check_runtime, check_trainjob, trainer_objects

__all__ = ["BY_CODE", "CHECKS", "Check", "check_documents", "check_runtime", "check_trainjob", "trainer_objects"]
