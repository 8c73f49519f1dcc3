#!/bin/sh
# Runs a test in Python, or says that there is none. Nothing that is built or used needs it.
#   python.sh SCRIPT [WORD]...
python=${STOKER_TEST_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "SKIP: there is no $python to run this test with (Debian: python3)"
    exit 77
fi
exec "$python" "$@"
