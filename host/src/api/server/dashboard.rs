//! The dashboard's files, which are part of the program. They hold no data, so nobody needs a token for them.

use std::sync::Arc;

use aide::axum::ApiRouter;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use rust_embed::RustEmbed;

use super::super::wire::ErrorKind;
use super::{Api, Failed};
use crate::hash::hex;

/// What a page of ours may load and do: its own files and this API, in no other site's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(RustEmbed)]
#[folder = "../dashboard"]
struct Files;

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .route("/", get(async || Redirect::temporary("/ui/")))
        .route("/ui", get(async || Redirect::permanent("/ui/")))
        .route("/ui/", get(async |headers: HeaderMap| file("index.html", &headers)))
        .route("/ui/{*path}", get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)))
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(file) = Files::get(path) else {
        return Failed::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, "no such file of the dashboard".into())
            .into_response();
    };
    let tag = format!("\"{}\"", hex(&file.metadata.sha256_hash()[..16]));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let body = if known { StatusCode::NOT_MODIFIED.into_response() } else { file.data.into_response() };
    let mut response = body;
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, file.metadata.mimetype());
    set(header::ETAG, &tag);
    // Asked for again each time, and answered with "not modified": a new release shows at once.
    set(header::CACHE_CONTROL, "no-cache");
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    response
}
