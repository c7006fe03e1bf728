"""Starts governing a device: with the helper where it can be had, else by pacing alone."""

import time
from collections.abc import Callable

import msgspec

from app.domain.errors import EnvironmentProblem, ErrorInfo
from app.domain.machine import GpuInfo
from app.domain.pacing import Pace
from app.power.changes import ChangeLog
from app.power.client import HelperClient, start_helper
from app.power.control import PowerControl
from app.power.devices import check_cap, governed_device
from app.power.known import Coolers
from app.power.protocol import PutBack
from app.power.records import Wish


def start_control(
    info: GpuInfo,
    wish: Wish,
    *,
    set_pace: Callable[[Pace], None],
    use_helper: bool,
    log: ChangeLog | None = None,
    helper: Callable[[], HelperClient] = start_helper,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[PowerControl, ErrorInfo | None]:
    """Return the control of a device, and why it paces only, if it does.

    Blocks while the system asks for a password: call it off the GUI's thread.

    Args:
        info: The device.
        wish: What the user asked for; without the helper a cap is dropped.
        set_pace: Passes a new pace to the engine's worker.
        use_helper: Whether to ask for an administrator's rights at all.
        log: Where changes are kept; ``None`` = the user's data folder.
        helper: Starts the helper.
        clock: Seconds, steady.

    Raises:
        UsageProblem: The cap wanted is outside what the device allows.
    """
    log = log or ChangeLog()
    client, problem = None, None
    if use_helper and info.pci_id is not None:
        try:
            client = helper()
            client.begin(info.pci_id)
        except EnvironmentProblem as error:
            client, problem = None, error.info
    device = governed_device(info, client.facts if client else None)
    try:
        if wish.cap_w is not None and client is not None:
            check_cap(device, wish.cap_w)
        elif client is None:
            wish = msgspec.structs.replace(wish, cap_w=None)
        control = PowerControl(
            device, wish, set_pace=set_pace, log=log, helper=client, clock=clock,
            coolers=Coolers(log.folder),
        )  # fmt: skip
    except EnvironmentProblem:
        if client is not None:
            client.end()
        raise
    return control, problem


def restore_pending(
    log: ChangeLog, helper: Callable[[], HelperClient] = start_helper
) -> tuple[PutBack, ...]:
    """Put back what an earlier run left behind and return how that went.

    The helper does it as it starts, so the password is asked for again.

    Raises:
        EnvironmentProblem: The helper cannot be started.
    """
    client = helper()
    results = client.greet()
    client.end()
    failed = {result.pci_id for result in results if result.result == "failed"}
    for pending in log.pending():
        if pending.pci_id not in failed:
            log.unmark(pending.pci_id)
    return results
