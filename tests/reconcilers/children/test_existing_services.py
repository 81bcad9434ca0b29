"""Running jobs keep the kind of services that they have."""

import attrs
import pytest

from dlctl.reconcilers.children.existing_services import with_existing_services
from tests.builders import make_job, training_job

JOB = make_job(training_job("JAXJob", Worker=2))


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize(
    ("services", "shares"),
    [
        pytest.param({"linear"}, True, id="shared"),
        pytest.param({"linear-worker-0", "linear-worker-1"}, False, id="one each"),
        pytest.param({"linear-worker-1"}, False, id="one lost"),
    ],
)
def test_existing_services_take_precedence_over_the_annotation(
    services: set[str], *, annotated: bool, shares: bool
) -> None:
    job = attrs.evolve(JOB, shares_service=annotated)
    assert with_existing_services(job, services).shares_service is shares


@pytest.mark.parametrize("annotated", [True, False])
def test_job_without_services_gets_the_kind_that_its_annotation_says(*, annotated: bool) -> None:
    job = attrs.evolve(JOB, shares_service=annotated)
    assert with_existing_services(job, set()) is job
