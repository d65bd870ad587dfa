//! A request that was not answered: what that means, and what to do next.

use std::error::Error;
use std::io;

use super::{Client, Place};
use crate::access::AccessError;

/// The two ways to speak to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Client {
    pub(super) fn broken(&self, error: &reqwest::Error) -> AccessError {
        let host = &self.host;
        let cause = innermost(error);
        let scheme = if self.base.scheme() == "https" { Scheme::Https } else { Scheme::Http };
        AccessError::Unavailable(match host {
            Place::Url(_) if scheme == Scheme::Http && answers_otherwise(error) => format!(
                "what answers {host} does not speak HTTP ({cause}); does the host speak https? Try {}",
                self.otherwise("https")
            ),
            Place::Url(_) if scheme == Scheme::Https && answers_without_tls(error) => format!(
                "what answers {host} does not speak TLS ({cause}); does the host speak http? Try {}",
                self.otherwise("http")
            ),
            Place::Socket(_) if error.is_connect() => format!("no host answers {host}; start it with keyrail run"),
            Place::Url(_) if error.is_connect() && cause.contains("certificate") => {
                format!(
                    "the certificate of the host {host} is not trusted: {cause}; name its authority in client.ca_file"
                )
            }
            Place::Url(_) if error.is_connect() => {
                format!("no host answers {host}: {cause}; is it running, and is this its http.listen?")
            }
            _ if error.is_timeout() => {
                format!("the host {host} does not answer; look at its log, or raise api.answer_timeout_ms")
            }
            _ => format!("the connection to the host {host} broke off: {cause}"),
        })
    }

    /// The URL of the host with the other scheme.
    fn otherwise(&self, scheme: &str) -> String {
        let mut url = self.base.clone();
        // Both are schemes of the web, so one may stand for the other.
        let _ = url.set_scheme(scheme);
        url.as_str().trim_end_matches('/').to_string()
    }
}

/// Whether the answer is no HTTP at all: a host that speaks TLS answers a plain request with an alert of TLS.
fn answers_otherwise(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_parse))
}

/// Whether the answer to a TLS greeting is no TLS: a host that speaks plain HTTP calls the greeting a bad request.
fn answers_without_tls(error: &reqwest::Error) -> bool {
    causes(error).filter_map(held).any(|error| matches!(error, rustls::Error::InvalidMessage(_)))
}

/// What TLS has to say in this error. One of the system's kind holds another, and does not count it among its causes.
fn held<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(outer) => held(outer.get_ref()?),
        None => error.downcast_ref(),
    }
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}
