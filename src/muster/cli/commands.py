"""The table of commands, loaded one at a time, and the one place where an outcome becomes an exit code.

`muster ls` must be quick, so a command's module is imported only when that command is called; the table carries the
one-line summaries, so that `muster --help` imports none. Nothing here, nor below, may import a server module.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

import click
import msgspec

from muster import __version__
from muster.cli.failing import (
    INTERRUPTED,
    MACHINE_ERROR,
    OK,
    USAGE,
    ServerFailedError,
    show_delay,
    show_error,
    show_failure,
    show_machine_failure,
    stop_printing,
)
from muster.model.errors import MusterError
from muster.model.reason import Code
from muster.sdk.ear import EAR
from muster.sdk.whereabouts import VARIABLE
from muster.units import AmountError


class Entry(msgspec.Struct, frozen=True):
    """Where a command lives, and its summary."""

    module: str
    summary: str


COMMANDS: Final = {
    "up": Entry("server", "Start the server, or what is missing of it."),
    "down": Entry("server", "Stop the server; running jobs go on."),
    "status": Entry("server", "Say whether the server is fit, and where."),
    "run": Entry("run", "Run a command as a job and follow it."),
    "submit": Entry("submit", "Submit jobs from files: one or many in YAML, JSON or TOML."),
    "sbatch": Entry("slurm", "Submit a Slurm script as it is."),
    "import": Entry("slurm", "Print the job that a Slurm script means."),
    "ls": Entry("jobs", "List jobs."),
    "show": Entry("jobs", "Show one job, or one node."),
    "why": Entry("explain", "Say why a job waits, and what would help."),
    "story": Entry("explain", "Tell a job's life, step by step."),
    "avail": Entry("avail", "List what would start now for a tenant."),
    "logs": Entry("logs", "Print a job's output."),
    "exec": Entry("entering", "Run a command beside a running job."),
    "shell": Entry("entering", "Open a shell beside a running job."),
    "wait": Entry("jobs", "Wait until jobs are over; the exit code of the first that failed becomes yours."),
    "cancel": Entry("jobs", "End jobs."),
    "hold": Entry("jobs", "Keep jobs from starting, until they are released."),
    "release": Entry("jobs", "Let held jobs start again."),
    "requeue": Entry("jobs", "Stop what runs of jobs, and let them wait again."),
    "migrate": Entry("jobs", "Let a gang, or tasks of an array, go on elsewhere."),
    "scale": Entry("jobs", "Let a gang have at most so many tasks, or other bounds; an array, so many at once."),
    "nodes": Entry("fleet", "List nodes and what is free on them; or show one."),
    "flavors": Entry("fleet", "List kinds of capacity, what they count as and what is free; or show or set one."),
    "cordon": Entry("bars", "Keep new work off a node; what runs there goes on."),
    "drain": Entry("bars", "Empty a node: nothing new goes there, and what runs there finishes."),
    "uncordon": Entry("bars", "Lift your cordon and your drain of a node."),
    "tenants": Entry("tenants", "List tenants, their quotas and their use; or show, set or drop one."),
    "quota": Entry("tenants", "List tenants, their quotas and their use; or show, set or drop one."),
    "undo": Entry("undo", "Take back your last change of a tenant's quota or of a tier."),
    "reserve": Entry("reserve", "Book nodes for a tenant in a window of time."),
    "bookings": Entry("reserve", "List bookings, whatever opens first on top."),
    "unreserve": Entry("reserve", "Give a booking up."),
    "goodput": Entry("goodput", "Say what the time of every GPU was spent on."),
    "usage": Entry("usage", "Say who used how much of what, and what it cost."),
    "report": Entry("usage", "Reports for those who pay."),
    "tiers": Entry("tiers", "List tiers, whoever goes first on top; or show or set one."),
    "overlays": Entry(
        "overlays", "List power feeds and uplinks, and what is left of each; or show, set or remove one."
    ),
    "profiles": Entry("profiles", "List profiles, the weights of the score terms; or show, compare, set or use one."),
    "advice": Entry("advice", "List what was learned or measured outside, or hand in a table of it."),
    "notify": Entry("notify", "List who is told of what happens; or add or remove somebody, or send a trial notice."),
    "users": Entry("access", "List users and service accounts; or show, set or drop one."),
    "tokens": Entry("access", "List tokens, without their secrets; or make or drop one."),
    "audit": Entry("access", "List who changed what, oldest first; or verify that no line was changed."),
    "login": Entry("login", "Be a client of a server elsewhere, with a token, from now on."),
    "logout": Entry("login", "Forget the login; the token itself stays valid."),
    "whoami": Entry("access", "Say as whom you speak, and with which roles."),
    "top": Entry("top", "Watch the fleet: what is wrong, the room there is, who runs and who waits."),
    "doctor": Entry("doctor", "Check the home, the server, this machine and its clock."),
    "explain": Entry("pages", "Explain codes such as M201."),
    "completion": Entry("completion", "Print what completes commands and options in a shell."),
    "sim": Entry("lab", "Simulate a fleet under load and faults."),
    "backup": Entry("lab", "Copy the server's journal to a new file, while the server runs."),
    "restore": Entry("lab", "Put a backup in the journal's place, while no server runs."),
    "bundle": Entry("lab", "Record the live server's decisions to a file."),
    "replay": Entry("lab", "Decide a recorded bundle, or a span of time (--from 02:50 --to 03:10), again and compare."),
    "league": Entry("lab", "Play a league of published policies on published traces."),
    "trace": Entry("lab", "Look at a trace of jobs, convert one, or export this server's history as one."),
    "version": Entry("version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table: the first steps first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the module of one command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"muster.cli.{entry.module}")
        command = module.COMMANDS[cmd_name]
        assert isinstance(command, click.Command)  # noqa: S101 - the modules are ours; a test visits each entry
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but a noun may be said of one (`tier`, `profile`), `help run` is `run --help`, and whoever
        types a word that is no command is told which one was likely meant."""
        if args and args[0] == "help":
            args = [*args[1:2], "--help"]
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
        if args and args[0] not in COMMANDS and f"{args[0]}s" in COMMANDS:
            args = [f"{args[0]}s", *args[1:]]
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from muster.cli.naming import suggest  # here: most commands are spelt right

            meant = suggest(args[0], COMMANDS)
            raise click.UsageError(f"there is no command {args[0]!r}{meant or '; `muster --help` lists them'}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """As click does it, but whoever reads through a pipe may leave when they have read enough."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            stop_printing()
            return OK

    # The signature is click's.
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table itself: asking every command for its help would import them all."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="muster %(version)s", help="Print the version and leave.")
@click.option("--home", metavar="PATH", help="The server's directory (default: $MUSTER_HOME, ~/.muster).")
def cli(home: str | None) -> None:
    """One queue over every accelerator you have."""
    if home is not None:
        os.environ[VARIABLE] = os.path.abspath(home)  # noqa: PTH100 - see `muster.sdk.whereabouts`


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; its exit code."""
    EAR.hear = show_delay
    try:
        result = cli.main(arguments, prog_name="muster", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return USAGE
    except click.UsageError as error:
        hint = f"{error.ctx.command_path} --help" if error.ctx is not None else "muster --help"
        show_failure("", error.format_message(), hint)
        return USAGE
    except click.ClickException as error:
        show_failure("", error.format_message(), "")
        return USAGE
    except ServerFailedError as error:
        show_failure("", str(error), "")
        return error.exit_code
    except AmountError as error:
        show_failure(Code.BAD_AMOUNT.value, str(error), "write the amount as in the example")
        return USAGE
    except MusterError as error:
        return show_error(error)
    except UnicodeEncodeError as error:  # the system hands on bytes, whatever they are; a job is text
        show_failure(Code.BAD_SPEC.value, f"{error.object!a:.80} is not UTF-8", "a job's words are text, in UTF-8")
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except OSError as error:
        show_machine_failure(error)
        return MACHINE_ERROR
    return result if isinstance(result, int) else OK
