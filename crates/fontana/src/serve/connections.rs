//! The connections of a web server, and their limits.

use super::counters::Counters;
use super::meter::{Meter, Metered, PATIENCE};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Clients that are served at a time. Others wait. A part of each answer [waits](super::body).
pub(super) const MAX_CLIENTS: usize = 64;
/// Time after which another connection is to give way to a client that still waits.
const GIVE_WAY_EVERY: Duration = Duration::from_secs(1);
/// Time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes and fields of the head of a request. The request line of a receiver that wants symbols of
/// 255 blocks has less than 8 kB.
const MAX_HEAD: usize = 16 << 10;
const MAX_FIELDS: usize = 64;
/// Wait after a connection could not be accepted: the process may have no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves connections until it is dropped. While all places are taken, the next client waits, and
/// those after it in the queue of the system. The connections that are open for longest give way:
/// each ends with its present answer.
pub(super) async fn serve(listener: TcpListener, router: Router, counters: Arc<Counters>) {
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    let give_way = Arc::new(Notify::new());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let place = match Arc::clone(&clients).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                Counters::add(&counters.waited, 1);
                let Some(place) = wait_for_place(&clients, &give_way).await else { return };
                place
            }
        };
        let client = Client { _place: place, give_way: Arc::clone(&give_way) };
        tokio::spawn(serve_client(stream, router.clone(), Arc::clone(&counters), client));
    }
}

/// Waits until a place is free. `None`: there will be none.
async fn wait_for_place(
    clients: &Arc<Semaphore>,
    give_way: &Notify,
) -> Option<OwnedSemaphorePermit> {
    loop {
        give_way.notify_one();
        let place = Arc::clone(clients).acquire_owned();
        if let Ok(place) = tokio::time::timeout(GIVE_WAY_EVERY, place).await {
            return place.ok();
        }
    }
}

/// The place of a connection.
struct Client {
    _place: OwnedSemaphorePermit,
    /// Wakes the connection that is to give way.
    give_way: Arc<Notify>,
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

async fn serve_client(stream: TcpStream, router: Router, counters: Arc<Counters>, client: Client) {
    counters.clients.fetch_add(1, Ordering::Relaxed);
    let _ = stream.set_nodelay(true);
    let meter = Arc::new(Meter::default());
    let io = TokioIo::new(Metered {
        stream,
        meter: Arc::clone(&meter),
        counters: Arc::clone(&counters),
    });
    let router = router.layer(axum::Extension(Arc::clone(&meter)));
    let mut connection = pin!(http().serve_connection(io, TowerToHyperService::new(router)));
    let mut is_too_slow = pin!(meter.is_too_slow(PATIENCE));
    let mut gives_way = pin!(client.give_way.notified());
    let mut is_last = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection has ended");
                }
                break;
            }
            () = is_too_slow.as_mut() => {
                Counters::add(&counters.slow, 1);
                break;
            }
            () = gives_way.as_mut(), if !is_last => {
                is_last = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    counters.clients.fetch_sub(1, Ordering::Relaxed);
}
