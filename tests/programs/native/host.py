"""A Python program that computes with hosted.cpp and ends: ``host.py LIBRARY WAY [SECONDS]``.

Runs under any Python from 3.9 on, which need not have dmlemu.
"""

import ctypes
import os
import signal
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
holding = ctypes.PyDLL(sys.argv[1])  # whose functions are called with the lock of this Python
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0


def in_daemons(function, count):
    """Starts daemon threads, and gives them time to be inside of calls."""
    for _ in range(count):
        threading.Thread(target=function, daemon=True).start()
    time.sleep(0.1)


def ends():
    pass


def exits():
    sys.exit(3)


def exits_at_once():
    os._exit(3)


def a_thread_exits():
    def work():
        library.compute(2)
        sys.exit(4)  # which ends only the thread

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    sys.exit(3)


def raises():
    raise RuntimeError("of the program")


def exits_in_c():
    ctypes.CDLL(None).exit(3)


def daemons_call():
    in_daemons(library.call_until_the_end, 3)
    sys.exit(3)


def a_daemon_waits():
    in_daemons(library.wait_for_ever, 1)
    sys.exit(3)


def forks():
    """The calls of the child fail; it ends as its parent does."""
    in_daemons(library.call_until_the_end, 1)
    child = os.fork()
    if child == 0:
        sys.exit(0 if library.create_fence() & 0xFFFFFFFF == 0x887A0005 else 1)
    sys.exit(3 if os.waitpid(child, 0)[1] == 0 else 4)


def has_packages():
    """Others than dmlemu needs."""
    import cffi
    import numpy

    print(numpy.__version__, cffi.__version__)


def makes_a_mistake():
    library.make_mistake()


def leaves_fences():
    library.leave_fences(20)


def signals_arrive():
    """Handlers of this Python run while it computes: they find their own thread-local values."""
    arrived = []
    signal.signal(signal.SIGALRM, lambda *_: arrived.append(threading.local()))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    wrong = library.compute(20)
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(0)  # the handler of the last signal
    sys.exit(3 if wrong == 0 and arrived else 4)


def a_signal_ends_a_wait():
    """Sent to the process, whose only thread waits inside of a call."""
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    library.wait_for_ever()


def a_handler_runs_during_a_wait():
    """On the thread that is inside of the call, to which the signal is sent."""
    arrived, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)

    def interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        os.read(arrived, 1)  # written by the handler
        library.end_the_wait()

    threading.Thread(target=interrupt).start()
    try:
        library.wait_for_ever()
        time.sleep(1)  # the exception comes before
    except KeyboardInterrupt:
        sys.exit(3)


def a_thread_takes_signals():
    """Blocked everywhere since the first call, and taken by a thread of the program's with sigwait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    def take():
        signal.sigwait([signal.SIGUSR1])
        library.end_the_wait()

    def send():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGUSR1)

    for each in (take, send):
        threading.Thread(target=each).start()
    library.wait_for_ever()
    sys.exit(3)


def a_handler_ends_its_thread():
    library.end_in_handler()


def signals_arrive_during_a_list():
    sys.exit(3 if library.count_signals() > 1 else 4)


def prints_the_time_of_calls():
    """Nanoseconds of a call, of one after a pause, and of a getter in C."""
    library.time_calls.restype = ctypes.c_double
    kinds = ((2000, 0, 0), (50, 1000, 0), (100000, 0, 1))
    print(*(min(library.time_calls(*each) for _ in range(20)) for each in kinds))


def threads():
    """Seven threads compute; an eighth waits for a mutex of theirs, with the lock of this Python."""
    end = time.monotonic() + seconds
    found = []

    def work(compute):
        while time.monotonic() < end:
            found.append(compute(2))

    def wait():
        while time.monotonic() < end:
            holding.wait_for_turn()
            time.sleep(0.001)

    kinds = 4 * [library.compute, library.compute_in_turn]
    workers = [threading.Thread(target=work, args=(each,)) for each in kinds[:7]]
    workers.append(threading.Thread(target=wait))
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    print(f"{sum(found)} wrong")
    sys.exit(3)


if sys.argv[2] == "makes_a_mistake":
    os.environ["DMLEMU_STRICTNESS"] = "debug"
library.start()
if library.compute(2) != 0:
    sys.exit("wrong results")
globals()[sys.argv[2]]()
