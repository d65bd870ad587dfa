//! The body of a response, up to a size and with a longest wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::Error;

/// Ends with an error past its size, or when nothing comes for too long.
pub(super) struct ResponseBody {
    incoming: Incoming,
    max_bytes: u64,
    read_bytes: u64,
    wait: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    _under_way: Arc<()>,
}

impl ResponseBody {
    pub(super) fn new(incoming: Incoming, max_bytes: u64, wait: Duration, under_way: Arc<()>) -> Self {
        Self { incoming, max_bytes, read_bytes: 0, wait, waiting: None, _under_way: under_way }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(Some(Ok(frame))) => {
                self.waiting = None;
                self.read_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.read_bytes > self.max_bytes {
                    return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(self.max_bytes)))));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending => {
                let wait = self.wait;
                let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(wait)));
                waiting.as_mut().poll(context).map(|()| Some(Err(Error::ConnectionReadTimeout)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
