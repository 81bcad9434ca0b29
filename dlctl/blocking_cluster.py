"""The embedded cluster for programs without an event loop, and for notebooks that run one."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from dlctl.cli.display import restart_limit
from dlctl.cli.embedded.cluster_options import NetworkChoice
from dlctl.embedded_cluster import Cluster, JobResult, ManifestSource, OnLine

logger = logging.getLogger(__name__)

T = TypeVar("T")
_CLOSE_TIMEOUT_S: Final = 60.0


class BlockingCluster:
    """The blocking twin of :class:`dlctl.Cluster`: a ``with`` block, or open and close it.

    It has a thread with an event loop of its own, so it works where a loop is running already, as
    in notebooks.
    """

    def __init__(
        self,
        *,
        images: Mapping[str, str | Path] | None = None,
        network: NetworkChoice = "auto",
        volumes: str | Path | None = None,
    ) -> None:
        self._cluster = Cluster(images=images, network=network, volumes=volumes)
        # Held by the thread that opens it; others wait until it is ready.
        self._opening = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = self._is_closing = False
        self._closing = asyncio.Event()

    def open(self) -> Self:
        """Start the cluster, unless it runs; return once it is ready.

        :raises TimeoutError: if it still ends after an earlier :meth:`close`.
        """
        with self._opening:
            has_failed = self._thread is not None and not self._thread.is_alive()
            if self._is_closing or has_failed:
                self.close()
            if self._thread is None:
                self._start()
        return self

    def _start(self) -> None:
        ready: Future[None] = Future()
        # A daemon: a notebook that is closed waits for nothing. Pods end with the process.
        self._thread = threading.Thread(target=self._run, args=(ready,), name="dlctl", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._close_or_log()
            raise
        self._is_ready = True

    def close(self) -> None:
        """End the cluster with all of its pods.

        :raises TimeoutError: if they take longer than a minute; close it again to wait for them.
        """
        if self._thread is None:
            return
        # Set before the loop is looked up: a thread that has no loop yet looks it up afterwards.
        self._is_closing, self._is_ready = True, False
        if self._loop is not None:
            # The loop ends at any time.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(
                f"the cluster has not ended within {_CLOSE_TIMEOUT_S:g} s, since its pods have "
                "not: close it again to wait for them"
            )
        self._thread = self._loop = None
        self._is_closing = False

    def _close_or_log(self) -> None:
        """Close the cluster while another error is raised, which a timeout must not hide."""
        try:
            self.close()
        except TimeoutError as error:
            logger.warning("%s", error)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close_or_log()

    @property
    def kubeconfig(self) -> Path:
        """Return the file with which kubectl and the clients of other packages find it."""
        return self._cluster.kubeconfig

    @property
    def url(self) -> str:
        """Return the address of the API server."""
        return self._cluster.url

    def run(
        self,
        manifest: ManifestSource | Sequence[ManifestSource],
        *,
        namespace: str = "default",
        timeout_s: float | None = None,
        max_restarts: int | None = restart_limit.DEFAULT,
        on_line: OnLine | None = None,
    ) -> JobResult:
        """Run a job to its end, as :meth:`dlctl.Cluster.run`; a thread calls ``on_line``."""
        return self._call(
            lambda: self._cluster.run(
                manifest,
                namespace=namespace,
                timeout_s=timeout_s,
                max_restarts=max_restarts,
                on_line=on_line,
            )
        )

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace, and return once all of its objects are gone."""
        self._call(lambda: self._cluster.delete_namespace(name))

    def _call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._loop is None or not self._is_ready:
            raise RuntimeError("the cluster must be opened first")
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return future.result()
        except BaseException:
            # As when a notebook's cell is interrupted.
            future.cancel()
            raise

    def _run(self, ready: "Future[None]") -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            else:
                raise

    async def _serve(self, ready: "Future[None]") -> None:
        self._closing = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._is_closing:
            raise RuntimeError("the cluster was closed while it started")
        async with self._cluster:
            ready.set_result(None)
            await self._closing.wait()
