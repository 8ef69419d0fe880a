"""Turn v1 PyTorchJobs into TrainJobs, keep what they meant, or say why not."""

from trainjob.migrate.engine import Migration, migrate_text
from trainjob.migrate.job import Options

__all__ = ["Migration", "Options", "migrate_text"]
