"""The settings of plans and of memberships, from the controller's options."""

from dlctl.backoff import Backoff
from dlctl.options import Options
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.membership.membership_state import MembershipSettings
from dlctl.reconcilers.planning.job_plan import PlanSettings


def plan_settings(options: Options) -> PlanSettings:
    return PlanSettings(
        RestartLimits(_restart_backoff(options), options.max_infrastructure_restarts_per_hour),
        force_delete_after_s=options.force_delete_after_s,
    )


def membership_settings(options: Options) -> MembershipSettings:
    return MembershipSettings(
        backoff=_restart_backoff(options),
        start_after_s=options.elastic_start_after_s,
        drain_timeout_s=options.scale_in_timeout_s,
        scale_out_timeout_s=options.scale_out_timeout_s,
    )


def _restart_backoff(options: Options) -> Backoff:
    return Backoff(
        base_s=options.restart_backoff_s,
        cap_s=options.restart_backoff_cap_s,
        reset_s=options.restart_backoff_reset_s,
    )
