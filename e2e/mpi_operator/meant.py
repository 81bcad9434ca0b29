"""Where dlctl differs from mpi-operator on purpose: see ``docs/kinds/mpijob.md``.

Paths begin at a step's record; a case that is refused has the path of nothing.
"""

from typing import Final

from e2e.mpi_operator.difference import Meant

# Events of dlctl alone.
_OURS: Final = (
    r"^\(nothing\) > (Normal Successful(Create|Delete)|Warning FailedCreate|Normal ExitedWithCode"
    "|Warning (Unschedulable|SchedulingGated|UnknownLauncherCreationPolicy))"
)
# Waiting comes first, and the last one says how a suspended or ended job is.
_ORDER: Final = (
    r"^(?P<same>.+) > Waiting (?P=same)$"
    r"|^Created Suspended Running > (Waiting )?Created Running Suspended$"
    r"|^Created (?P<end>Succeeded|Failed) Running > (Waiting )?Created Running (?P=end)$"
)
# Refused by the CRD; mpi-operator only records an event.
_REFUSED: Final = (
    "no-workers-wanted",
    "worker-replicas-unset",
    "two-launchers",
    "no-launchers-wanted",
    "no-launcher",
    "no-types",
    "unknown-type",
    "no-template",
    "no-containers",
    "no-worker-containers",
    "no-specs",
    "t+",
    "u+",
    "v+",
    "1-digit",
    "with.dot",
    "exit-code",
    "always",
    "slots-negative",
    "slots-text",
    "implementation-unknown",
    "clean-unknown",
    "ttl-negative",
    "deadline-negative",
    "deadline-zero",
    "backoff-negative",
    "many-errors",
)

MEANT: Final = (
    Meant("all children have dlctl's label", r"metadata/labels(/dlctl\.dev/managed-by)?$"),
    Meant(
        "dlctl notes what it has applied", r"annotations(/dlctl\.dev/(applied|placement)-hash)?$"
    ),
    Meant("the status is dlctl's memory, too", r"^objects/MPIJob JOB/status/dlctl"),
    Meant("dlctl says what it creates and deletes", "^events$", what=_OURS),
    Meant("pods do not get the owners of their template", r"Job .*template/metadata/ownerRef"),
    Meant("the API server refuses what is invalid", "^$|^objects|^events$", "|".join(_REFUSED)),
    Meant("hosts are in numeric order", r"discover_hosts\.sh$", "twelve-workers"),
    Meant("a launcher that waits is in no gang", "^objects/", "gang-waits"),
    Meant("the gang's resources are those of its members", "minResources", "gang-worker-higher"),
    Meant("nothing is not a resource", "nvidia.com/gpu$", "gang-min-available-one"),
    Meant("the search domain follows --cluster-domain", "dnsConfig/searches", "domain.*"),
    Meant("the launcher waits after a suspension, too", "^objects/", "wait-suspended.*"),
    Meant(
        "a failed worker is replaced",
        "^objects/(Pod|MPIJob|ConfigMap)|^events$",
        "worker-(fails|and|evicted).*",
    ),
    Meant("the right workers go", "^objects/", "scaled-in-as-worker"),
    Meant("no worker of a suspended job stays", "^objects/", "suspend-running"),
    Meant("the message says why a launcher failed", r"^objects/.*Failed/message$"),
    Meant("so does the event", "^events$", what="Warning BackoffLimitExceeded"),
    Meant("volcano's own default is written down", "PodGroup JOB/spec/queue", what="> default"),
    Meant("nothing is not a minimum", "PodGroup JOB/spec/minResources", what=r"^\{\} >"),
    Meant("volcano learns each pod's task", r"annotations(/volcano\.sh/task-spec)?$"),
    Meant("the TTL is set once the end is in the status", "ttlSecondsAfterFinished", "ttl.*"),
    Meant("a Secret cannot be read, so it is not missed", "^objects/Secret", "secret-deleted"),
    Meant("what the server refuses fails", "^objects/|^events$", "(mount|volume)-clash|.*-refused"),
    Meant("dlctl says why a job waits", "status/conditions/Waiting$"),
    Meant(
        "a name that is taken holds the job up, with a condition", "^objects/|^events$", "taken-.*"
    ),
    Meant("so does a missing priority class", "^objects/MPIJob|^events$", "gang-unknown-class"),
    Meant("a worker that has succeeded is done", "^objects/", "succeeded-worker-deleted"),
    Meant("no worker of a removed type stays", "^objects/(Pod|ConfigMap)", "workers-removed"),
    Meant("a gang is no larger than its job", "minMember$", "gang-min-available-above"),
    Meant("the plugin counts pods that run", "minMember$", "gang-worker-succeeds"),
    Meant("equal variables are as in a pod", "^$|^objects|^events$", "same-variable"),
    Meant("pod templates have no defaults", "ports/ssh/protocol$", "port"),
    Meant("what others write into an object stays", "^objects/", "hostfile-edited|service-edited"),
    Meant("a suspended or ended job's last condition says so", "conditions order$", what=_ORDER),
    Meant(
        "types without pods have no counts", r"replicaStatuses(/(Launcher|Worker))?$", what=r"\{\}"
    ),
    Meant(
        "dlctl never creates a pod twice", "^events$", what="Warning MPIJobFailed.*already exists"
    ),
    Meant(
        "pods report the end of a failed program's log",
        "terminationMessagePolicy$",
    ),
    Meant("an empty word means the default", "^objects|^events$", "clean-empty"),
    Meant("unknown fields of containers are kept", "containers/main/gpus", "unknown-field"),
)
