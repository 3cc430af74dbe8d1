"""The ``dmlemu`` command, also as ``python -m dmlemu``."""

import signal
import sys


def main() -> int:
    """Ctrl-C ends it with 130 while its modules are imported, too; once it ends, nothing interrupts it."""
    try:
        from dmlemu.cli import main as command

        code = command()
    except KeyboardInterrupt:
        code = 130
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
