"""Jobs of Kubeflow's kinds whose policies each violate one rule, with the messages."""

from dlctl.api import quantities
from tests.contract.bad_jobs import bad, below_minimum
from tests.contract.jobs import elastic, policy, scheduling

CLEANING = '"", "All", "Running", "None"'
MANAGERS = '"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"'
POLICIES = [
    bad(
        "PyTorchJob",
        policy(cleanPodPolicy="Some"),
        f'spec.runPolicy.cleanPodPolicy: Unsupported value: "Some": supported values: {CLEANING}',
        "cleaning",
    ),
    bad(
        "TFJob",
        {"cleanPodPolicy": "Some"},
        f'spec.cleanPodPolicy: Unsupported value: "Some": supported values: {CLEANING}',
        "cleaning, where it once stood",
    ),
    bad(
        "JAXJob",
        policy(managedBy="me"),
        f'spec.runPolicy.managedBy: Unsupported value: "me": supported values: {MANAGERS}',
        "a manager that is none",
    ),
    bad(
        "XGBoostJob",
        policy(activeDeadlineSeconds=0),
        below_minimum("runPolicy.activeDeadlineSeconds", 0, 1),
        "deadline",
    ),
    bad(
        "TFJob",
        policy(backoffLimit=-1),
        below_minimum("runPolicy.backoffLimit", -1, 0),
        "limit of failures",
    ),
    bad(
        "TFJob",
        {"backoffLimit": -1},
        below_minimum("backoffLimit", -1, 0),
        "limit of failures, where it once stood",
    ),
    bad(
        "PaddleJob",
        policy(ttlSecondsAfterFinished=-1),
        below_minimum("runPolicy.ttlSecondsAfterFinished", -1, 0),
        "time to live",
    ),
    bad(
        "PyTorchJob",
        scheduling(minAvailable=0),
        below_minimum("runPolicy.schedulingPolicy.minAvailable", 0, 1),
        "gang of none",
    ),
    bad(
        "PyTorchJob",
        scheduling(minResources={"cpu": "1e999999"}),
        'spec.runPolicy.schedulingPolicy.minResources.cpu: Invalid value: "1e999999": '
        "spec.runPolicy.schedulingPolicy.minResources.cpu in body should match "
        f"'{quantities.PATTERN}'",
        "amount beyond all bounds",
    ),
    bad(
        "PyTorchJob",
        scheduling(scheduleTimeoutSeconds=-1),
        below_minimum("runPolicy.schedulingPolicy.scheduleTimeoutSeconds", -1, 0),
        "time to be scheduled in",
    ),
    bad(
        "MXJob",
        {"jobMode": "dist"},
        "spec.jobMode: Invalid value: must be one of MXTrain, MXTune",
        "mode of the list form",
    ),
    bad(
        "TFJob",
        {"successPolicy": "Some"},
        'spec.successPolicy: Unsupported value: "Some": supported values: "", "AllWorkers"',
        "success policy",
    ),
]
ELASTIC = [
    bad(
        "PyTorchJob",
        elastic(maxReplicas=2),
        "spec.elasticPolicy: Invalid value: needs replicas of the type Worker: add it",
        "elastic without workers",
        Master=1,
    ),
    *(
        bad(
            kind,
            elastic(minReplicas=3, maxReplicas=2),
            "spec.elasticPolicy.minReplicas: Invalid value: must not be more than maxReplicas",
            "limits the wrong way round",
        )
        for kind in ("PyTorchJob", "PaddleJob")
    ),
    *(
        bad(
            kind,
            elastic(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
            f"spec.elasticPolicy.metrics[0].resource.target.{field}",
            f"{field} of a metric",
        )
        for kind in ("PyTorchJob", "PaddleJob")
        for field, target in {
            "averageUtilization": {"type": "Utilization", "averageUtilization": "80%"},
            "averageValue": {"type": "AverageValue", "averageValue": "two"},
        }.items()
    ),
    *(
        bad(
            kind,
            elastic(metrics=[metric]),
            f"spec.elasticPolicy.metrics[0].{field}: Required value",
            f"metric without {field}",
        )
        for kind in ("PyTorchJob", "PaddleJob")
        for field, metric in {
            "type": {"resource": {"name": "cpu", "target": {"type": "Utilization"}}},
            "resource.target": {"type": "Resource", "resource": {"name": "cpu"}},
            "pods.metric.name": {
                "type": "Pods",
                "pods": {"metric": {}, "target": {"type": "AverageValue", "averageValue": "2"}},
            },
        }.items()
    ),
    bad(
        "PyTorchJob",
        elastic(metrics=[{"type": 3}]),
        "spec.elasticPolicy.metrics[0].type: Invalid value",
        "type of a metric",
    ),
    bad(
        "PyTorchJob",
        elastic(maxReplicas=0),
        below_minimum("elasticPolicy.maxReplicas", 0, 1),
        "upper limit",
    ),
    bad(
        "PaddleJob",
        elastic(maxRestarts=-1),
        below_minimum("elasticPolicy.maxRestarts", -1, 0),
        "restarts",
    ),
    bad("PyTorchJob", elastic(rdzvPort=0), below_minimum("elasticPolicy.rdzvPort", 0, 1), "port"),
    bad(
        "PyTorchJob",
        {"nprocPerNode": "2", **elastic(nProcPerNode=2)},
        "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode",
        "processes said twice",
    ),
]
