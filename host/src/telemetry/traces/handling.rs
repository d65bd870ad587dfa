//! One try of an event in its trace.

use std::borrow::Cow;
use std::str::FromStr;

use keyrail_ordering::{Event, TRACEPARENT, TRACESTATE, TraceContext, trace_headers};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use crate::clock;

/// How much of an error a span tells.
const ERROR_MAX_CHARS: usize = 300;

/// See the module. Dropped, its span ends.
#[derive(Default)]
pub(crate) struct Handling {
    recording: Option<Box<Recording>>,
    /// What emitted events come from; none to hand on what came in.
    context: Option<TraceContext>,
    trace_id: Option<u128>,
}

struct Recording {
    span: Span,
    tracer: SdkTracer,
}

impl Handling {
    /// Not recorded here.
    pub(super) fn passed(incoming: Option<TraceContext>) -> Self {
        Self { trace_id: incoming.map(|incoming| incoming.trace_id), ..Self::default() }
    }

    /// It was decided that what begins here is not recorded: those that come after are told.
    pub(super) fn not_sampled() -> Self {
        let (trace_id, span_id) = (clock::random_bits().max(1), (clock::random_bits() as u64).max(1));
        Self { context: Some(TraceContext { trace_id, span_id, is_sampled: false }), ..Self::default() }
    }

    pub(super) fn recorded(span: Span, tracer: SdkTracer) -> Self {
        let context = context_of(&span);
        let recording = Some(Box::new(Recording { span, tracer }));
        Self { recording, context: Some(context), trace_id: Some(context.trace_id) }
    }

    /// The trace, for log lines; none if there is none that anybody may find.
    pub(crate) fn trace_id(&self) -> Option<u128> {
        self.trace_id
    }

    /// What emitted events come from, see [`hand_on`].
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// Begins the span of the commit.
    pub(crate) fn commit(&self) -> Committing {
        let begin = |recording: &Recording| {
            let parent = Context::new().with_remote_span_context(recording.span.span_context().clone());
            let builder = SpanBuilder::from_name("commit").with_kind(SpanKind::Internal);
            recording.tracer.build_with_context(builder, &parent)
        };
        Committing(self.recording.as_deref().map(begin))
    }

    /// The try failed.
    pub(crate) fn failed(&mut self, kind: &'static str, error: &str) {
        if let Some(recording) = &mut self.recording {
            fail(&mut recording.span, kind, error);
        }
    }

    /// The host could not serve the try, which does not count.
    pub(crate) fn put_off(&mut self, why: &str) {
        if let Some(recording) = &mut self.recording {
            recording.span.set_attribute(KeyValue::new("keyrail.put_off", cut(why)));
        }
    }
}

/// A trace's id as log lines have it.
pub(crate) fn hex(trace_id: u128) -> String {
    format!("{trace_id:032x}")
}

/// The span of a commit. Dropped, it ends.
pub(crate) struct Committing(Option<Span>);

impl Committing {
    /// The broker did not take it.
    pub(crate) fn failed(&mut self, error: &impl ToString) {
        if let Some(span) = &mut self.0 {
            fail(span, "commit", &error.to_string());
        }
    }
}

fn fail(span: &mut Span, kind: &'static str, error: &str) {
    span.set_attribute(KeyValue::new("error.type", kind));
    span.set_status(Status::Error { description: Cow::Owned(cut(error)) });
}

fn cut(text: &str) -> String {
    text.chars().take(ERROR_MAX_CHARS).collect()
}

/// Gives an emitted event the trace of the event that caused it. What the guest said itself of a trace stands only if there
/// is none.
pub(crate) fn hand_on(headers: &mut Vec<(String, String)>, cause: &Event, context: Option<TraceContext>) {
    let handed_on: Vec<_> = match context {
        Some(context) => {
            let notes = trace_headers(cause).filter(|(name, _)| name == TRACESTATE).cloned();
            std::iter::once((TRACEPARENT.to_string(), context.to_string())).chain(notes).collect()
        }
        None => trace_headers(cause).cloned().collect(),
    };
    if !handed_on.is_empty() {
        headers.retain(|(name, _)| name != TRACEPARENT && name != TRACESTATE);
        headers.extend(handed_on);
    }
}

/// The context that an event came with, as the SDK has it.
pub(super) fn remote(context: TraceContext, event: &Event) -> Context {
    let state = event.headers.iter().find(|(name, _)| name == TRACESTATE);
    let state = state.and_then(|(_, value)| TraceState::from_str(value).ok()).unwrap_or_default();
    let flags = if context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace_id, span_id) = (TraceId::from(context.trace_id), SpanId::from(context.span_id));
    Context::new().with_remote_span_context(SpanContext::new(trace_id, span_id, flags, true, state))
}

pub(super) fn context_of(span: &Span) -> TraceContext {
    let context = span.span_context();
    TraceContext {
        trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(context.span_id().to_bytes()),
        is_sampled: context.is_sampled(),
    }
}
