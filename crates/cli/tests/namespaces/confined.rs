//! What a process could do in which an attacker runs code: system calls are run inside of it, as
//! root and as a user. And what root still receives with the rights that are left.

use crate::program::Program;
use crate::scene::{Scene, same_file};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A user that owns nothing.
const USER: u32 = 65_534;
const PATIENCE: Duration = Duration::from_secs(30);

/// System calls as `inject.c` reads them. Without a sandbox, root gets other answers than EPERM and
/// EACCES to all of them, and none does any harm.
const CALLS: &str = "
unix_stream 41 1 1 0
unix_datagram 41 1 2 0
pair 53 1 2 0 =x
packet 41 17 3 0
raw 41 2 3 255
netlink 41 16 3 0
bpf 321 0 =x 72
io_uring 425 1 =x
ptrace 101 2 1 0
perf 298 =x 0 -1 -1 0
read_memory 310 1 =x 1 =x 1
mount 165 =none =/nonexistent =nonesuch 0
umount 166 =/nonexistent 0
pivot_root 155 =/nonexistent =/nonexistent
chroot 161 =/nonexistent
unshare 272 0
setns 308 -1 0
open_tree 428 -1 =/nonexistent 0
init_module 175 0 0 =x
finit_module 313 -1 =x 0
delete_module 176 =nonesuch 0
kexec 246 0 0 0 0xdead
reboot 169 0x1234 0x1234 0
sethostname 170 =x -1
execve 59 =/nonexistent 0 0
chmod 90 =/nonexistent 0
fchmodat 268 -100 =/nonexistent 0
chown 92 =/nonexistent 0 0
setxattr 188 =/nonexistent =user.x =x 1 0
kill 62 1 0
read_file 2 =/etc/passwd 0
write_file 2 =/etc/passwd 1
keyctl 250 0 -3 0
userfaultfd 323 0xffff
";
/// Those that would do harm without a sandbox: a process in a user namespace.
const HARMFUL: &str = "
clone 56 0x10000011 0
clone3 435 0 0
";

const EPERM: i64 = -1;
const EACCES: i64 = -13;
const ENOSYS: i64 = -38;

struct Injector {
    program: PathBuf,
    _directory: tempfile::TempDir,
}

impl Injector {
    /// `None` if there is no compiler, or another processor. A skipped test is reported.
    fn build() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) =
            (directory.path().join("inject.c"), directory.path().join("inject"));
        std::fs::write(&source, include_str!("inject.c")).unwrap();
        let built = Command::new("cc").args(["-O1", "-w", "-o"]).args([&program, &source]).status();
        if !cfg!(target_arch = "x86_64") || !built.is_ok_and(|built| built.success()) {
            fontana_testing::skip("x86_64 and a C compiler are needed to run calls in a process");
            return None;
        }
        Some(Self { program, _directory: directory })
    }

    /// The results of calls in the main thread of a process.
    fn run(&self, process: u32, calls: &str) -> BTreeMap<String, i64> {
        let mut child = Command::new(&self.program)
            .arg(process.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(calls.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let result = |line: &str| {
            let (name, result) = line.split_once(' ').unwrap();
            (name.to_owned(), result.parse().unwrap())
        };
        String::from_utf8(output.stdout).unwrap().lines().map(result).collect()
    }
}

/// A program as this user, and its number.
fn start(scene: &Scene, user: u32, words: &str) -> Program {
    let mut command = scene.bench.command(0, "setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.args(["--clear-groups", "--", env!("CARGO_BIN_EXE_fontana")]);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    Program::start({
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    })
}

#[test]
fn an_attacker_in_a_process_that_parses_packets_has_no_rights_of_its_user() {
    let (Some(scene), Some(injector)) = (Scene::new(1), Injector::build()) else { return };
    let file = scene.noise("file", 50_000);
    for path in [&file, &file.parent().unwrap().to_owned()] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let hash = "7".repeat(64);
    let receive = "recv -y --json --group 239.255.77.9:7701";
    let web = format!("recv --json fontana://web/?manifest={hash}&web=http://10.77.0.9:1/");
    let report = format!("recv --json fontana://239.255.77.9:7701/5?key={}&ask=7703", key(&scene));
    let serve = format!("serve --json --listen 127.0.0.1:0 {}", file.display());
    let send = format!(
        "send --json --to 239.255.77.8:7701 --ask --trust-reports --sign {} {}",
        scene.path("key").display(),
        file.display()
    );
    for user in [0, USER] {
        let into = scene.path(&format!("into {user}").replace(' ', "-"));
        std::fs::create_dir(&into).unwrap();
        chown(&into, Some(user), Some(user)).unwrap();
        chown(scene.path("key"), Some(user), Some(user)).unwrap();
        let into = |words: &str| format!("{words} -o {}", into.display());
        for (words, tcp) in [
            (into(receive), false),
            (into(&format!("{receive} --share")), false),
            (into(&format!("{receive} --one-way")), false),
            (into(&report), false),
            (into(&web), true),
            (serve.clone(), false),
            (send.clone(), false),
        ] {
            let mut program = start(&scene, user, &words);
            let event = if words.starts_with("serve") { "served" } else { "progress" };
            program.wait_for(event, PATIENCE);
            let calls = format!("{CALLS}{HARMFUL}tcp 41 2 1 0\n");
            for (call, result) in injector.run(program.id(), &calls) {
                let is_refused = match call.as_str() {
                    "clone3" => result == ENOSYS,
                    "tcp" if tcp => result >= 0,
                    _ => result == EPERM || result == EACCES,
                };
                assert!(is_refused, "{call}: {result}; user {user}, {words}");
            }
            program.interrupt();
            let (code, errors) = program.finish(PATIENCE);
            assert_eq!(code, Some(130), "{words}: {errors}");
        }
    }
    // The calls are right: without a sandbox the kernel gives other answers.
    let mut program =
        start(&scene, 0, &format!("{receive} --sandbox off -o {}", scene.path("n").display()));
    program.wait_for("progress", PATIENCE);
    for (call, result) in injector.run(program.id(), CALLS) {
        assert!(result != EPERM && result != EACCES, "{call}: {result}");
    }
}

