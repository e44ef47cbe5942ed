"""Runs a command with a terminal as standard output and error, and prints the terminal's output."""

import os
import pty
import sys

status = pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 4096))
sys.exit(os.waitstatus_to_exitcode(status))
