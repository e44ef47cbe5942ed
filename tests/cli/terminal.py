"""Runs a command whose standard output and error are a terminal, and prints what comes there."""

import os
import pty
import sys

status = pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 4096))
sys.exit(os.waitstatus_to_exitcode(status))