/// A new key in the scene, and its public part.
fn key(scene: &Scene) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fontana"));
    let made = command.arg("keygen").arg(scene.path("key")).output().unwrap();
    assert!(made.status.success());
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn root_receives_into_directories_of_others() {
    let Some(scene) = Scene::new(2) else { return };
    let tree = scene.path("tree");
    std::fs::create_dir_all(tree.join("closed/below")).unwrap();
    for name in ["a", "closed/b", "closed/below/c"] {
        fontana_testing::noise_file(&tree.join(name), 40_000, name.len() as u64).unwrap();
    }
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    set(&tree.join("closed/below"), 0o555);
    set(&tree.join("closed"), 0o555);
    let into = scene.path("into");
    std::fs::create_dir_all(into.join("tree/closed")).unwrap();
    std::fs::write(into.join("tree/a"), "of the user").unwrap();
    for path in [&into, &into.join("tree"), &into.join("tree/closed"), &into.join("tree/a")] {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
    set(&into, 0o755);
    let session = scene.send(0, "", &tree);
    // The second time all of it is there.
    for way in ["replace", "skip"] {
        let words = format!("--timeout 60 --existing {way}");
        scene.receive_into(&into, 1, &session.ticket, &words).complete();
        for name in ["a", "closed/b", "closed/below/c"] {
            assert!(same_file(&tree.join(name), &into.join("tree").join(name)), "{name}");
        }
        let mode = into.join("tree/closed/below").metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o555);
    }
    session.end();
}

/// The C library asks plugins for a name that ask other programs of the host: by Landlock it cannot
/// load them, and by the filter of system calls they cannot ask.
#[test]
fn names_of_mirrors_are_resolved_though_no_other_program_can_be_asked() {
    let Some(scene) = Scene::new(1) else { return };
    std::fs::write(scene.path("asking.c"), include_str!("asking.c")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(scene.path("libnss_asking.so.2"));
    compiler.arg(scene.path("asking.c"));
    match compiler.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return fontana_testing::skip("a plugin needs a C compiler"),
    }
    let file = scene.noise("file", 200_000);
    std::fs::write(scene.path("nsswitch"), "hosts: asking [!UNAVAIL=return] files\n").unwrap();
    std::fs::write(scene.path("hosts"), "127.0.0.1 mirror.test\n").unwrap();
    let script = "mount --bind \"$1/nsswitch\" /etc/nsswitch.conf && \
                  mount --bind \"$1/hosts\" /etc/hosts && \
                  export LD_LIBRARY_PATH=\"$1\" && shift && exec \"$@\"";
    let with_plugin = |program: &str| {
        let mut command = scene.bench.command(0, "unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(scene.path("")).arg(program);
        command
    };
    let refused = with_plugin("getent").args(["ahosts", "mirror.test"]).status().unwrap();
    assert!(!refused.success(), "the plugin is not asked");

    let served = "serve --json --listen 127.0.0.1:7780 --web http://mirror.test:7780/";
    let mut server = scene.start(0, served, &file);
    let serving = server.wait_for("serving", PATIENCE);
    let ticket = serving["ticket"].as_str().unwrap().to_owned();
    for has_landlock in [true, false] {
        let into = scene.path(if has_landlock { "confined" } else { "filtered" });
        let mut command = with_plugin(env!("CARGO_BIN_EXE_fontana"));
        command.args(["recv", "--json", "--timeout", "20", &ticket]);
        command.arg("-o").arg(&into).stdin(Stdio::null());
        let run = move || {
            if !has_landlock {
                refuse_landlock();
            }
            command.output().unwrap()
        };
        // The filter is of this thread, and of the program that it starts.
        let output = std::thread::spawn(run).join().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let files = if has_landlock { "\"files\":\"full\"" } else { "\"files\":\"none\"" };
        assert!(text.contains(files), "{text}");
        assert!(same_file(&file, &into.join("file")));
    }
}

/// A kernel without Landlock, for this thread: its calls fail with ENOSYS.
fn refuse_landlock() {
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    let filter = seccompiler::SeccompFilter::new(
        [(LANDLOCK_CREATE_RULESET, Vec::new())].into(),
        seccompiler::SeccompAction::Allow,
        seccompiler::SeccompAction::Errno(ENOSYS.unsigned_abs() as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let filter: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
}
