"""The lock of one GPU; built from emulator/lock.c."""

from collections.abc import Callable

class Lock:
    """Serializes the public calls of one GPU; reentrant, for ``with`` only.

    Entering and leaving are C code: a signal handler may raise at any moment in Python code, and the lock
    must then be either free or held by a ``with`` that releases it.
    """

    @property
    def waiting(self) -> int:
        """The number of threads that wait to enter."""

    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""

    def call_if_free(self, function: Callable[[], None]) -> None:
        """Calls the function with the lock held; does nothing if any thread holds it.

        For finalizers: the garbage collector may run them while their thread holds a lock for which a thread
        that holds this one waits.
        """

    def give_way(self) -> bool:
        """Lets the threads that wait enter, then takes the lock again; False: none waits, or the lock is held
        twice.

        Leaving and entering again would not do: a lock that is free goes to the thread that runs, and those
        that wait take longer to wake up.  The lock is held after an exception, too.
        """

    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...
