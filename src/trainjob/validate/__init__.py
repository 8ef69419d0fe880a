"""Whether an object is valid for its Trainer version, before a cluster sees it."""

from __future__ import annotations

from trainjob.validate.codes import BY_CODE, CHECKS, QUEUE_CHECKS, STORAGE_CHECKS, Check
from trainjob.validate.documents import (
    check_documents,
    check_job_storage,
    check_runtime,
    check_trainjob,
    claims_of,
    trainer_objects,
)
from trainjob.validate.storage import KnownClaim

__all__ = [
    "BY_CODE", "CHECKS", "QUEUE_CHECKS", "STORAGE_CHECKS", "Check", "KnownClaim", "check_documents",
    "check_job_storage", "check_runtime", "check_trainjob", "claims_of", "trainer_objects",
]  # fmt: skip
