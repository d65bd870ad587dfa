#!/bin/sh
# Makes what the secrets of deploy/compose.yml name, in deploy/compose/secrets, unless it is there:
#   tokens.toml       who may use the hosts' API; it has hashes only
#   ops-token         a token that may do everything, for you: export KEYRAIL_TOKEN="$(cat deploy/compose/secrets/ops-token)"
#   metrics-token     a token that may read, for Prometheus
#   grafana-password  of Grafana's user `admin`
# KEYRAIL=keyrail uses a program that is installed instead of the image.
set -eu
secrets="$(cd "$(dirname "$0")" && pwd)/secrets"
mkdir -p "$secrets"
# Nobody else comes through the folder; the files are readable for the containers' users, into which they are mounted one by one.
chmod 700 "$secrets"
umask 022

keyrail() {
  if [ -n "${KEYRAIL:-}" ]; then
    "$KEYRAIL" "$@" --file "$secrets/tokens.toml"
  else
    docker run --rm --read-only --cap-drop ALL --user "$(id -u):$(id -g)" --volume "$secrets:/secrets" keyrail:0.1.0 \
      "$@" --file /secrets/tokens.toml
  fi
}

if [ -e "$secrets/tokens.toml" ]; then
  echo "$secrets/tokens.toml is there; nothing is changed" >&2
  exit 0
fi
keyrail token ops --role publish --role read --role operate --role deploy > "$secrets/ops-token"
keyrail token prometheus --role read > "$secrets/metrics-token"
head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$secrets/grafana-password"
chmod 644 "$secrets/tokens.toml"
chmod 600 "$secrets/ops-token"
echo "made $secrets; use them with: export KEYRAIL_TOKEN=\"\$(cat $secrets/ops-token)\"" >&2
