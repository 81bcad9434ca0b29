"""``dlctl release``: ungate waiting launchers before another operator takes over."""

import argparse
import asyncio

from dlctl.errors import counted
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.reconcilers.children.scheduling_gates import ungate_all


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Remove the scheduling gate dlctl.dev/workers-running from all pods, so that none waits "
        "for a controller that is gone. Stop the controller first: it creates gated pods."
    )
    parser.add_argument("--kubeconfig", default="", help="path of the kubeconfig to use")
    parser.add_argument("--context", default="", help="kubeconfig context to use")
    parser.add_argument("-n", "--namespace", default="", help="only this namespace; default: all")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_release(args.kubeconfig, args.context, args.namespace))
    return 0


async def _release(kubeconfig: str, context: str, namespace: str) -> None:
    cluster = await config.load(kubeconfig or None, context or None)
    async with Client(cluster, user_agent="dlctl/release") as client:
        pods = await ungate_all(client, namespace)
    for pod in pods:
        print(f"pod {pod} released")
    print(f"{counted(len(pods), 'pod')} released")
