"""What holds for all tests: Ctrl-C reaches the programs that tests start."""

import signal

# a shell starts background jobs with Ctrl-C ignored, and every program they start inherits that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
