#!/usr/bin/env bash
# Builds a handler in TypeScript or JavaScript into a component: build.sh DIR OUT.wasm
#
# DIR has handler.ts (or handler.mts, handler.js, handler.mjs), whose default export is the handler. esbuild bundles it with
# the SDK and with what it imports from DIR/node_modules; componentize-qjs puts the bundle into QuickJS and keeps a snapshot
# of memory after the modules were loaded. Types are not checked here: that is tsc's.
#
# The tools are installed once, pinned by tools/package-lock.json, under ${KEYRAIL_TOOLS:-~/.cache/keyrail/tools}.
set -euo pipefail

if [ $# -ne 2 ] || [ ! -d "$1" ]; then
  echo "usage: build.sh DIR OUT.wasm (DIR is a folder with handler.ts or handler.js)" >&2
  exit 2
fi
sdk=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$1" && pwd)
out=$2
case $out in /*) ;; *) out=$PWD/$out ;; esac

handler=
for name in handler.ts handler.mts handler.js handler.mjs; do
  if [ -f "$project/$name" ]; then handler=$name; break; fi
done
if [ -z "$handler" ]; then
  echo "no handler.ts and no handler.js in $project" >&2
  exit 1
fi

# In the repository the contract is at wit/, in a project at keyrail/wit/.
contract=$sdk/../wit
[ -d "$contract" ] || contract=$sdk/../../wit

if ! command -v npm >/dev/null; then
  echo "npm is not there: install Node.js 20 or later" >&2
  exit 1
fi
# A changed lock is another folder.
version=$(cksum < "$sdk/tools/package-lock.json" | cut -d ' ' -f 1)
tools=${KEYRAIL_TOOLS:-$HOME/.cache/keyrail/tools}/js-$version
if [ ! -d "$tools" ]; then
  echo "installing the tools into $tools" >&2
  mkdir -p "$(dirname "$tools")"
  fresh=$(mktemp -d "$tools.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  cp "$sdk/tools/package.json" "$sdk/tools/package-lock.json" "$fresh"
  (cd "$fresh" && npm ci --no-fund --no-audit --loglevel=error >&2)
  # A rename that another build was quicker with fails: its folder is the same.
  node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$fresh" "$tools" 2>/dev/null || [ -d "$tools" ]
fi

work=$(mktemp -d)
trap 'rm -rf "$work" "${fresh:-}"' EXIT
mkdir -p "$work/wit/deps/keyrail"
cp -R "$sdk/wit/." "$work/wit"
cp "$contract"/*.wit "$work/wit/deps/keyrail"

# The SDK's side comes first: it gives the handler's modules what QuickJS lacks, while they load too.
cat > "$work/entry.js" <<ENTRY
import { guest as keyrail } from "$sdk/src/component.ts";
import handler from "$project/$handler";
export const guest = keyrail(handler);
ENTRY
(cd "$project" && "$tools/node_modules/.bin/esbuild" "$work/entry.js" --bundle --format=esm --platform=neutral \
  --main-fields=module,main --conditions=import --target=es2023 --log-level=warning \
  --alias:@keyrail/guest="$sdk/src/index.ts" '--external:keyrail:*' '--external:wasi:*' --outfile="$work/handler.js")

mkdir -p "$(dirname "$out")"
if ! (cd "$work" && RUST_BACKTRACE=0 "$tools/node_modules/.bin/componentize-qjs" --sync --wit wit --world component --js handler.js \
  --output component.wasm > log 2>&1); then
  cat "$work/log" >&2
  exit 1
fi
# Renamed into place, so that a host that watches the file never sees half of it.
mv "$work/component.wasm" "$out.tmp" && mv "$out.tmp" "$out"
echo "$out"
