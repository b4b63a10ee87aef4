//! The limit on the memory of the process's control group (cgroups(7)): of a container, a service,
//! a job. The kernel kills a process that exceeds it.

use fontana::MIN_MEMORY;
use fontana_console::console::Console;
use fontana_console::units::Bytes;
use std::fs;
use std::path::Path;

/// Memory beside that of `--memory`: the program, and the stacks of its threads.
const OTHER_BYTES: u64 = 32 << 20;

/// Warns if the limit leaves no room for `memory` bytes.
pub(crate) fn check(memory: u64, console: &Console) {
    let limit = limit_below(Path::new("/"));
    let Some(limit) = limit.filter(|&limit| limit < memory.saturating_add(OTHER_BYTES)) else {
        return;
    };
    let message = format!(
        "the control group of this process may use {}, and --memory is {}: the kernel may kill it",
        Bytes(limit),
        Bytes(memory)
    );
    let room = limit.saturating_sub(OTHER_BYTES).max(MIN_MEMORY as u64) >> 20;
    let hint =
        format!("use less: --memory {room}M\nor raise the limit of the container or service");
    console.warning(&message, &hint);
}

/// The least limit of the groups of this process and of those above them, as far as they are
/// visible below `root`; `None` without one.
fn limit_below(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the group that is mounted is one of those that its path names.
        let groups = Path::new(group.trim_start_matches('/')).ancestors();
        let limit = |group: &Path| {
            let text = fs::read_to_string(root.join(mount).join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        groups.filter_map(limit).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_is_found_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let limit = |groups: &str, files: &[(&str, &str)]| {
            let root = directory.path().join(files.len().to_string() + &groups.len().to_string());
            for (name, text) in [("proc/self/cgroup", groups)].iter().chain(files) {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            limit_below(&root)
        };
        assert_eq!(limit("0::/\n", &[]), None);
        assert_eq!(limit("0::/a\n", &[("sys/fs/cgroup/a/memory.max", "max\n")]), None);
        let (outer, inner) = ("sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/b/memory.max");
        assert_eq!(limit("0::/a/b\n", &[(outer, "500\n"), (inner, "max\n")]), Some(500));
        assert_eq!(limit("0::/a/b/c\n", &[(outer, "500\n"), (inner, "400\n")]), Some(400));
        // A container sees its own group only.
        let file = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        let groups = "3:cpu:/docker/1\n2:cpuset,memory:/docker/1\n0::/\n";
        assert_eq!(limit(groups, &[(file, "300\n")]), Some(300));
    }
}
