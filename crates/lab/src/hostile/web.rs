//! What hostile clients send to a server of HTTP, and what hostile mirrors answer. The program
//! sends it: these classes have no virtual time.

use fontana_proto::SplitMix64;
use std::time::Duration;

/// Whom a class attacks over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebAttack {
    /// A server: impossible and damaged requests.
    Requests,
    /// A server: requests whose client leaves.
    Abandoned,
    /// A receiver: answers of its mirrors.
    Answers,
}

/// A part of what a hostile host does with a connection, before it closes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends this.
    Send(Vec<u8>),
    /// Sends this again and again, as long as the other end takes it, at most so many bytes.
    Repeat(Vec<u8>, u64),
    /// Waits.
    Wait(Duration),
    /// Reads at most so many bytes, as long as any come.
    Read(u64),
}

/// Draws requests to a server.
pub struct Clients {
    random: SplitMix64,
    /// The manifest's hash, in hexadecimal digits.
    manifest: String,
    file: String,
}

impl Clients {
    /// Clients of a server that has this file of the manifest with this hash.
    pub fn new(seed: u64, manifest: &str, file: &str) -> Self {
        let random = SplitMix64::new(seed, 401);
        Self { random, manifest: manifest.to_owned(), file: file.to_owned() }
    }

    /// What the next client does.
    pub fn next_client(&mut self, attack: WebAttack) -> Vec<Step> {
        match attack {
            WebAttack::Abandoned => {
                let request = self.honest();
                let wait = Step::Wait(Duration::from_millis(self.below(8).into()));
                match self.below(3) {
                    0 => vec![Step::Send(request)],
                    1 => vec![Step::Send(request), wait],
                    _ => vec![Step::Send(request), Step::Read(self.random.below(1 << 20).into())],
                }
            }
            WebAttack::Requests | WebAttack::Answers => self.damaged(),
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    /// A number at an end of what a field of a request may have, or any.
    fn number(&mut self) -> u64 {
        let ends = [0, 1, (1 << 23) - 1, 1 << 24, u32::MAX.into(), 1 << 53, u64::MAX];
        match self.below(3) {
            0 => self.random.next_u64(),
            1 => self.below(256).into(),
            _ => ends.get(self.random.below(7) as usize).copied().unwrap_or(0),
        }
    }

    /// A request of a receiver, for much.
    fn honest(&mut self) -> Vec<u8> {
        let target = match self.below(6) {
            0 => format!("/{}", self.file),
            1 => format!("/{}.fontana", self.manifest),
            _ => {
                let (start, block) = (self.below(1 << 23), self.below(24));
                format!("/f/{}/1?start={start}&blocks={block}:131072", self.manifest)
            }
        };
        request("GET", &target, "")
    }

    fn damaged(&mut self) -> Vec<Step> {
        let read = Step::Read(1 << 16);
        match self.below(9) {
            // Numbers that nothing has.
            0 => {
                let [toi, start, block, count] = [(); 4].map(|()| self.number());
                let query = format!("start={start}&blocks={block}:{count},{count}:{block}");
                let target = format!("/f/{}/{toi}?{query}", self.manifest);
                vec![Step::Send(request("GET", &target, "")), read]
            }
            1 => {
                let [from, to] = [(); 2].map(|()| self.number());
                let ranges = match self.below(3) {
                    0 => format!("bytes={from}-{to}"),
                    1 => format!("bytes=-{from}"),
                    _ => format!("bytes={}", "0-0,".repeat(1 + self.below(3_000) as usize)),
                };
                let range = format!("Range: {ranges}\r\n");
                vec![Step::Send(request("GET", &format!("/{}", self.file), &range)), read]
            }
            // Names that lead out of what is served, or nowhere.
            2 => {
                let up = ["../", "..%2f", "%2e%2e/", "//", "./", "%00", "\u{fe}"];
                let piece = up.get(self.random.below(7) as usize).copied().unwrap_or("");
                let target = format!("/{}etc/passwd", piece.repeat(1 + self.below(2_000) as usize));
                vec![Step::Send(request("GET", &target, "")), read]
            }
            // Methods and bodies.
            3 => {
                let methods = ["PUT", "POST", "DELETE", "CONNECT", "TRACE", "PRI", "get", ""];
                let method = methods.get(self.random.below(8) as usize).copied().unwrap_or("");
                let fields = match self.below(3) {
                    0 => format!("Content-Length: {}\r\n", self.number()),
                    1 => "Transfer-Encoding: chunked\r\n".to_owned(),
                    _ => "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n".to_owned(),
                };
                let head = request(method, &format!("/{}", self.file), &fields);
                let chunk = b"ffffffffffffffff\r\n".to_vec();
                vec![Step::Send(head), Step::Repeat(chunk, 1 << 16), read]
            }
            // Heads without end.
            4 => {
                let field = format!("X-{}: {}\r\n", self.below(1_000), "y".repeat(60));
                let line = format!("GET /{} HTTP/1.1\r\n", self.file);
                let most = u64::from(self.below(1 << 20));
                vec![Step::Send(line.into()), Step::Repeat(field.into(), most), read]
            }
            // Heads that come slowly, and end early.
            5 => {
                let mut whole = self.honest();
                whole.truncate(1 + self.below(whole.len() as u32) as usize);
                let wait = Step::Wait(Duration::from_millis(self.below(400).into()));
                vec![Step::Send(whole), wait]
            }
            // Many requests at once.
            6 => {
                let many = 1 + self.below(200) as usize;
                vec![Step::Send(self.honest().repeat(many)), read]
            }
            // Other bits.
            _ => {
                let mut bytes = self.honest();
                flip(&mut self.random, &mut bytes);
                vec![Step::Send(bytes), read]
            }
        }
    }
}

fn request(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").into()
}

/// Changes 1 to 8 bits.
fn flip(random: &mut SplitMix64, bytes: &mut [u8]) {
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len().max(1) as u32) as usize;
        let bit = 1 << random.below(8);
        bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
    }
}

