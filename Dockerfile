# syntax=docker/dockerfile:1
# A host of Keyrail in an image that has the program, certificates, folders to write to, and nothing else: no shell, no
# libraries, no package manager. Needs BuildKit (the default since Docker 23).
#
#   docker build --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" -t keyrail:0.1.0 .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -v keyrail:/var/lib/keyrail keyrail:0.1.0
#
# The release that the workspace is built and tested with.
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-slim-bookworm AS build
WORKDIR /src
COPY . .
# The commit that `keyrail --version` names: .git is not part of the build.
ARG COMMIT=""
# The caches are not part of the image, so the program is copied out in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    KEYRAIL_COMMIT="${COMMIT}" cargo xtask dist --binary /out/keyrail \
 && mkdir -p /out/folders/tmp /out/folders/var/lib/keyrail /out/folders/var/cache/keyrail

FROM scratch
LABEL org.opencontainers.image.title="Keyrail" \
      org.opencontainers.image.description="Runs WebAssembly handlers on keyed events, one at a time and in order per key" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/keyrail /usr/bin/keyrail
# For traces that are sent over HTTPS. What handlers trust is in the program.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/folders/ /
# Compiled handlers are kept only in a folder that nobody else may look into; a mounted volume is not one, a folder that
# the host makes in it is.
ENV KEYRAIL_RUNTIME_CACHE_DIR=/var/cache/keyrail/compiled \
    KEYRAIL_LOG_FORMAT=json
WORKDIR /var/lib/keyrail
# By number: there is no list of users, and Kubernetes' runAsNonRoot wants to see that it is not 0.
USER 65532:65532
# The API listens on loopback until it is given tokens: KEYRAIL_HTTP_LISTEN=0.0.0.0:7411 and KEYRAIL_HTTP_TOKENS_FILE.
EXPOSE 7411
STOPSIGNAL SIGTERM
# The program asks itself, as there is nothing else here that could. Kubernetes does not use this, its probes ask over HTTP.
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 CMD ["/usr/bin/keyrail", "health"]
ENTRYPOINT ["/usr/bin/keyrail"]
CMD ["run"]
