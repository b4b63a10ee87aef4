//! Four nginx of different rates as mirrors.

use crate::bench::Bench;
use crate::nginx::Nginx;
use crate::scene::{Scene, same_file};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SIZE: u64 = 16 << 20;
/// Mbit/s of the links of hosts 1 to 4.
const RATES: [u32; 4] = [40, 20, 10, 5];

/// The receiver is host 0.
struct Web {
    scene: Scene,
    ticket: String,
    content: PathBuf,
    _servers: Vec<Nginx>,
}

impl Web {
    /// `None` if namespaces or nginx are not available.
    fn start() -> Option<Self> {
        if !Nginx::is_available() {
            return None;
        }
        let scene = Scene::alone(1 + RATES.len())?;
        let content = scene.noise("image.raw", SIZE);
        let root = content.parent().unwrap().to_owned();
        let mirrors = (1..=RATES.len()).map(|host| format!("http://{}/", Bench::address(host)));
        let mut publish = Command::new(env!("CARGO_BIN_EXE_fontana"));
        publish.arg("publish").args(mirrors.flat_map(|url| ["--web".to_owned(), url]));
        let published = publish.arg(&content).output().unwrap();
        assert!(published.status.success(), "{}", String::from_utf8_lossy(&published.stderr));
        let ticket = String::from_utf8(published.stdout).unwrap().trim().to_owned();
        let servers = (1..).zip(RATES).map(|(host, rate)| serve(&scene, host, rate, &root));
        Some(Self { ticket, content, _servers: servers.collect(), scene })
    }

    /// Receives, and calls `halfway` when half of the ideal time is over. Returns the seconds over
    /// those that the links of all servers take, and the bytes of each mirror.
    fn receive(&self, halfway: impl FnOnce()) -> (f64, Vec<u64>) {
        let ideal = SIZE as f64 * 8e-6 / f64::from(RATES.iter().sum::<u32>());
        let begun = Instant::now();
        let mut reception = self.scene.receive(0, &self.ticket, "--timeout 120");
        std::thread::sleep(Duration::from_secs_f64(ideal / 2.0));
        halfway();
        reception.complete();
        let ratio = begun.elapsed().as_secs_f64() / ideal;
        assert!(same_file(&self.content, &self.scene.received(0).join("image.raw")));
        let mut mirrors: Vec<_> = reception.receiver.all("mirror").collect();
        mirrors.sort_by_key(|mirror| mirror["mirror"].as_str().map(str::to_owned));
        println!("{ratio:.3} of the ideal time; {mirrors:?}");
        (ratio, mirrors.iter().map(|mirror| mirror["bytes"].as_u64().unwrap()).collect())
    }
}

/// Starts nginx on a host whose link has a rate.
fn serve(scene: &Scene, host: usize, rate: u32, root: &Path) -> Nginx {
    scene.bench.shape_sending(host, rate);
    let listen = SocketAddr::new(Bench::address(host).parse::<IpAddr>().unwrap(), 80);
    let server = Nginx::start(scene.bench.command(host, "nginx"), listen, root, None);
    for _ in 0..500 {
        let connect = format!("exec 3<>/dev/tcp/{}/80", listen.ip());
        let mut bash = scene.bench.command(0, "bash");
        if bash.args(["-c", &connect]).stderr(Stdio::null()).status().unwrap().success() {
            return server;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nginx on host {host} does not serve");
}

/// Each brings what its rate allows. Times are printed, and in `docs/benchmarks.md`.
#[test]
fn mirrors_of_different_rates_share_the_work_by_them() {
    let Some(web) = Web::start() else { return };
    let (_, bytes) = web.receive(|| {});
    let all: u64 = bytes.iter().sum();
    assert!(all <= SIZE * 21 / 20, "{bytes:?}");
    assert!(bytes.is_sorted_by(|faster, slower| faster >= slower), "{bytes:?}");
    assert!(bytes.iter().all(|bytes| *bytes > SIZE / 40), "{bytes:?}");
}

/// Its link is down, and no connection ends.
#[test]
fn the_fastest_mirror_may_fall_silent() {
    let Some(web) = Web::start() else { return };
    let (_, bytes) = web.receive(|| web.scene.bench.cut(1));
    assert!(bytes[0] > SIZE / 8, "{bytes:?}");
    assert!(bytes.iter().sum::<u64>() <= SIZE * 21 / 20, "{bytes:?}");
}

/// A receiver of a session without repair symbols lacks one symbol in twenty, scattered over blocks
/// of 10 000. A shelf brings as many symbols as are missing, and hardly any more.
#[test]
fn a_shelf_completes_what_a_session_has_left_out() {
    if !Nginx::is_available() {
        return;
    }
    let Some(scene) = Scene::new(3) else { return };
    let (content, shelf) = (scene.noise("image.raw", 3 * 14_000_000), scene.path("shelf"));
    let mut publish = Command::new(env!("CARGO_BIN_EXE_fontana"));
    publish.args(["publish", "--json", "--block-size", "14000000", "--web"]);
    publish.arg(format!("http://{}/", Bench::address(2)));
    publish.args(["--mirror", "5", "--stretch", "0.4", "--shelf"]).arg(&shelf).arg(&content);
    let published = publish.output().unwrap();
    assert!(published.status.success(), "{}", String::from_utf8_lossy(&published.stderr));
    let published = String::from_utf8(published.stdout).unwrap();
    let published: Vec<Value> =
        published.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let published = published.iter().find(|event| event["event"] == "published").unwrap();
    let manifest = published["path"].as_str().unwrap();

    scene.bench.lose(0, 50);
    // The receiver joins first: it waits for the session.
    let hash = published["manifest"].as_str().unwrap();
    let group = format!("fontana://239.255.77.1:7701/7?manifest={hash}");
    let mut reception = scene.receive(0, &group, "--timeout 60");
    std::thread::sleep(Duration::from_secs(1));
    let options = format!("--open --rate 60M --push 0 --manifest {manifest}");
    let session = scene.send_to("239.255.77.1:7701/7", 1, &options, &content);
    reception.finish(3);
    let summary = reception.summary();
    let missing = summary.number("source_symbols") - summary.number("fresh");
    drop(session);
    assert!((1_000.0..=2_500.0).contains(&missing), "{missing}");

    let _server = serve(&scene, 2, 100, &shelf);
    let ticket = published["ticket"].as_str().unwrap();
    let mut reception = scene.receive(0, ticket, "--timeout 60");
    reception.complete();
    assert!(same_file(&content, &scene.received(0).join("image.raw")));
    let mirror = reception.receiver.last("mirror").unwrap();
    let symbols = mirror["bytes"].as_f64().unwrap() / 1_400.0;
    println!("{symbols} symbols for {missing} that were missing; {mirror}");
    assert_eq!(mirror["shelf"], 5, "{mirror}");
    assert!(symbols <= 1.12 * missing, "{symbols} for {missing}");
}