/// Draws what a hostile mirror makes of the answers of an honest one.
pub struct Mirror {
    random: SplitMix64,
    /// Where the honest one is, as a URL without a path.
    honest: String,
}

impl Mirror {
    /// A mirror that knows an honest one: `http://HOST:PORT`.
    pub fn new(seed: u64, honest: &str) -> Self {
        Self { random: SplitMix64::new(seed, 402), honest: honest.to_owned() }
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    /// What it does with an answer of the honest mirror, head and body, which asks to close the
    /// connection.
    pub fn next_answer(&mut self, answer: &[u8]) -> Vec<Step> {
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = answer.split_at(end.map_or(answer.len(), |end| end + 4));
        let mut head = String::from_utf8_lossy(head).into_owned();
        let mut body = body.to_vec();
        match self.below(20) {
            // Lengths, ranges and encodings that are not those of the body.
            0 | 1 => {
                let field = self.false_field(body.len());
                let without = head.split_inclusive("\r\n").filter(|line| {
                    let name = |line: &str| line.split(':').next().map(str::to_ascii_lowercase);
                    name(line) != name(&field)
                });
                let without: String = without.filter(|line| *line != "\r\n").collect();
                head = format!("{without}{field}\r\n\r\n");
            }
            // Other bits, anywhere.
            2 => flip(&mut self.random, &mut body),
            3 => {
                let mut bytes = std::mem::take(&mut head).into_bytes();
                flip(&mut self.random, &mut bytes);
                return vec![Step::Send(bytes), Step::Send(body)];
            }
            // An end before the end.
            4 => body.truncate(self.below(body.len() as u32 + 1) as usize),
            5 => return Vec::new(),
            // Slowly.
            6 => {
                let wait = Step::Wait(Duration::from_millis(self.below(1_500).into()));
                return vec![Step::Send(head.into()), wait, Step::Send(body)];
            }
            7 => return self.other_status(),
            8 => {
                let interim = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
                let most = u64::from(self.below(1 << 20));
                return vec![Step::Repeat(interim, most), Step::Send(head.into())];
            }
            // Heads and bodies without end.
            9 => {
                let field = format!("X-{}: {}\r\n", self.below(1_000), "y".repeat(60));
                head.truncate(head.len().saturating_sub(2));
                return vec![Step::Send(head.into()), Step::Repeat(field.into(), 1 << 22)];
            }
            10 => {
                let endless = "HTTP/1.1 200 OK\r\n\r\n";
                return vec![Step::Send(endless.into()), Step::Repeat(body, 1 << 26)];
            }
            // Bytes of something else.
            11 => body.reverse(),
            // As it was: what has been right is asked for more.
            _ => {}
        }
        vec![Step::Send(head.into()), Step::Send(body)]
    }

    fn false_field(&mut self, length: usize) -> String {
        let number = match self.below(3) {
            0 => self.random.next_u64(),
            1 => u64::from(self.below(2 * length as u32 + 2)),
            _ => u64::MAX,
        };
        let from = self.below(1 << 20);
        match self.below(6) {
            0 => format!("Content-Length: {number}"),
            1 => format!("Content-Length: -{number}"),
            2 => format!("Content-Range: bytes {from}-{number}/{number}"),
            3 => "Transfer-Encoding: chunked".into(),
            4 => "Content-Encoding: gzip".into(),
            _ => format!("ETag: \"{number}\""),
        }
    }

    /// An answer without the content.
    fn other_status(&mut self) -> Vec<Step> {
        let honest = &self.honest;
        let codes = [
            "204 No Content".to_owned(),
            "206 Partial Content".to_owned(),
            "301 Moved\r\nLocation: /again".to_owned(),
            format!("302 Found\r\nLocation: {honest}/elsewhere"),
            "302 Found\r\nLocation: file:///etc/passwd".to_owned(),
            "307 Found\r\nLocation: http://127.0.0.1:1/".to_owned(),
            "401 Unauthorized\r\nWWW-Authenticate: Basic".to_owned(),
            "404 Not Found".to_owned(),
            "416 Range Not Satisfiable".to_owned(),
            "429 Too Many Requests\r\nRetry-After: 4000000000".to_owned(),
            "500 Internal Server Error".to_owned(),
            "503 Service Unavailable\r\nRetry-After: -1".to_owned(),
            "999 What".to_owned(),
        ];
        let which = self.random.below(codes.len() as u32) as usize;
        let code = codes.into_iter().nth(which).unwrap_or_default();
        vec![Step::Send(format!("HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n").into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_and_each_answer_is_another_and_follows_from_the_seed() {
        let draw = |seed| {
            let mut clients = Clients::new(seed, "5a", "noise");
            let mut mirror = Mirror::new(seed, "http://127.0.0.1:80");
            let honest = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
            let requests = (0..100).map(|_| clients.next_client(WebAttack::Requests));
            let requests: Vec<_> = requests.collect();
            (requests, (0..100).map(|_| mirror.next_answer(honest)).collect::<Vec<_>>())
        };
        let (requests, answers) = draw(1);
        assert_eq!((&requests, &answers), (&draw(1).0, &draw(1).1));
        assert_ne!(requests, draw(2).0);
        let differing = |drawn: &[Vec<Step>]| {
            drawn.iter().enumerate().filter(|(at, it)| !drawn[..*at].contains(it)).count()
        };
        assert!(differing(&requests) > 60 && differing(&answers) > 30, "{answers:?}");
    }
}
