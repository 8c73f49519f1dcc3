#!/bin/sh
# run.sh SCRIPT [WORD]...: with a Python that has NumPy, where there is one. STOKER_TEST_PYTHON chooses.
for python in ${STOKER_TEST_PYTHON-python3 /usr/bin/python3} ''; do
    [ -z "$python" ] || ! env LD_PRELOAD= "$python" -c 'import numpy' 2>/dev/null || break
done
exec "${python:-${STOKER_TEST_PYTHON:-python3}}" "$@"
