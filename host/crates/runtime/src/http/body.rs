//! Bodies: that of a response, up to a size and with a longest wait; and those that are whole before they go on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::Error;

use super::Io;
use super::exchange::HttpFault;

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

/// A response's body that was read to its end.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    /// Why it broke off.
    pub(super) broke_off: Option<HttpFault>,
}

/// Reads a response, with the connection kept going beside it.
pub(super) async fn whole(mut body: super::Body, connection: Io) -> Whole {
    let mut bytes = BytesMut::new();
    let result = {
        let mut read = std::pin::pin!(collect(&mut body, &mut bytes));
        tokio::select! {
            biased;
            result = &mut read => result,
            // What it brought is still there to be read.
            _ = Pin::from(connection) => read.await,
        }
    };
    Whole { bytes: bytes.freeze(), broke_off: result.err().map(|error| HttpFault::from(&error)) }
}

/// Reads a request, up to a size.
pub(super) async fn whole_request(body: super::Body, max_bytes: u64) -> Result<Bytes, Error> {
    let mut bytes = BytesMut::new();
    let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let mut limited = http_body_util::Limited::new(body, max);
    while let Some(frame) = limited.frame().await {
        let frame = frame.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(_) => Error::HttpRequestBodySize(Some(max_bytes)),
        })?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

async fn collect(body: &mut super::Body, bytes: &mut BytesMut) -> Result<(), Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(())
}

/// A body that is there, and perhaps breaks off.
pub(super) struct KeptBody {
    bytes: Option<Bytes>,
    broke_off: Option<HttpFault>,
    hint: SizeHint,
    _under_way: Option<Arc<()>>,
}

impl KeptBody {
    /// Until it is read the request counts as under way, as one that is read from the network does.
    pub(super) fn of_response(bytes: Bytes, broke_off: Option<HttpFault>, under_way: Arc<()>) -> Self {
        Self { bytes: Some(bytes), broke_off, hint: SizeHint::default(), _under_way: Some(under_way) }
    }

    /// With what was known of its size before it was whole: that decides how it is sent.
    pub(super) fn of_request(bytes: Bytes, hint: SizeHint) -> Self {
        Self { bytes: Some(bytes), broke_off: None, hint, _under_way: None }
    }

    pub(super) fn boxed(self) -> super::Body {
        self.boxed_unsync()
    }
}

impl Body for KeptBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(bytes) = self.bytes.take().filter(|bytes| !bytes.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        Poll::Ready(self.broke_off.take().map(|fault| Err(fault.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.broke_off.is_none() && self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
