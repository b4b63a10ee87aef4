//! Filters of system calls (seccomp(2)): their rules, and the calls that every confined process
//! does without. A call that a filter refuses fails with EPERM.
//!
//! The filters name what they refuse. The kernel remembers the calls that a filter always allows
//! (Linux 5.11), so those that receive packets and write files cost the same as without a filter.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
pub(super) use seccompiler::{SeccompCmpArgLen as Length, SeccompCmpOp as Comparison};
use std::collections::BTreeMap;

/// Numbers of system calls, of syscalls(2).
#[cfg(target_arch = "x86_64")]
pub(super) mod number {
    pub(in crate::sandbox) const SOCKET: i64 = 41;
    pub(in crate::sandbox) const CONNECT: i64 = 42;
    pub(in crate::sandbox) const SENDTO: i64 = 44;
    pub(in crate::sandbox) const SENDMSG: i64 = 46;
    pub(in crate::sandbox) const SOCKETPAIR: i64 = 53;
    pub(in crate::sandbox) const SENDMMSG: i64 = 307;
    pub(super) const CLONE: i64 = 56;
    pub(super) const KILL: i64 = 62;
    pub(super) const TGKILL: i64 = 234;
    pub(super) const PTRACE: i64 = 101;
    pub(super) const PROCESS_VM_WRITEV: i64 = 311;
    pub(super) const BPF: i64 = 321;
    /// Programs: `execve`, `execveat`.
    pub(super) const PROGRAMS: [i64; 2] = [59, 322];
    /// Other processes: `process_vm_readv`, `tkill`, `rt_sigqueueinfo`, `rt_tgsigqueueinfo`.
    pub(super) const PROCESSES: [i64; 4] = [310, 200, 129, 297];
    /// Files by their names, which Landlock does not know: `chmod`, `fchmodat`, `chown`, `lchown`,
    /// `fchownat`, `setxattr`, `lsetxattr`, `removexattr`, `lremovexattr`.
    pub(super) const NAMES: [i64; 9] = [90, 268, 92, 94, 260, 188, 189, 197, 198];
    /// The system: `mount`, `umount2`, `pivot_root`, `chroot`, `unshare`, `setns`, `init_module`,
    /// `finit_module`, `delete_module`, `kexec_load`, `kexec_file_load`, `reboot`, `swapon`,
    /// `swapoff`, `acct`, `sethostname`, `setdomainname`, `settimeofday`, `clock_settime`,
    /// `perf_event_open`, `userfaultfd`, `add_key`, `request_key`, `keyctl`, `iopl`, `ioperm`.
    pub(super) const SYSTEM: [i64; 26] = [
        165, 166, 155, 161, 272, 308, 175, 313, 176, 246, 320, 169, 167, 168, 163, 170, 171, 164,
        227, 298, 323, 248, 249, 250, 172, 173,
    ];
}

/// Numbers of system calls where they are the generic ones (aarch64, riscv64): the same calls,
/// without those that are not there.
#[cfg(not(target_arch = "x86_64"))]
pub(super) mod number {
    pub(in crate::sandbox) const SOCKET: i64 = 198;
    pub(in crate::sandbox) const CONNECT: i64 = 203;
    pub(in crate::sandbox) const SENDTO: i64 = 206;
    pub(in crate::sandbox) const SENDMSG: i64 = 211;
    pub(in crate::sandbox) const SOCKETPAIR: i64 = 199;
    pub(in crate::sandbox) const SENDMMSG: i64 = 269;
    pub(super) const CLONE: i64 = 220;
    pub(super) const KILL: i64 = 129;
    pub(super) const TGKILL: i64 = 131;
    pub(super) const PTRACE: i64 = 117;
    pub(super) const PROCESS_VM_WRITEV: i64 = 271;
    pub(super) const BPF: i64 = 280;
    pub(super) const PROGRAMS: [i64; 2] = [221, 281];
    pub(super) const PROCESSES: [i64; 4] = [270, 130, 138, 240];
    pub(super) const NAMES: [i64; 6] = [53, 54, 5, 6, 14, 15];
    pub(super) const SYSTEM: [i64; 24] = [
        40, 39, 41, 51, 97, 268, 105, 273, 106, 104, 294, 142, 224, 225, 89, 161, 162, 170, 112,
        241, 282, 217, 218, 219,
    ];
}

