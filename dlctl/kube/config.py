"""Address and credentials of the API server: kubeconfig, in-cluster, or a plain token."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import attrs

from dlctl.errors import ConfigError
from dlctl.kube.config_library import config_library
from dlctl.kube.credentials import Access, Credentials, FixedCredentials, tls_context
from dlctl.kube.http_urls import is_http_url
from dlctl.kube.proxies import http_proxy, proxy_for

logger = logging.getLogger(__name__)

# Projected service account tokens are replaced at 80 % of their lifetime, at most an hour: a minute
# of delay does not matter. The same goes for CA files and the credentials of exec plugins.
REFRESH_S: Final = 60.0
# An exec plugin may wait for a browser.
LOAD_TIMEOUT_S: Final = 60.0
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class MissingKubeconfigError(ConfigError):
    """There is no kubeconfig where one was expected."""


@attrs.frozen
class ClusterConfig:
    """One API server as seen by one client; bound to one event loop."""

    server: str
    credentials: Credentials = attrs.field(factory=FixedCredentials)
    namespace: str = "default"
    proxy: str | None = None
    # The name in the server's certificate, if it differs from the address.
    tls_server_name: str | None = None

    @classmethod
    def with_token(
        cls, server: str, token: str, *, ca_pem: bytes | None = None, namespace: str = "default"
    ) -> Self:
        """Return the configuration of a server that accepts this bearer token."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        https = server.startswith("https:")
        tls = tls_context(ca_pem=ca_pem.decode() if ca_pem else None) if https else None
        return cls(server.rstrip("/"), FixedCredentials(Access(headers, tls)), namespace)


async def load(kubeconfig: str | None = None, context: str | None = None) -> ClusterConfig:
    """Return the cluster of the given file, ``$KUBECONFIG``, the pod, or ``~/.kube/config``.

    :raises MissingKubeconfigError: if none is found.
    :raises ConfigError: if it is unusable.
    """
    if path := kubeconfig or os.environ.get("KUBECONFIG"):
        return await _from_kubeconfig(path, context)
    if (_SERVICE_ACCOUNT / "token").exists() and "KUBERNETES_SERVICE_HOST" in os.environ:
        return await in_cluster()
    return await _from_kubeconfig(_DEFAULT_KUBECONFIG, context)


async def in_cluster(folder: Path = _SERVICE_ACCOUNT) -> ClusterConfig:
    """Return the cluster of the pod that this process runs in, with its service account."""
    library = config_library()

    async def reload(renew: bool) -> Any:
        configuration = library.configuration()
        loader = library.in_cluster_loader(str(folder / "token"), str(folder / "ca.crt"))
        loader.load_and_set(configuration)
        return configuration

    credentials = LoadedCredentials(reload)
    configuration = await credentials.start()
    namespace = folder / "namespace"
    return ClusterConfig(
        configuration.host,
        credentials,
        namespace.read_text().strip() if namespace.exists() else "default",
        # As client-go's in-cluster config does.
        proxy_for(configuration.host, os.environ),
    )


async def _from_kubeconfig(paths: str, context: str | None) -> ClusterConfig:
    _require_file(paths)
    library = config_library()
    try:
        merged = library.kubeconfig_merger(paths)
        loader = library.kubeconfig_loader(
            merged.config,
            active_context=context,
            config_base_path=None,
            # Identity providers may issue refresh tokens that work only once.
            config_persister=merged.save_changes,
        )
    except (TypeError, AttributeError):
        raise ConfigError(f"kubeconfig: {paths}: it is not a kubeconfig") from None
    except Exception as error:  # noqa: BLE001 - the library raises anything
        raise ConfigError(f"kubeconfig: {paths}: {_redacted_message(error)}") from None

    async def reload(renew: bool) -> Any:
        if renew:
            # Otherwise the plugin would not run before its token expires.
            vars(loader).pop("exec_plugin_expiry", None)
        configuration = library.configuration()
        await loader.load_and_set(configuration)
        return configuration

    credentials = LoadedCredentials(reload, periodic=lambda: _may_expire(loader))
    configuration = await credentials.start()
    if not is_http_url(configuration.host):
        # Not quoted: it may hold a password.
        raise ConfigError(f"kubeconfig: {paths}: the server is no URL such as https://HOST:PORT")
    named: Mapping[str, str] = loader.current_context["context"]
    own = configuration.proxy
    return ClusterConfig(
        configuration.host.rstrip("/"),
        credentials,
        named.get("namespace") or "default",
        http_proxy(own, "proxy-url") if own else proxy_for(configuration.host, os.environ),
        getattr(configuration, "tls_server_name", None),
    )


