# SPDX-License-Identifier: GPL-2.0-only
"""A command in the foreground of a terminal of its own: what it shows there, the keys it gets, its exit status."""
import os
import pty
import select
import signal
import time


class Terminal:
    """Starts the command. When the leader of a session exits, the kernel throws away what nobody has read from its
    terminal yet: the command is therefore no leader, it has a parent that waits for wait()."""

    def __init__(self, *argv, cwd=None):
        result, hold = os.pipe(), os.pipe()
        leader, self._fd = pty.fork()
        if leader == 0:
            _lead([str(a) for a in argv], cwd, result[1], hold)
        os.close(result[1])
        os.close(hold[0])
        self._leader, self._ended, self._hold = leader, result[0], hold[1]

    def press(self, keys):
        os.write(self._fd, keys)

    def runs(self):
        return not select.select([self._ended], [], [], 0)[0]

    def read(self, until=None, timeout=20.0):
        """What is shown from here on: to the text, or to the end of the command where the text is None."""
        seen, end = b"", time.monotonic() + timeout
        while until is None or until not in seen:
            ended = not self.runs()
            ready = select.select([self._fd] + ([] if ended else [self._ended]), [], [],
                                  0 if ended else max(0.0, end - time.monotonic()))[0]
            if self._fd in ready:
                seen += os.read(self._fd, 65536)
            elif ended:
                break
            else:
                assert ready, f"waited in vain for {until!r} on the terminal, which shows {seen!r}"
        return seen

    def take(self):
        """What is shown and was not read yet, if anything is."""
        return os.read(self._fd, 65536) if select.select([self._fd], [], [], 0)[0] else b""

    def command(self):
        """The pid of the command, which is the only child of the leader."""
        with open(f"/proc/{self._leader}/task/{self._leader}/children", encoding="ascii") as children:
            return int(children.read())

    def wait(self):
        """The exit status, negative for a signal, once the command has ended. The terminal is gone afterwards."""
        self.read()
        status = os.read(self._ended, 16)
        os.close(self._hold)
        os.waitpid(self._leader, 0)
        os.close(self._ended)
        os.close(self._fd)
        return int(status)


def _lead(argv, cwd, result, hold):
    """In the leader: runs the command, tells its status, and stays until the other end of hold is closed."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        command = os.fork()
        if command == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            if cwd:
                os.chdir(cwd)
            os.execv(argv[0], argv)
        os.close(hold[1])
        status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        os.write(result, str(status).encode())
        os.read(hold[0], 1)
    finally:
        os._exit(127)
