"""A run in MLflow, through its own library (extra `mlflow`)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trainjob.train.faults import Code, TrainError
from trainjob.train.watch.meter import Record

# Limits of the REST API's log-batch (mlflow 3.17, utils/validation.py).
_METRICS: Final = 1000
_PARAMS: Final = 100
_PARAM_LENGTH: Final = 6000


def check() -> None:
    """Raises TrainError(CONFIG) when the library is missing. Imports nothing."""
    if importlib.util.find_spec("mlflow") is None:
        raise TrainError(
            Code.CONFIG,
            "report.mlflow is set, but the package mlflow is not installed",
            "pip install 'trainjob[mlflow]', or unset report.mlflow",
        )


@dataclass
class MLflow:
    """The sink. `uri`: http(s)://... or file:/folder or a path; `run`: id of the run to go on with, or "".

    A resumed run stays one run in MLflow. Steps that are computed again are there twice, at their times;
    MLflow cannot take points back. `params`: settings, logged once; `began` is told the run's id.
    """

    uri: str
    experiment: str
    run: str = ""
    run_name: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    began: Callable[[str], None] = field(default=lambda _: None)
    name: str = "MLflow"
    _client: Any = field(init=False)

    def __post_init__(self) -> None:
        if "://" not in self.uri or self.uri.startswith("file:"):
            # 3.17 refuses a folder unless this says that it is meant (store/tracking/file_store.py).
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(self.uri)
        # MLflow's own variable for "go on with this run".
        self.run = self.run or os.environ.get("MLFLOW_RUN_ID", "")
        if self.run:
            self._client.update_run(self.run, status="RUNNING")
        else:
            found = self._client.get_experiment_by_name(self.experiment)
            experiment = found.experiment_id if found else self._client.create_experiment(self.experiment)
            self.run = self._client.create_run(experiment, run_name=self.run_name or None).info.run_id
            self._log_params()
        self.began(self.run)

    def _log_params(self) -> None:
        from mlflow.entities import Param

        params = [Param(key, value[:_PARAM_LENGTH]) for key, value in self.params.items() if value]
        for some in _parts(params, _PARAMS):
            self._client.log_batch(self.run, params=some)

    def write(self, records: Sequence[Record]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, int(record.time * 1000), record.step)
            for record in records
            for name, value in record.metrics.items()
        ]
        for some in _parts(metrics, _METRICS):
            self._client.log_batch(self.run, metrics=some)

    def saved(self, step: int) -> None:
        """Nothing: the checkpoints are not MLflow's."""

    def close(self, ok: bool) -> None:
        self._client.set_terminated(self.run, "FINISHED" if ok else "FAILED")


def _parts(items: Sequence[Any], length: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), length):
        yield items[start : start + length]