def _require_file(paths: str) -> None:
    named = [os.path.expanduser(path) for path in paths.split(os.pathsep)]
    if not any(map(os.path.isfile, named)):
        reason = (
            "it is not a file" if any(map(os.path.exists, named)) else "the file does not exist"
        )
        raise MissingKubeconfigError(
            f"kubeconfig: {os.path.expanduser(paths)}: {reason}; set --kubeconfig, or KUBECONFIG"
        )


def _may_expire(loader: Any) -> bool:
    """Return whether reloading may change anything; a plugin without expiry runs once."""
    has_plugin = "exec" in (loader._user or ())  # noqa: SLF001 - there is no public way to read it
    return not has_plugin or hasattr(loader, "exec_plugin_expiry")


def _redacted_message(error: Exception) -> str:
    """Return the message up to where it may quote a user's entry of the file, tokens included."""
    text = str(error).partition("{")[0]
    return " ".join(text.split()) or type(error).__name__


@attrs.define
class LoadedCredentials:
    """Credentials that are reloaded every minute, and at once when the server rejects them.

    If a reload fails, the old ones stay in use: the server decides whether they are valid. The TLS
    context is rebuilt when one of its files changes.
    """

    reload: Callable[[bool], Awaitable[Any]]
    periodic: Callable[[], bool] = lambda: True
    _access: Access = attrs.field(init=False, factory=Access, repr=False)
    _files: tuple[object, ...] = attrs.field(init=False, default=())
    _reload_at: float = attrs.field(init=False, default=0.0)
    # Ten requests that find the token expired must run the plugin only once.
    _lock: asyncio.Lock = attrs.field(init=False, factory=asyncio.Lock)

    async def start(self) -> Any:
        """Load for the first time and return the result; raise ConfigError if that fails."""
        try:
            configuration = await self._load(renew=False)
        except Exception as error:  # noqa: BLE001 - plugins and the library raise anything
            raise ConfigError(f"credentials: {_redacted_message(error)}") from None
        self._reload_at = time.monotonic() + REFRESH_S
        return configuration

    async def access(self, rejected: Access | None = None) -> Access:
        if self._lock.locked() and rejected is not self._access:
            # A slow plugin holds up only the request that runs it.
            return self._access
        async with self._lock:
            # Another request may have renewed the rejected credentials in the meantime.
            renew = rejected is self._access
            if renew or time.monotonic() >= self._reload_at:
                await self._refresh(renew=renew)
        return self._access

    async def _refresh(self, *, renew: bool) -> None:
        try:
            if renew or self.periodic():
                await self._load(renew=renew)
        except Exception as error:  # noqa: BLE001 - plugins and the library raise anything
            logger.warning(
                "credentials could not be refreshed", extra={"error": _redacted_message(error)}
            )
        finally:
            # Counted from the end: a plugin may have taken as long as the interval.
            self._reload_at = time.monotonic() + REFRESH_S

    async def _load(self, *, renew: bool) -> Any:
        async with asyncio.timeout(LOAD_TIMEOUT_S):
            configuration = await self.reload(renew)
        token = configuration.api_key.get("BearerToken", "").strip()
        headers = {"Authorization": token} if token else {}
        files = await asyncio.to_thread(_files, configuration)
        tls = self._access.tls
        if configuration.host.startswith("https") and (tls is None or files != self._files):
            tls = await asyncio.to_thread(_context, configuration)
        self._files = files
        self._access = Access(headers, tls)
        return configuration


def _files(configuration: Any) -> tuple[object, ...]:
    """Return the contents of all files that the TLS context is built from."""
    paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return tuple(Path(path).read_bytes() if path else None for path in paths)


def _context(configuration: Any) -> Any:
    ca, cert, key = configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file
    return tls_context(
        ca_pem=Path(ca).read_text() if ca else None,
        certificate=(cert, key) if cert else None,
        verify=configuration.verify_ssl,
    )
