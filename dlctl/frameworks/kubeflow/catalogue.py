"""The kinds of Kubeflow's training-operator that are served."""

from typing import Final

from dlctl.frameworks.kubeflow.jax import JAXJob
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.kubeflow.mpi import MPIJob
from dlctl.frameworks.kubeflow.mxnet import MXJob
from dlctl.frameworks.kubeflow.paddle import PaddleJob
from dlctl.frameworks.kubeflow.pytorch import PyTorchJob
from dlctl.frameworks.kubeflow.tensorflow import TFJob
from dlctl.frameworks.kubeflow.xgboost import XGBoostJob

KUBEFLOW_JOBS: Final[tuple[type[KubeflowJob], ...]] = (
    TFJob, PyTorchJob, XGBoostJob, PaddleJob, JAXJob, MPIJob, MXJob,
)  # fmt: skip
