"""Python scripts of the v1 SDK (kubeflow-training), rewritten for TrainerClient (kubeflow 0.5).

The text is edited in place, so that untouched lines stay byte for byte. LibCST reads it; it is an extra
and is imported only when a script is migrated.
"""

from trainjob.sdkmod.codes import CODES

__all__ = ["CODES"]
