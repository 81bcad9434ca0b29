"""Which servers are reached through a proxy, as with kubectl."""

import pytest

from dlctl.errors import ConfigError
from dlctl.kube.proxies import proxy_for

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "excluded"),
    [
        pytest.param("https://k8s.example:6443", "", False, id="no exclusions"),
        pytest.param("https://127.0.0.1:6443", "", True, id="loopback"),
        pytest.param("https://127.9.9.9:6443", "", True, id="another loopback address"),
        pytest.param("https://[::1]:6443", "", True, id="loopback of IPv6"),
        pytest.param("https://localhost:6443", "", True, id="localhost"),
        pytest.param("https://10.96.0.1", "10.0.0.0/8", True, id="in a range"),
        pytest.param("https://11.96.0.1", "10.0.0.0/8", False, id="outside a range"),
        pytest.param("https://k8s.example", "10.0.0.0/8", False, id="name and range"),
        pytest.param("https://k8s.example", "10.0.0.0/99", False, id="invalid range"),
        pytest.param("https://10.96.0.1", "10.96.0.1", True, id="address"),
        pytest.param("https://10.96.0.1", ".0.1", False, id="address that ends like a domain"),
        pytest.param("https://[fd00::1]:6443", "[fd00::1]:6443", True, id="IPv6 and port"),
        pytest.param("https://[fd00::1]:6443", "fd00::/16", True, id="IPv6 range"),
        pytest.param("https://k8s.example", "a, K8S.example ,b", True, id="one of several"),
        pytest.param("https://a.k8s.example", "k8s.example", True, id="below a name"),
        pytest.param("https://ak8s.example", "k8s.example", False, id="longer name"),
        pytest.param("https://k8s.example", ".example", True, id="below a domain"),
        pytest.param("https://k8s.example", "*.example", True, id="wildcard"),
        pytest.param("https://example", "*.example", False, id="the domain itself"),
        pytest.param("https://k8s.example", "*", True, id="all"),
        pytest.param("https://k8s.example", "k8s.example:443", True, id="default port"),
        pytest.param("https://k8s.example", "k8s.example:6443", False, id="another port"),
    ],
)
def test_hosts_are_excluded_as_by_kubectl(server: str, no_proxy: str, *, excluded: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_for(server, environment) == (None if excluded else PROXY)


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        pytest.param({"https_proxy": PROXY}, PROXY, id="lower case"),
        pytest.param({"HTTPS_PROXY": "proxy.example:3128"}, PROXY, id="without a scheme"),
        pytest.param({"HTTP_PROXY": PROXY}, None, id="of the other scheme"),
        pytest.param({"HTTPS_PROXY": ""}, None, id="empty"),
    ],
)
def test_proxy_is_that_of_the_scheme_of_the_server(
    environment: dict[str, str], proxy: str | None
) -> None:
    assert proxy_for("https://k8s.example", environment) == proxy


@pytest.mark.parametrize("proxy", ["socks5://u:secret@h:1", "http://u:secret@h:port", "http://"])
def test_proxy_that_cannot_be_used_is_reported_without_its_password(proxy: str) -> None:
    with pytest.raises(ConfigError) as raised:
        proxy_for("https://k8s.example", {"HTTPS_PROXY": proxy})
    assert "HTTPS_PROXY: not the URL of an HTTP proxy" in str(raised.value)
    assert "secret" not in str(raised.value)
