//! What the bench reports of a class.

/// A run that could not be made, or that broke a rule of drivers: a defect of the product or of the
/// bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BenchError(pub(super) &'static str);

/// Largest number of bytes that a receiver may log, whatever arrives.
pub const MAX_LOG_BYTES: u64 = 1 << 20;

/// Bytes of the disk that the receivers of the bench may use for symbols that arrive before the
/// manifest: they are in the memory of this process.
pub(super) const MAX_DISK_BYTES: u64 = 2 << 20;

/// What a class of hostile packets did to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassReport {
    /// Hostile packets, manifests or tables that the receiver handled.
    pub packets: u64,
    /// The receiver did not panic, and kept the rules of endpoints.
    pub alive: bool,
    /// Most memory that sender, attacker and receiver took together, in bytes: that of the process
    /// without the program itself. `None` if the system does not say, or for several receivers.
    pub memory_max: Option<u64>,
    /// Memory that the receiver may use, in bytes.
    pub memory: u64,
    /// Most bytes of the disk that symbols took which arrived before the manifest.
    pub disk_max: u64,
    /// Bytes that they took at the end.
    pub disk_left: u64,
    /// Bytes of everything that the receiver reported, as text.
    pub log_bytes: u64,
    /// The honest transfer is complete, and every byte is right.
    pub honest_verified: bool,
    /// Packets that the honest sender sent beyond those that it sends without the attack.
    pub extra_packets: i64,
    /// Packets that it sends without the attack.
    pub honest_packets: u64,
    /// A manifest was accepted that leads out of the directory, or contradicts itself.
    pub is_harmed: bool,
    /// The class forges symbols of the session: the honest sender must replace them.
    pub forges: bool,
}

impl ClassReport {
    /// Most packets beyond those of a transfer without the attack: a hundredth, if nothing is
    /// forged.
    pub fn allowed_packets(&self) -> Option<u64> {
        (!self.forges).then_some(self.honest_packets / 100)
    }

    /// What the class broke; empty if it broke nothing.
    pub fn broken(&self) -> Vec<&'static str> {
        let allowed = self.allowed_packets().map_or(i64::MAX, |allowed| allowed as i64);
        let checks = [
            (self.alive, "the receiver has failed"),
            (!self.is_harmed, "a harmful manifest is accepted"),
            (self.honest_verified, "the honest transfer is not complete"),
            (self.memory_max.is_none_or(|most| most <= self.memory), "too much memory"),
            (self.disk_max <= MAX_DISK_BYTES, "too much of the disk"),
            (self.disk_left == 0, "the disk is not given back"),
            (self.log_bytes <= MAX_LOG_BYTES, "too much is logged"),
            (self.extra_packets <= allowed, "too many honest packets"),
        ];
        checks.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
    }
}
