"""``python -m dmlemu`` is the ``dmlemu`` command."""

import sys

from dmlemu.cli import main

if __name__ == "__main__":
    sys.exit(main())
