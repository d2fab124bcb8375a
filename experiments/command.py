"""The `memtune` command. Anything heavy is imported by the subcommand that needs it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence

import click
from click.exceptions import NoArgsIsHelpError

from experiments.commands.examples import examples
from experiments.commands.whole_summaries import LazyCommands
from experiments.display.terminal import brief, say, say_library_messages
from experiments.interrupts import INTERRUPTED, interruptible, own_process
from experiments.runs.earlier_names import NO_CLUSTER
from tracing.errors import MemtuneError

SUBCOMMANDS: Mapping[str, str] = {
    "init": "init:init",
    "run": "run:run",
    "eval": "evaluate:evaluate",
    "watch": "watch:watch",
    "runs": "run_history:runs",
    "compare": "run_history:compare",
    "export": "exporting:export",
    "import-prompts": "exporting:import_prompts",
    "ui": "run_history:ui",
    "attribute": "attribute:attribute",
    "annotate": "annotate:annotate",
    "diagnose": "diagnose:diagnose",
    "mlflow": "run_history:mlflow",
    "trace": "trace:trace",
    "data": "data:data",
    "bench": "bench:bench",
    "model": "models:model",
    "system": "systems:system",
    "gateway": "gateway:gateway",
    "doctor": "doctor:doctor",
    "completion": "completion:completion",
}
"""Name → `module:function` under `experiments.commands`, in the order of --help."""

EARLIER_NAMES: Mapping[str, str] = {"report": "diagnose"}
"""Names of commands that changed, which still work in this version."""

GONE: Mapping[str, str] = {
    "ask": "it answered none of 45 questions; search the trace with `memtune trace search`, look at it with "
    "`memtune trace show`, or let `memtune attribute TRACE --question TEXT` say why an answer was wrong"
}
"""Names of commands that are no longer part of memtune: why, and what to use."""

GONE_OPTIONS: Mapping[str, str] = {"--executor": NO_CLUSTER}
"""Options that no longer exist, and what to do."""

OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Defaults for libraries that would otherwise access or wait for the network."""

FAILED = 2

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(
    cls=LazyCommands,
    package="experiments.commands",
    places=SUBCOMMANDS,
    earlier_names=EARLIER_NAMES,
    gone=GONE,
    epilog=examples("memtune"),
    context_settings=HELP,
)
@click.version_option(package_name="memtune", prog_name="memtune")
def cli() -> None:
    """Tune the prompts of an LLM memory system where its answers go wrong."""


def main(arguments: Sequence[str] | None = None, *, command: click.Command = cli, program: str = "memtune") -> None:
    """Run the command and exit: 0 success, 1 a negative result that the command's help explains (a score below
    --min-score, traces that differ, a case that failed), 2 an error reported in one line, 130 interrupted."""
    for name, value in OFFLINE.items():
        os.environ.setdefault(name, value)
    say_library_messages()
    try:
        with interruptible():
            code = command.main(args=arguments, prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, NoArgsIsHelpError):
            error.show()
        else:
            context = getattr(error, "ctx", None)
            help_line = f"; see `{context.command_path} --help`" if context else ""
            option = getattr(error, "option_name", "")
            gone = f"{option}: {GONE_OPTIONS[option]}" if option in GONE_OPTIONS else None
            say(f"{program}: {gone or brief(error.format_message()).rstrip('.')}{help_line}", err=True)
        sys.exit(error.exit_code)
    except MemtuneError as error:
        say(f"{program}: {_with_notes(brief(str(error)), error)}", err=True)
        sys.exit(FAILED)
    except (KeyboardInterrupt, click.Abort) as error:
        # click turns an interrupt into its own Abort.
        say(f"{program}: {_with_notes('interrupted', error.__cause__ or error)}", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of the output is gone; there is nobody to report to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = f"{error.filename}: " if error.filename else ""
        say(f"{program}: {where}cannot be written ({error.strerror}); free disk space and start it again", err=True)
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _with_notes(message: str, error: BaseException) -> str:
    """A message, and what the error notes beside it, such as how to go on with a run."""
    return "; ".join([message, *getattr(error, "__notes__", ())])


if __name__ == "__main__":
    own_process()
    main()
