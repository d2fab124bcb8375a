"""`memtune doctor`: what a run would stumble over, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, home_option, system_option, task_model_options

if TYPE_CHECKING:
    from experiments.doctor import HealthCheck

_STYLES = {"ok": "green", "missing": "dim", "broken": "bold red"}


@click.command(epilog=examples("doctor"))
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@system_option
@task_model_options
@click.option(
    "--build", is_flag=True, help="Also build a memory of two turns, ask a question, and check recording and rerun."
)
@home_option
def doctor(config: str | None, build: bool, home: Path | None, **options: Any) -> int:
    """Check what a run needs: Python, packages, extras, home, disk, stores, models, MLflow, memory system, and
    whether a run would start with its data set and everything else that CONFIG.yaml names.

    Without CONFIG.yaml that is a run with the defaults. Each endpoint gets one small request. The exit code is 1 if
    anything is broken. What is reported as missing is not needed by this run.
    """
    from experiments.doctor import any_broken, health
    from experiments.running.parts import home_path

    checks = health(config_from(config, options), home_path(home), build=build)
    _show(checks)
    return 1 if any_broken(checks) else 0


def _show(findings: list[HealthCheck]) -> None:
    from experiments.display.literal_console import LiteralConsole, styled

    console = LiteralConsole()
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        state = (f"{finding.state:<8}", _STYLES[finding.state])
        console.print(styled(state, f"{finding.subject:<{width}}  {finding.says}"), soft_wrap=True)
        if finding.remedy:
            console.print(styled(" " * (8 + width + 2), ("→ ", "bold"), finding.remedy), soft_wrap=True)
    broken = sum(finding.state == "broken" for finding in findings)
    console.print("nothing is broken" if not broken else f"{broken} to fix before a run", soft_wrap=True)
