#!/usr/bin/env bash
# Runs the tests natively: no wasm, no host.
cd "$(dirname "$0")" && PYTHONPATH=keyrail/sdk/src exec "${PYTHON:-python3}" -m unittest "$@"
