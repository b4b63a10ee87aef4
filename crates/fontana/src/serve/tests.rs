//! Requests to a site whose only worker is busy, or not.

use super::connections::{MAX_CLIENTS, serve};
use super::counters::Counters;
use super::draw::{Draw, NoDraw};
use super::files::ServedFiles;
use super::meter::Meter;
use super::routes::router;
use super::sites::{Site, Sites};
use super::symbols::{FreshSymbols, SymbolMemory};
use crate::mirrored::MirroredContent;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use fontana_wire::{FreshRequest, FreshStart};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A site with a file of some blocks of 256 KiB, and one worker.
struct Served {
    site: Arc<Site>,
    symbols: Arc<FreshSymbols>,
    _directory: tempfile::TempDir,
}

impl Served {
    fn new(blocks: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, fontana_testing::noise(blocks << 18, 1)).unwrap();
        let content = MirroredContent::describe(&[path], 256 << 10, 1).unwrap();
        let memory = SymbolMemory { runs: 64 << 20, solved: 64 << 20, worker: 64 << 20 };
        let (start, counters) = (FreshStart::draw(7), Arc::<Counters>::default());
        let of_site = Arc::clone(&counters);
        let symbols = FreshSymbols::new(&content, start, memory, 1, counters).unwrap();
        let (hash, symbols) = (content.hash(), Arc::new(symbols));
        let site = Arc::new(Site {
            hash,
            manifest: (content.file_name(), content.file_bytes().into()),
            head: None,
            files: ServedFiles::new(&content),
            symbols: Some(Arc::clone(&symbols)),
            counters: of_site,
            waiting_bytes: 4 << 20,
        });
        Self { site, symbols, _directory: directory }
    }

    /// The answer to a request for symbols of the file.
    async fn request(&self, query: &str) -> Response {
        let router = router(Sites::of(&self.site)).layer(axum::Extension(Arc::<Meter>::default()));
        let uri = format!("/f/{}/1?{query}", self.site.hash);
        let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
        TowerToHyperService::new(router).call(request).await.unwrap()
    }

    fn encoded(&self) -> u64 {
        self.site.counters.progress().encoded_symbols
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn a_request_ends_with_its_client_while_it_waits() {
    let served = Served::new(8);
    runtime().block_on(async {
        let busy = Arc::clone(&served.symbols.workers).acquire_owned().await.unwrap();
        let mut answers = Vec::new();
        for number in 0..80 {
            answers.push(served.request(&format!("blocks={}:131072", number % 8)).await);
        }
        tokio::task::yield_now().await;
        assert!(Arc::strong_count(&served.symbols) > 80, "they wait");
        drop(answers);
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        // That of the site, and that of the test.
        assert_eq!(Arc::strong_count(&served.symbols), 2, "no request waits");
        drop(busy);
        let _free = served.symbols.workers.acquire().await.unwrap();
        assert_eq!(served.encoded(), 0);
    });
}

#[test]
fn numbers_that_were_not_reached_are_refused() {
    let served = Served::new(2);
    runtime().block_on(async {
        served.symbols.run(1, 1, 0).await.unwrap();
        let draw =
            |query: &str| Draw::new(&served.symbols, 1, &FreshRequest::parse(query).unwrap()).err();
        assert_eq!(draw("start=0"), None);
        assert_eq!(draw("blocks=0:5,1:5:64"), None);
        assert_eq!(draw("blocks=1:5:65"), Some(NoDraw::NotReached));
        assert_eq!(draw("start=8388607&blocks=0:131072"), Some(NoDraw::NotReached));
        assert_eq!(draw("blocks=2:5"), Some(NoDraw::NotThere));
        let refused = served.request("start=8388607&blocks=0:131072").await;
        assert_eq!(refused.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(served.encoded(), 64);
    });
}

/// The block that needs no worker is sent while the other one waits for it.
#[test]
fn symbols_that_are_computed_come_first() {
    let served = Served::new(2);
    runtime().block_on(async {
        served.symbols.run(1, 1, 0).await.unwrap();
        let _busy = Arc::clone(&served.symbols.workers).acquire_owned().await.unwrap();
        let request = FreshRequest::parse("blocks=0:64,1:64").unwrap();
        let mut draw = Draw::new(&served.symbols, 1, &request).unwrap();
        let frames = draw.next().await.unwrap().unwrap();
        assert_eq!(frames.first(), Some(&1), "its block");
    });
}

/// Asks for the manifest on a connection, which may be used again.
fn ask_for_manifest(site: &Site, stream: &mut TcpStream) {
    write!(stream, "GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", site.manifest.0).unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(&site.manifest.1) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "an end before the end");
        answer.extend_from_slice(&buffer[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_client_for_which_no_place_is_left_waits_until_one_gives_way() {
    let served = Served::new(1);
    let site = &served.site;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve(listener, router(Sites::of(site)), Arc::clone(&site.counters)));
    let connect = || {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        ask_for_manifest(site, &mut client);
        client
    };
    let mut clients: Vec<_> = (0..MAX_CLIENTS).map(|_| connect()).collect();
    for number in 0..2 {
        clients.push(connect());
        // The connection that was open for longest has ended, and the next one has not.
        assert_eq!(clients[number].read(&mut [0]).unwrap(), 0);
        ask_for_manifest(site, &mut clients[number + 1]);
    }
    assert_eq!(site.counters.progress().waited, 2);
}
