"""The handler of the conformance suite: the same actions in every language, driven by `tests/tests/conformance.rs`."""

import os
import time

from keyrail import Context, EmitError, EventHandler, Reject, Retry, message


@message(category="conformance")
class Step:
    key: str
    action: str
    name: str | None = None
    text: str | None = None
    count: int | None = None


@message(category="conformance-out")
class Echo:
    """Declared by the handler `conformance-sink`."""

    key: str
    text: str
    nth: int


@message(category="nowhere")
class Nothing:
    key: str


handler = EventHandler(
    name="conformance",
    version="1.0.0",
    sequential_by="key",
    options={"retry-attempts-max": "3", "retry-backoff-base-ms": "1"},
)


@handler.on
def step(event: Step, ctx: Context) -> None:
    said = event.text or ""
    name = event.name or ""
    count = event.count or 0
    match event.action:
        case "append":
            ctx.state.put_text("log", f"{ctx.state.get_text('log') or ''}{said}\n")
        case "put":
            ctx.state.put_text(name, said)
        case "remove":
            ctx.state.remove(name)
        case "binary":
            binary(ctx)
        case "emit":
            for nth in range(count):
                ctx.emit(Echo(event.key, said, nth), headers={"conformance": "yes"})
        case "emit-bad":
            emit_bad(ctx)
        case "retry":
            if ctx.event.attempt <= count:
                ctx.state.put_text("dropped", "x")
                raise Retry("not yet", after_ms=1)
            ctx.state.put_text("attempts", str(ctx.event.attempt))
        case "reject":
            raise Reject(said)
        case "trap":
            raise RuntimeError("asked to trap")
        case "spin":
            while True:
                pass
        case "grow":
            kept = []
            while True:
                kept.append(bytearray(1 << 20))
        case "log":
            ctx.log.write("info", said, "conformance")
            print(said)
        case "context":
            context(ctx)
        case "clock":
            ctx.state.put_text("clock", str(time.time_ns() // 1_000_000))
            ctx.state.put_text("random", os.urandom(8).hex())
        case action:
            raise Reject(f"unknown action: {action}")


def binary(ctx: Context) -> None:
    every = bytes(range(256))
    before = ctx.state.get_bytes("bytes")
    if before is None:
        ctx.state.put_bytes("bytes", every)
    elif before != every:
        raise Reject("bytes differ")
    else:
        ctx.state.put_bytes("bytes-again", every[::-1])


def emit_bad(ctx: Context) -> None:
    try:
        ctx.emit(Nothing("k"))
    except EmitError:
        pass  # The refusal fails the event all the same.


def context(ctx: Context) -> None:
    event = ctx.event
    names = ["id", "category", "name", "version", "key", "epoch", "sequence", "generation", "attempt"]
    members = {name: getattr(event, name) for name in names}
    ctx.state.put("context", members | {"recordedAt": event.recorded_at_ms, "headers": event.headers})
