"""et-operator's kinds: TrainingJob, and the kinds that scale it."""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.dialects.et_operator import scaler_schema, scalers, training_conditions
from dlctl.dialects.et_operator.resources import GROUP, SCALE_INS, SCALE_OUTS
from dlctl.dialects.et_operator.training_job import TrainingJobDialect
from dlctl.dialects.kind import Kind, make_kind
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.horovod.job import TrainingJob

ELASTIC: Final = ElasticDialect(
    framework=TrainingJob,
    scaler_resources=(SCALE_INS, SCALE_OUTS),
    scalers=scalers,
    conditions=training_conditions,
    scaler_crd=scaler_schema.scaler_crd,
)


def served_kinds(frameworks: Mapping[str, type[DLJob]]) -> Iterator[Kind]:
    """Yield TrainingJob, which is served whatever frameworks are installed."""
    dialects = {"v1alpha1": TrainingJobDialect()}
    yield make_kind(GROUP, TrainingJob.job_type, dialects, elastic=ELASTIC)
