#!/usr/bin/env bash
# Makes {{name}}.wasm.
cd "$(dirname "$0")" && exec bash keyrail/sdk/build.sh . {{name}}.wasm
