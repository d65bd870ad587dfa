#!/usr/bin/env bash
# Builds a handler in Python into a component: build.sh DIR OUT.wasm
#
# DIR has handler.py, whose variable `handler` is the handler. Packages that it imports are found in DIR and in DIR/vendor
# (pip install --target vendor …; pure Python only). componentize-py loads them all with CPython and keeps a snapshot of
# memory: a module that is not imported while handler.py loads is not there later.
#
# The tool is installed once, pinned by tools.txt, under ${KEYRAIL_TOOLS:-~/.cache/keyrail/tools}.
set -euo pipefail

if [ $# -ne 2 ] || [ ! -d "$1" ]; then
  echo "usage: build.sh DIR OUT.wasm (DIR is a folder with handler.py)" >&2
  exit 2
fi
sdk=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$1" && pwd)
out=$2
case $out in /*) ;; *) out=$PWD/$out ;; esac
if [ ! -f "$project/handler.py" ]; then
  echo "no handler.py in $project" >&2
  exit 1
fi

# In the repository the contract is at wit/, in a project at keyrail/wit/.
contract=$sdk/../wit
[ -d "$contract" ] || contract=$sdk/../../wit

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "$python is not Python 3.11 or later: install it, or say PYTHON=…" >&2
  exit 1
fi
version=$(sed -n 's/^componentize-py==//p' "$sdk/tools.txt")
tools=${KEYRAIL_TOOLS:-$HOME/.cache/keyrail/tools}/python-$version
if [ ! -d "$tools" ]; then
  echo "installing componentize-py $version into $tools" >&2
  mkdir -p "$(dirname "$tools")"
  fresh=$(mktemp -d "$tools.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  "$python" -m pip install --quiet --root-user-action ignore --target "$fresh" --requirement "$sdk/tools.txt" >&2
  # A rename that another build was quicker with fails: its folder is the same.
  "$python" -c 'import os, sys; os.rename(*sys.argv[1:])' "$fresh" "$tools" 2>/dev/null || [ -d "$tools" ]
fi

work=$(mktemp -d)
trap 'rm -rf "$work" "${fresh:-}"' EXIT
# CPython writes its byte code beside what it loads: a copy keeps the SDK as it is.
cp -R "$sdk/component" "$sdk/src" "$work"
paths=(--python-path component --python-path src --python-path "$project")
[ ! -d "$project/vendor" ] || paths+=(--python-path "$project/vendor")
# An empty environment in place of the caller's: what is in a component must not depend on what is installed here.
mkdir -p "$work/none/site-packages"
run='import sys; from componentize_py import script; sys.exit(script())'
if ! (cd "$work" && VIRTUAL_ENV=$work/none RUST_BACKTRACE=0 PYTHONPATH=$tools "$python" -c "$run" --quiet \
  --wit-path "$contract" --world handler componentize keyrail_component "${paths[@]}" --output component.wasm > log 2>&1); then
  cat "$work/log" >&2
  exit 1
fi
mkdir -p "$(dirname "$out")"
# Renamed into place, so that a host that watches the file never sees half of it.
mv "$work/component.wasm" "$out.tmp" && mv "$out.tmp" "$out"
echo "$out"
