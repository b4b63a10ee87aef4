//! The connections of a web server, and their limits.

use super::counters::Counters;
use super::meter::{Meter, Metered, PATIENCE};
use super::routes::status;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Clients that are served at a time. Each may have [4 MiB](super::body) waiting.
const MAX_CLIENTS: usize = 64;
/// Clients that are told to come again at a time. Others are closed at once.
const MAX_REFUSALS: usize = 64;
/// When a client that is refused should come again, and how long it may take to read that.
const RETRY_AFTER: &str = "5";
const REFUSAL_TIME: Duration = Duration::from_secs(5);
/// Time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes and fields of the head of a request. The request line of a receiver that wants symbols of
/// 255 blocks has less than 8 kB.
const MAX_HEAD: usize = 16 << 10;
const MAX_FIELDS: usize = 64;
/// Wait after a connection could not be accepted: the process may have no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves connections until it is dropped.
pub(super) async fn serve(listener: TcpListener, router: Router, counters: Arc<Counters>) {
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let counters = Arc::clone(&counters);
        if let Ok(permit) = Arc::clone(&clients).try_acquire_owned() {
            tokio::spawn(serve_client(stream, router.clone(), counters, permit));
            continue;
        }
        Counters::add(&counters.refused, 1);
        if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(REFUSAL_TIME, refuse(stream)).await;
                drop(permit);
            });
        }
    }
}

/// Holds the limits of each connection.
fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_FIELDS);
    http
}

async fn serve_client(
    stream: TcpStream,
    router: Router,
    counters: Arc<Counters>,
    permit: OwnedSemaphorePermit,
) {
    counters.clients.fetch_add(1, Ordering::Relaxed);
    let _ = stream.set_nodelay(true);
    let meter = Arc::new(Meter::default());
    let io = TokioIo::new(Metered {
        stream,
        meter: Arc::clone(&meter),
        counters: Arc::clone(&counters),
    });
    let router = router.layer(axum::Extension(Arc::clone(&meter)));
    let connection = http().serve_connection(io, TowerToHyperService::new(router));
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection has ended");
            }
        }
        () = meter.is_too_slow(PATIENCE) => Counters::add(&counters.slow, 1),
    }
    counters.clients.fetch_sub(1, Ordering::Relaxed);
    drop(permit);
}

/// Tells a client to come again.
async fn refuse(stream: TcpStream) {
    let answer = |_: Request<Incoming>| async {
        let mut response: Response<Body> = status(StatusCode::SERVICE_UNAVAILABLE);
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(response)
    };
    let _ = http().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}
