"""`python -m muster.app ROLE`: the one entry of everything that is not a client. It parses words and picks a part.

What goes wrong at start-up is told on stderr, with a code, and ends with exit code 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from muster.app.parsing import WordParser, show_refusal
from muster.app.warming import choose_folder
from muster.model.errors import MusterError, RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.home import Home

LAB_WORDS: Final = ("sim", "replay", "bundle")
TRACE: Final = "trace"
LEAGUE: Final = "league"
KEEPING_WORDS: Final = ("backup", "restore")
NOTIFY: Final = "notify"
WARM: Final = "warm"
"""Compile what is compiled, ahead of the first start."""
OPENAPI: Final = "openapi"
"""Print the description of the API, for `docs/reference/openapi.json`."""
START_FAILED: Final = 2
PORT_MAX: Final = 65535


def main(argv: list[str]) -> int:
    """Run one part; the exit code."""
    choose_folder(Home(_find_home(argv)), os.environ)
    try:
        code = _print_word(argv)
        return _serve(_parse(argv)) if code is None else code
    except MusterError as error:
        show_refusal(error)
        return START_FAILED


def _find_home(argv: list[str]) -> Path | None:
    """The home that is named, whatever else is: where code is kept may depend on it, and is asked for first."""
    parser = WordParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--home", type=Path, nargs="?")
    home: Path | None = parser.parse_known_args(argv)[0].home
    return home


def _print_word(argv: list[str]) -> int | None:
    """The same of a part that prints something and is over; None if it is not named."""
    try:
        code = _run_word(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads it has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run_word(argv: list[str]) -> int | None:
    if argv and argv[0] in LAB_WORDS:
        from muster.app import lab  # a server need not load the laboratory

        return lab.main(argv)
    if argv and argv[0] == TRACE:
        from muster.app import tracing  # neither a server nor the laboratory

        return tracing.main(argv[1:])
    if argv and argv[0] == LEAGUE:
        from muster.app import lab  # see above

        return lab.play_league(argv[1:])
    if argv == [WARM]:
        from muster.kernel.warm import warm_up  # the compiler is only for servers
        from muster.learning import hazard

        warm_up()
        hazard.warm_up()
        return 0
    if argv and argv[0] in KEEPING_WORDS:
        from muster.app import keeping  # neither a server nor the laboratory

        return keeping.main(argv)
    if argv and argv[0] == NOTIFY:
        from muster.app import routing  # see above

        return routing.main(argv[1:])
    if argv == [OPENAPI]:
        from muster.app.describing import print_description

        print_description()
        return 0
    return None


def _serve(args: argparse.Namespace) -> int:
    from muster.app import serve  # a word that is wrong is refused before anything is loaded

    home = Home(args.home)
    if args.role == "leader":
        return serve.lead(home)
    if (args.tls_cert is None) != (args.tls_key is None):
        raise RejectedError(Reason(Code.BAD_SPEC, "--tls-cert", detail="give --tls-cert and --tls-key, or neither"))
    tls = None if args.tls_cert is None else serve.Tls(args.tls_cert, args.tls_key)
    return serve.follow(home, args.host, args.port, tls)


def _parse(argv: list[str]) -> argparse.Namespace:
    others = ", ".join((*LAB_WORDS, TRACE, LEAGUE, *KEEPING_WORDS, NOTIFY, WARM, OPENAPI))
    parser = WordParser(prog="python -m muster.app", epilog=f"also: {others}")
    roles = parser.add_subparsers(dest="role", required=True, metavar="ROLE")
    leader = roles.add_parser("leader", help="decide, journal, dispatch")
    follower = roles.add_parser("follower", help="serve the API")
    for role in (leader, follower):
        role.add_argument("--home", type=Path, help="the home directory (default: MUSTER_HOME, or ~/.muster)")
    follower.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    follower.add_argument("--port", type=_port, default=0, help="the port; 0 keeps the last one if it is free")
    follower.add_argument("--tls-cert", type=Path, help="a certificate (PEM); needed beyond this machine")
    follower.add_argument("--tls-key", type=Path, help="its key (PEM)")
    return parser.parse_args(argv)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port between 0 and {PORT_MAX}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
