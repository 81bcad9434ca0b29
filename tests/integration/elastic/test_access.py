"""Access of launchers and workers, and jobs started by et-operator."""

from typing import Any, Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.kube.errors import InvalidError
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.integration.elastic.et_operator_jobs import left_by_et_operator
from tests.support.elastic_harness import JOBS, ONE, ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

OWN: Final = (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, CONFIG_MAPS, SECRETS)


async def test_ssh_launcher_can_read_its_config_map_and_exec_into_no_pod() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        assert rights(stage, "pods/exec") == []
        assert rights(stage, "configmaps") == [["linear-config"]]


async def test_kubexec_launcher_can_exec_into_existing_workers_only() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, launcherAttachMode="kubexec")
        assert rights(stage, "pods/exec") == [["linear-worker-0", "linear-worker-1"]]
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert rights(stage, "pods/exec")[0][2:] == ["linear-worker-2"]
        await stage.scale_in(toDelete={"count": 2})
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert rights(stage, "pods/exec") == [["linear-worker-0"]]
        assert stage.listed() == [0]


async def test_account_that_nobody_controls_is_used_as_it_is() -> None:
    async with start_elastic_cluster() as stage:
        cluster, key = stage.cluster, stage.cluster.key("linear-launcher")
        account = {"metadata": {"name": key.name}, "imagePullSecrets": [{"name": "mine"}]}
        await cluster.user.create(SERVICE_ACCOUNTS, key.namespace, account)
        before = cluster.objects(SERVICE_ACCOUNTS)
        await stage.running(2)
        await cluster.settled()
        assert cluster.objects(SERVICE_ACCOUNTS) == before
        assert stage.pod(key.name)["spec"]["serviceAccountName"] == key.name
        tried = cluster.history.writes()["create", "serviceaccounts"]
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert cluster.history.writes()["create", "serviceaccounts"] == tried <= 1

        await cluster.user.delete(SERVICE_ACCOUNTS, key)
        missing = f'error looking up an account: serviceaccount "{key.name}" not found'
        rejected = status.forbidden(PODS, key.name, missing)
        fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=rejected)
        cluster.server.faults.add(fault)
        await cluster.user.delete(PODS, key)
        await cluster.until(lambda: len(cluster.owned(SERVICE_ACCOUNTS, cluster.job())) == 1)
        await stage.until_running()


async def test_account_of_another_owner_is_waited_for() -> None:
    async with start_elastic_cluster() as stage:
        cluster, key = stage.cluster, stage.cluster.key("linear-launcher")
        owner = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "1", "controller": True}
        metadata = {"name": key.name, "ownerReferences": [owner]}
        await cluster.user.create(SERVICE_ACCOUNTS, key.namespace, {"metadata": metadata})
        await stage.submit()
        await cluster.until(lambda: "belongs to Other o" in cluster.condition("Waiting"))
        await cluster.user.delete(SERVICE_ACCOUNTS, key)
        await stage.until_running()


async def test_workers_do_not_get_the_private_key() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        (secret,) = stage.cluster.objects(SECRETS)
        held = {name: keys(stage.pod(name)) for name in ("linear-launcher", "linear-worker-0")}
        private = [key for key in secret["data"] if key in ("id_rsa", "id_ed25519")]
        assert set(private) <= held["linear-launcher"]
        assert not set(private) & held["linear-worker-0"]


async def test_ssh_keys_are_created_once_per_job() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        (before,) = stage.cluster.objects(SECRETS)
        await stage.cluster.kill_all()
        stage.cluster.start()
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        (after,) = stage.cluster.objects(SECRETS)
        assert after == before


async def test_job_whose_secret_is_rejected_waits() -> None:
    full = status.forbidden(SECRETS, "linear", "exceeded quota: objects")
    fault = Fault(verb="create", resource="secrets", user_agent="dlctl", status=full, times=None)
    async with start_elastic_cluster() as stage:
        cluster = stage.cluster
        cluster.server.faults.add(fault)
        await stage.submit()
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        await cluster.advance(60)
        assert cluster.history.writes()["create", "secrets"] <= 8, "it is tried now and then"
        assert not cluster.pods()

        cluster.server.faults.clear()
        await cluster.until(lambda: cluster.condition("Running"))
        assert not cluster.condition("Waiting")


async def test_unknown_attach_mode_is_rejected() -> None:
    async with start_elastic_cluster() as stage:
        with pytest.raises(InvalidError):
            await stage.submit(launcherAttachMode="rsh")


@pytest.mark.parametrize("name", ["l" * 60, "lin.ear"])
async def test_job_name_without_valid_worker_names_is_rejected(name: str) -> None:
    async with start_elastic_cluster() as stage:
        with pytest.raises(InvalidError):
            await stage.submit(name=name)


