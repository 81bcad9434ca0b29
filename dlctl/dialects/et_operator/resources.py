"""The resources of et-operator's API group that scale a job."""

from typing import Final

from dlctl.api.meta import Resource

GROUP: Final = "kai.alibabacloud.com"
SCALE_INS: Final = Resource(GROUP, "v1alpha1", "scaleins", "ScaleIn")
SCALE_OUTS: Final = Resource(GROUP, "v1alpha1", "scaleouts", "ScaleOut")
