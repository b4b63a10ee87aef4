//! What a process does with sockets: filters of its system calls (seccomp(2)). A call that a filter
//! refuses fails with EPERM.
//!
//! The filters name what they refuse. The kernel remembers the calls that a filter always allows
//! (Linux 5.11), so those that receive packets and write files cost the same as without a filter.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Refuses every system call that sends a packet, or with which another process would send it:
/// sockets that are not for UDP, `connect`, `sendmsg`, `sendmmsg`, `sendto` with a destination,
/// `io_uring`, and control of other processes. Without a connection and a destination, `write` and
/// its kind have no address to send to.
///
/// # Errors
/// The kernel has no seccomp, or this program has no filter for its processor.
pub(crate) fn refuse_sending() -> Result<(), String> {
    refuse(vec![condition(4, Length::Qword, Is::Ne, 0)?])
}

/// Refuses the same, except that datagrams may be sent from one socket, to any host. The kernel
/// cannot compare their destinations: a system call names them by an address in memory.
///
/// # Errors
/// As [`refuse_sending`].
pub(crate) fn refuse_sending_except(socket: BorrowedFd<'_>) -> Result<(), String> {
    let number = u64::try_from(socket.as_raw_fd()).map_err(|error| error.to_string())?;
    let is_other = condition(0, Length::Dword, Is::Ne, number)?;
    refuse(vec![condition(4, Length::Qword, Is::Ne, 0)?, is_other])
}

/// Refuses what sends a packet; of the calls of `sendto`, those that meet the conditions.
fn refuse(sendto: Vec<SeccompCondition>) -> Result<(), String> {
    let mut rules = Rules::default();
    rules.refuse(call::SOCKET, other_than_udp()?);
    rules.refuse(call::SENDTO, vec![rule(sendto)?]);
    for number in [call::CONNECT, call::SENDMSG, call::SENDMMSG] {
        rules.refuse(number, Vec::new());
    }
    rules.refuse_detours();
    rules.apply()
}

/// Refuses every socket but those of this host (`AF_UNIX`): for programs that such a process
/// starts.
///
/// # Errors
/// As [`refuse_sending`].
pub(crate) fn refuse_networks() -> Result<(), String> {
    let mut rules = Rules::default();
    let other = condition(0, Length::Dword, Is::Ne, family::UNIX)?;
    rules.refuse(call::SOCKET, vec![rule(vec![other])?]);
    rules.refuse_detours();
    rules.apply()
}

/// The rules that a call of `socket` for UDP matches none of.
fn other_than_udp() -> Result<Vec<SeccompRule>, String> {
    let mut rules = vec![
        rule(vec![
            condition(0, Length::Dword, Is::Ne, family::INET)?,
            condition(0, Length::Dword, Is::Ne, family::INET6)?,
        ])?,
        rule(vec![
            condition(2, Length::Dword, Is::Ne, 0)?,
            condition(2, Length::Dword, Is::Ne, PROTOCOL_UDP)?,
        ])?,
    ];
    // There is no "is not, of these bits".
    for other in (0..=TYPE_BITS).filter(|&other| other != TYPE_DATAGRAM) {
        rules.push(rule(vec![condition(1, Length::Dword, Is::MaskedEq(TYPE_BITS), other)?])?);
    }
    Ok(rules)
}

/// `IPPROTO_UDP`.
const PROTOCOL_UDP: u64 = 17;
/// `SOCK_DGRAM`.
const TYPE_DATAGRAM: u64 = 2;
/// The bits of the type of a socket; the others are flags (`SOCK_TYPE_MASK` of Linux).
const TYPE_BITS: u64 = 0xf;

/// Address families, of socket(2).
mod family {
    pub(super) const UNIX: u64 = 1;
    pub(super) const INET: u64 = 2;
    pub(super) const INET6: u64 = 10;
}

/// Numbers of system calls, of syscalls(2).
#[cfg(target_arch = "x86_64")]
mod call {
    pub(super) const SOCKET: i64 = 41;
    pub(super) const CONNECT: i64 = 42;
    pub(super) const SENDTO: i64 = 44;
    pub(super) const SENDMSG: i64 = 46;
    pub(super) const SENDMMSG: i64 = 307;
    pub(super) const PTRACE: i64 = 101;
    pub(super) const PROCESS_VM_WRITEV: i64 = 311;
    pub(super) const BPF: i64 = 321;
}

/// Numbers of system calls where they are the generic ones (aarch64, riscv64).
#[cfg(not(target_arch = "x86_64"))]
mod call {
    pub(super) const SOCKET: i64 = 198;
    pub(super) const CONNECT: i64 = 203;
    pub(super) const SENDTO: i64 = 206;
    pub(super) const SENDMSG: i64 = 211;
    pub(super) const SENDMMSG: i64 = 269;
    pub(super) const PTRACE: i64 = 117;
    pub(super) const PROCESS_VM_WRITEV: i64 = 271;
    pub(super) const BPF: i64 = 280;
}

/// Since Linux 5.1 the same for all processors.
const IO_URING_SETUP: i64 = 425;
const PIDFD_GETFD: i64 = 438;

/// A 64-bit process may also make the calls of the x32 interface: those with this bit.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Numbers that `sendmsg`, `ptrace`, `sendmmsg` and `process_vm_writev` have in that interface. Old
/// kernels take them without the bit, too.
#[cfg(target_arch = "x86_64")]
const OWN_NUMBERS_OF_X32: [i64; 4] = [518, 521, 538, 540];

fn condition(argument: u8, length: Length, is: Is, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, length, is, value).map_err(|error| error.to_string())
}

/// A rule that a call matches if all conditions hold.
fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

/// The system calls that are refused.
#[derive(Default)]
struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

impl Rules {
    /// Refuses a call that matches one of `rules`; without rules, every one.
    fn refuse(&mut self, number: i64, rules: Vec<SeccompRule>) {
        #[cfg(target_arch = "x86_64")]
        // In that interface it is refused in every form.
        self.0.insert(number | X32, Vec::new());
        self.0.insert(number, rules);
    }

    /// Refuses what leads around a filter: calls through a ring, sockets and memory of other
    /// processes, programs in the kernel.
    fn refuse_detours(&mut self) {
        for number in
            [IO_URING_SETUP, PIDFD_GETFD, call::PTRACE, call::PROCESS_VM_WRITEV, call::BPF]
        {
            self.refuse(number, Vec::new());
        }
        #[cfg(target_arch = "x86_64")]
        for number in OWN_NUMBERS_OF_X32 {
            self.refuse(number, Vec::new());
        }
    }

    /// Applies the filter to the calling thread, and the threads and programs that it starts.
    fn apply(self) -> Result<(), String> {
        let processor = TargetArch::try_from(std::env::consts::ARCH)
            .map_err(|_| format!("there is no filter for {}", std::env::consts::ARCH))?;
        const EPERM: u32 = 1;
        let filter = SeccompFilter::new(
            self.0,
            SeccompAction::Allow,
            SeccompAction::Errno(EPERM),
            processor,
        );
        let program: BpfProgram =
            filter.and_then(TryInto::try_into).map_err(|error| error.to_string())?;
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())
    }
}