async def test_running_job_of_et_operator_is_adopted_with_its_pods() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.kill_all()
        await left_by_et_operator(stage)
        before = uids(stage)
        stage.cluster.start()
        await stage.cluster.until(lambda: stage.hosts() == [0, 2])
        await stage.cluster.settled()
        assert uids(stage) == before
        assert stage.cluster.phase() == "Running"
        assert stage.members() == [0, 2]
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert stage.members() == [0, 2, 3]
        await stage.scale_in(toDelete={"podNames": ["linear-worker-0"]})
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.uid("linear-worker-2") in before
        assert stage.listed() == [2, 3]


async def test_requests_finished_by_et_operator_are_not_executed_again() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.kill_all()
        await stage.scale_out("done", toAdd=ONE)
        ended: JSON = {
            "phase": "ScaleSucceeded",
            "conditions": [
                {"type": "ScaleSucceeded", "status": "True", "reason": "ScalingOutSucceeded"}
            ],
            "replicaStatuses": {},
            "restartCount": 0,
            "addPods": ["linear-worker-2"],
        }
        body = {"status": ended}
        key = stage.cluster.key("done")
        await stage.cluster.user.patch(SCALE_OUTS, key, body, subresource="status")
        stage.cluster.start()
        await stage.running(2)
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.is_consistent()


async def test_deleting_a_job_deletes_all_its_objects() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.cluster.user.delete(JOBS, stage.cluster.key())
        await stage.cluster.until(lambda: not stage.cluster.pods())
        await stage.cluster.settled()
        left = [r for r in (*OWN, SERVICES, SCALE_INS) if owned(stage, r)]
        assert left == []


def rights(stage: ElasticHarness, resource: str) -> list[list[str]]:
    """Return the objects of a resource to which the launcher has access."""
    (role,) = stage.cluster.objects(ROLES)
    return [
        rule.get("resourceNames", []) for rule in role["rules"] if resource in rule["resources"]
    ]


def keys(pod: JSON) -> set[str]:
    """Return the keys of secrets that a pod mounts; by default, all of them."""
    found: set[str] = set()
    for volume in pod["spec"].get("volumes") or ():
        sources = [volume, *(volume.get("projected") or {}).get("sources", ())]
        for source in (s.get("secret") for s in sources):
            if source is not None:
                items = source.get("items")
                found |= {item["key"] for item in items} if items else {"id_rsa", "id_ed25519"}
    return found


def owned(stage: ElasticHarness, resource: Any) -> list[JSON]:
    return [o for o in stage.cluster.objects(resource) if o["metadata"].get("ownerReferences")]


def uids(stage: ElasticHarness) -> set[str]:
    owned_ = (stage.cluster.owned(r, stage.cluster.job()) for r in (PODS, SERVICES, *OWN))
    return {obj["metadata"]["uid"] for objects in owned_ for obj in objects}


async def test_secret_of_a_former_job_of_the_same_name_is_not_used() -> None:
    async with start_elastic_cluster() as stage:
        user, namespace = stage.cluster.user, stage.cluster.namespace
        old = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "linear"}}
        await user.create(SECRETS, namespace, {**old, "data": {"id_rsa": "b2xk"}})
        await stage.submit()
        await stage.cluster.until(lambda: stage.cluster.phase() == "Created")
        assert stage.cluster.pods() == []
        await user.delete(SECRETS, stage.cluster.key())
        await stage.until_running()
        (secret,) = stage.cluster.objects(SECRETS)
        assert secret["data"]["id_rsa"] != "b2xk"


async def test_launcher_cannot_exec_into_a_foreign_pod_with_a_lost_workers_name() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, launcherAttachMode="kubexec")
        await stage.scale_in(toDelete=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        spec = {"containers": [{"name": "vault", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "linear-worker-1"}}
        await stage.cluster.user.create(PODS, stage.cluster.namespace, {**pod, "spec": spec})
        await stage.scale_out(toAdd=ONE, timeout=30)
        await stage.cluster.until(lambda: stage.scaler("out").get("phase") == "Scaling")
        await stage.cluster.advance(20)
        assert rights(stage, "pods/exec") == [["linear-worker-0"]]


async def test_launcher_of_a_stopped_job_can_exec_into_no_pod() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, launcherAttachMode="kubexec")
        await stage.edit({"spec": {"suspend": True}})
        await stage.cluster.until(lambda: rights(stage, "pods/exec") == [])


async def test_launcher_role_is_written_once_at_the_start() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(6, launcherAttachMode="kubexec")
        await stage.cluster.settled()
        writes = stage.cluster.history.writes()
        assert writes["patch", "roles.rbac.authorization.k8s.io"] == 1
