//! The OpenAPI document: made from the routes, so that it cannot say what they do not.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::generate::in_context;
use aide::openapi::{
    Info, MediaType, OpenApi, ReferenceOr, RequestBody, Response as Described, SchemaObject, SecurityScheme, StatusCode,
};
use aide::transform::TransformOperation;
use axum::http::header;
use axum::response::IntoResponse;
use axum::{Json, Router, routing};
use schemars::generate::SchemaSettings;
use schemars::{Schema, json_schema};

use super::super::tokens::Role;
use super::super::wire::{ErrorBody, EventBody, EventsAnswer, PublishLine};
use super::Api;

const SCHEME: &str = "token";

const DESCRIPTION: &str = "What applications and operators may ask of a host.\n\n\
Where a host asks for tokens, send one as `Authorization: Bearer TOKEN`; each operation says which role it needs. A failed \
request is answered with `{\"error\": …, \"kind\": …}`; 429 and 503 carry `Retry-After`. Listings come in pages: ask again with \
`cursor` set to `next`, until it is null.";

/// Comes before the first route that is described: what describes them makes JSON Schema of draft 7 by itself, and OpenAPI 3.1
/// takes that of 2020-12 only. It belongs to the thread, and is the same each time.
pub(super) fn begin() {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    in_context(|ctx| ctx.schema = settings.into_generator());
}

/// Writes down that these routes need a token with the role.
pub(super) fn of_role(role: Role, routes: ApiRouter<Arc<Api>>) -> ApiRouter<Arc<Api>> {
    routes.with_path_items(|item| {
        let mut item = item.security_requirement(SCHEME);
        let item_ref = item.inner_mut();
        for operation in [&mut item_ref.get, &mut item_ref.put, &mut item_ref.post].into_iter().flatten() {
            let described = operation.description.take().unwrap_or_default();
            let role = format!("Role: `{}`.", role.as_str());
            operation.description = Some(if described.is_empty() { role } else { format!("{described}\n\n{role}") });
        }
        item
    })
}

/// What an operation is, in the document.
pub(super) fn is(summary: &str) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |operation| operation.summary(summary)
}

/// What an operation answers that is no JSON.
pub(super) fn answers<'t>(
    mut operation: TransformOperation<'t>,
    media: &str,
    description: &str,
) -> TransformOperation<'t> {
    let content = [(media.to_string(), MediaType::default())].into_iter().collect();
    let answer = Described { description: description.into(), content, ..Described::default() };
    let responses = operation.inner_mut().responses.get_or_insert_default();
    responses.responses.insert(StatusCode::Code(200), ReferenceOr::Item(answer));
    operation
}

/// Publishing takes several forms, so its body is described by hand.
pub(super) fn events_operation(operation: TransformOperation<'_>) -> TransformOperation<'_> {
    let mut operation = operation
        .summary("Publish events: all of them or, if one is bad, none")
        .description(
            "Events of one key take effect in the order in which they were published: of one request, in its order. CloudEvents: \
             `type` is `CATEGORY.TYPE`, or the extension `category` names the category; the event's id is `SOURCE#ID`.",
        )
        .response::<200, Json<EventsAnswer>>()
        .response::<207, Json<EventsAnswer>>()
        .response::<422, Json<ErrorBody>>()
        .response::<429, Json<ErrorBody>>()
        .response::<503, Json<ErrorBody>>();
    let one = in_context(|ctx| ctx.schema.subschema_for::<EventBody>());
    let many = in_context(|ctx| ctx.schema.subschema_for::<Vec<EventBody>>());
    let cloud_event: Schema = json_schema!({
        "type": "object",
        "required": ["specversion", "id", "source", "type", "data"],
        "description": "CloudEvents 1.0"
    });
    let cloud_events: Schema = json_schema!({ "type": "array", "items": cloud_event });
    let lines: Schema = json_schema!({ "type": "string", "description": "one event a line" });
    let either: Schema = json_schema!({ "oneOf": [one, many] });
    let forms = [
        ("application/json", either),
        ("application/jsonl", lines),
        ("application/cloudevents+json", cloud_event),
        ("application/cloudevents-batch+json", cloud_events),
    ];
    let content = forms.into_iter().map(|(media, schema)| {
        let schema = Some(SchemaObject { json_schema: schema, external_docs: None, example: None });
        (media.to_string(), MediaType { schema, ..MediaType::default() })
    });
    let body = RequestBody { content: content.collect(), required: true, ..RequestBody::default() };
    operation.inner_mut().request_body = Some(ReferenceOr::Item(body));
    operation
}

/// Publishing without a bound on the whole: lines go in and come out while it is under way.
pub(super) fn lines_operation(operation: TransformOperation<'_>) -> TransformOperation<'_> {
    const LINES: &str = "application/jsonl";
    let operation = operation.summary("Publish a file of any size, line by line").description(
        "Stops at the first bad line unless it is to be left out; what came before it is published. Lines of the answer come          while the body is still sent, so read them meanwhile.",
    );
    let mut operation = answers(
        operation,
        LINES,
        "Lines of the form `PublishLine`. The last is `end`: without it the answer was cut off.",
    );
    // Named above, so it has to be among the schemas.
    let _ = in_context(|ctx| ctx.schema.subschema_for::<PublishLine>());
    let one_a_line =
        json_schema!({ "type": "string", "description": "one event a line, as `POST /v1/events` takes it" });
    let schema = Some(SchemaObject { json_schema: one_a_line, external_docs: None, example: None });
    let content = [(LINES.to_string(), MediaType { schema, ..MediaType::default() })].into_iter().collect();
    let body = RequestBody { content, required: true, ..RequestBody::default() };
    operation.inner_mut().request_body = Some(ReferenceOr::Item(body));
    operation
}

/// The routes, and the document of them at `/openapi.json`.
pub(super) fn documented(routes: ApiRouter<Arc<Api>>) -> Router<Arc<Api>> {
    let mut document = OpenApi {
        info: Info {
            title: "Keyrail".into(),
            description: Some(DESCRIPTION.into()),
            version: env!("CARGO_PKG_VERSION").into(),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let routes = routes.finish_api_with(&mut document, |api| {
        let description = Some("see keyrail token".to_string());
        let (scheme, bearer_format) = ("bearer".to_string(), None);
        let extensions = aide::openapi::OpenApi::default().extensions;
        let scheme = SecurityScheme::Http { scheme, bearer_format, description, extensions };
        api.security_scheme(SCHEME, scheme)
    });
    drop_empty(&mut document);
    // It was made of our own types a line above.
    let text = serde_json::to_string(&document).unwrap_or_default();
    let text: Arc<str> = text.into();
    routes.route(
        "/openapi.json",
        routing::get(async move || ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()),
    )
}

/// Paths under which nothing is described.
fn drop_empty(document: &mut OpenApi) {
    if let Some(paths) = &mut document.paths {
        paths.paths.retain(|_, item| match item {
            ReferenceOr::Item(item) => item.iter().next().is_some(),
            ReferenceOr::Reference { .. } => true,
        });
    }
}
