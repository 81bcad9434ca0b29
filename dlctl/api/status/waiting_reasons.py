"""The reasons of the condition ``Waiting``; those of Kueue that are not here pass unchanged."""

from typing import Final

# The API server rejects a child, or others delete it.
CHILD_DELETED: Final = "ChildDeleted"
FORBIDDEN: Final = "Forbidden"
INVALID_TEMPLATE: Final = "InvalidTemplate"
LIMIT_RANGE_DENIED: Final = "LimitRangeDenied"
NAME_TAKEN: Final = "NameTaken"
NOT_SERVED: Final = "NotServed"
POD_SECURITY_DENIED: Final = "PodSecurityDenied"
POLICY_DENIED: Final = "PolicyDenied"
PRIORITY_CLASS_NOT_FOUND: Final = "PriorityClassNotFound"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
REJECTED: Final = "Rejected"
RUNTIME_CLASS_NOT_FOUND: Final = "RuntimeClassNotFound"
SERVICE_ACCOUNT_NOT_FOUND: Final = "ServiceAccountNotFound"
WEBHOOK_DENIED: Final = "WebhookDenied"
WEBHOOK_FAILED: Final = "WebhookFailed"

# The job is held: by its user, Kueue or a gang scheduler. The last three are Kueue's own.
SUSPENDED: Final = "Suspended"
POD_GROUP_NOT_ADMITTED: Final = "PodGroupNotAdmitted"
ADMISSION_CHECK_PENDING: Final = "AdmissionCheckPending"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
WORKLOAD_DEACTIVATED: Final = "WorkloadDeactivated"
EXCEEDS_MAX_QUOTA: Final = "ExceedsMaxQuota"
MISCONFIGURED: Final = "Misconfigured"
NO_MATCHING_FLAVOR: Final = "NoMatchingFlavor"

# A pod is not scheduled.
NOT_SCHEDULED: Final = "NotScheduled"
QUEUED_BY_KUEUE: Final = "QueuedByKueue"
SCHEDULING_GATED: Final = "SchedulingGated"
UNSCHEDULABLE: Final = "Unschedulable"
VOLUME_NOT_BOUND: Final = "VolumeNotBound"

# A container does not run; the last six are the kubelet's own.
CONTAINER_CREATING: Final = "ContainerCreating"
CONTAINER_WAITING: Final = "ContainerWaiting"
IMAGE_PULL_FAILED: Final = "ImagePullFailed"
INIT_CONTAINER_RUNNING: Final = "InitContainerRunning"
KUBELET_SILENT: Final = "KubeletSilent"
CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"
CREATE_CONTAINER_CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATE_CONTAINER_ERROR: Final = "CreateContainerError"
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
INVALID_IMAGE_NAME: Final = "InvalidImageName"
RUN_CONTAINER_ERROR: Final = "RunContainerError"

# A replica waits for another one, or for its own next pod.
POD_DELETED: Final = "PodDeleted"
POD_TERMINATING: Final = "PodTerminating"
RESTART_BACK_OFF: Final = "RestartBackOff"
WAITING_FOR_REPLICAS: Final = "WaitingForReplicas"

# Those that the user can resolve in the job; others are up to the cluster.
CONFIGURATION_REASONS: Final = frozenset(
    {
        CREATE_CONTAINER_CONFIG_ERROR,
        EXCEEDS_MAX_QUOTA,
        INVALID_TEMPLATE,
        LIMIT_RANGE_DENIED,
        MISCONFIGURED,
        NAME_TAKEN,
        NO_MATCHING_FLAVOR,
        POD_SECURITY_DENIED,
        POLICY_DENIED,
        PRIORITY_CLASS_NOT_FOUND,
        REJECTED,
        RUNTIME_CLASS_NOT_FOUND,
        SERVICE_ACCOUNT_NOT_FOUND,
        VOLUME_NOT_BOUND,
        WEBHOOK_DENIED,
    }
)
