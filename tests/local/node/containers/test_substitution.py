"""Substitution of names and paths in commands, for pods without namespaces."""

import pytest

from dlctl.local.node.containers.substitution import replace, service_names
from tests.local.node.builders import make_service


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("svc", "127.0.0.1"),
        ("tcp://svc:9091", "tcp://127.0.0.1:9091"),
        ("svc.default.svc.cluster.local:1", "127.0.0.1:1"),
        ("a=svc,b=svc.default", "a=127.0.0.1,b=127.0.0.1"),
        ("svc-1", "svc-1"),
        ("my-svc", "my-svc"),
        ("svc.elsewhere", "svc.elsewhere"),
    ],
)
def test_whole_names_of_services_become_loopback(text: str, expected: str) -> None:
    names = service_names([make_service("svc", selector={"a": "b"})], "default")
    assert replace(text, names) == expected


def test_service_of_another_namespace_needs_its_namespace() -> None:
    names = service_names([make_service("svc", selector={"a": "b"})], "other")
    assert replace("svc svc.default", names) == "svc 127.0.0.1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("svc-0.svc:1", "127.0.0.1:1"),
        ("tcp://svc-0.svc.default.svc", "tcp://127.0.0.1"),
        ("svc-0.svc,svc-1.svc", "127.0.0.1,127.0.0.1"),
        ("svc", "svc"),
        ("--name=svc", "--name=svc"),
        ("a.svc-0.svc", "a.svc-0.svc"),
        ("svc-0.svc-1", "svc-0.svc-1"),
        ("svc-0.svc.elsewhere", "svc-0.svc.elsewhere"),
    ],
)
def test_names_of_hosts_in_a_pods_subdomain_become_loopback(text: str, expected: str) -> None:
    names = service_names([make_service("svc", selector={"a": "b"})], "default", "svc")
    assert replace(text, names) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("/data", "/run/v"), ("--in=/data/x.csv", "--in=/run/v/x.csv"), ("/database", "/database")],
)
def test_leading_path_of_a_volume_is_replaced(text: str, expected: str) -> None:
    assert replace(text, {"/data": "/run/v"}) == expected