/// Numbers that are the same for all processors, since Linux 5.1: `pidfd_send_signal`,
/// `io_uring_enter`, `io_uring_register`, `open_tree`, `move_mount`, `fsopen`, `fsconfig`,
/// `fsmount`, `fspick`, `mount_setattr`, `fchmodat2`, `setxattrat`, `removexattrat`.
const NEWER: [i64; 13] = [424, 426, 427, 428, 429, 430, 431, 432, 433, 442, 452, 463, 466];
const IO_URING_SETUP: i64 = 425;
const CLONE3: i64 = 435;
const PIDFD_GETFD: i64 = 438;

/// A 64-bit process may also make the calls of the x32 interface: those with this bit.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Numbers that `sendmsg`, `execve`, `ptrace`, `rt_sigqueueinfo`, `kexec_load`,
/// `rt_tgsigqueueinfo`, `sendmmsg`, `process_vm_readv`, `process_vm_writev` and `execveat` have in
/// that interface. Old kernels take them without the bit, too.
#[cfg(target_arch = "x86_64")]
const OWN_NUMBERS_OF_X32: [i64; 10] = [518, 520, 521, 524, 528, 536, 538, 539, 540, 545];

/// The flag of `clone` for a user namespace, in which a process has all capabilities.
const NEW_USER: u64 = 0x1000_0000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// A comparison of an argument of a call.
pub(super) fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    is: Is,
    value: u64,
) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, length, is, value).map_err(|error| error.to_string())
}

/// A rule that a call matches if all conditions hold.
pub(super) fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

/// The system calls that are refused.
#[derive(Default)]
pub(super) struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

impl Rules {
    /// Refuses a call that matches one of `rules`; without rules, every one.
    pub(super) fn refuse(&mut self, number: i64, rules: Vec<SeccompRule>) {
        #[cfg(target_arch = "x86_64")]
        // In that interface it is refused in every form.
        self.0.insert(number | X32, Vec::new());
        self.0.insert(number, rules);
    }

    /// Refuses what leads around a filter: calls through a ring, sockets and memory of other
    /// processes, programs in the kernel.
    pub(super) fn refuse_detours(&mut self) {
        let numbers =
            [IO_URING_SETUP, PIDFD_GETFD, number::PTRACE, number::PROCESS_VM_WRITEV, number::BPF];
        numbers.into_iter().for_each(|number| self.refuse(number, Vec::new()));
        #[cfg(target_arch = "x86_64")]
        for number in [518, 521, 538, 540] {
            self.refuse(number, Vec::new());
        }
    }

    /// Refuses what a process does not need that handles packets and writes files: programs,
    /// signals to others and their memory, names of files that Landlock does not look at, mounts,
    /// namespaces, modules, keys, clocks, and a restart of the host.
    pub(super) fn refuse_what_is_not_needed(&mut self) -> Result<(), String> {
        self.refuse_detours();
        let lists: [&[i64]; 5] =
            [&number::PROGRAMS, &number::PROCESSES, &number::NAMES, &number::SYSTEM, &NEWER];
        for &number in lists.into_iter().flatten() {
            self.refuse(number, Vec::new());
        }
        #[cfg(target_arch = "x86_64")]
        for number in OWN_NUMBERS_OF_X32 {
            self.refuse(number, Vec::new());
        }
        let own = u64::from(std::process::id());
        for number in [number::KILL, number::TGKILL] {
            self.refuse(number, vec![rule(vec![condition(0, Length::Dword, Is::Ne, own)?])?]);
        }
        let makes_users = condition(0, Length::Qword, Is::MaskedEq(NEW_USER), NEW_USER)?;
        self.refuse(number::CLONE, vec![rule(vec![makes_users])?]);
        Ok(())
    }

    /// Applies the filter to the calling thread, and the threads and programs that it starts.
    pub(super) fn apply(self) -> Result<(), String> {
        apply(self.0, EPERM)
    }
}

/// Lets `clone3`, whose flags a filter cannot read, fail as on a kernel without it: the C library
/// then calls `clone`.
pub(super) fn hide_clone3() -> Result<(), String> {
    apply([(CLONE3, Vec::new())].into(), ENOSYS)
}

fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: u32) -> Result<(), String> {
    let processor = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("there is no filter for {}", std::env::consts::ARCH))?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), processor);
    let program: BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}
