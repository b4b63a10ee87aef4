//! Packets of the protocols, in a format of our own: the paper prints none.

use fontana_proto::Instant;
use fontana_sim::NodeId;

/// What a packet counts as (section 4.1). The first byte of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Class {
    Payload,
    Proactive,
    Repair,
    Request,
    Session,
}

impl Class {
    pub(super) const ALL: [Self; 5] =
        [Self::Payload, Self::Proactive, Self::Repair, Self::Request, Self::Session];

    /// The class of a packet.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        packet.first().and_then(|&byte| Self::ALL.get(usize::from(byte))).copied()
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepairPacket {
    pub(super) from: NodeId,
    /// By the clock that all hosts of a simulation share.
    pub(super) sent_at: Instant,
    /// Links that it may cross. A receiver subtracts those that it may still cross (its TTL), which
    /// leaves those that it has crossed.
    pub(super) hops: u8,
    pub(super) message: Message,
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A segment of the source.
    Data { segment: u32 },
    /// An FEC packet of a group, or the only segment of it again. No two are the same (section
    /// 4.1).
    Repair { group: u32, cause: Cause, path: Path },
    /// `need` more packets of a group complete it. `below`: OTERS' subtree to which the repair is
    /// subcast; `None`: it is sent to the requester, or as the protocol always does.
    Request { group: u32, need: u32, below: Option<NodeId> },
    /// The source has sent so many segments, as far as the member knows. `radius`: links that the
    /// member's own subgroup spans.
    Heartbeat { segments: u32, radius: u8 },
    /// TMTP: a member looks for a parent.
    Search,
    /// TMTP: a representative offers to be one. It has so many children.
    Offer { children: u32, radius: u8 },
    /// TMTP: a member becomes a child.
    Join,
    /// OTERS: a member asks for the routers between the source and itself.
    Trace,
    /// OTERS: the answer. Simulated members know the routers already, and are told that they may
    /// use them.
    Traced,
    /// OTERS: a member offers to be the representative of a router, from which it is so many links
    /// away.
    Candidate { router: NodeId, hops: u32 },
}

/// Why a repair is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Requested,
    Estimated,
}

/// How a repair travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// From its sender's own node.
    Direct,
    /// By a router, below which all members receive it.
    Subcast,
}

/// A node number that no node has.
const NO_NODE: u32 = u32::MAX;

impl Message {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Data { .. } => Class::Payload,
            Self::Repair { cause: Cause::Estimated, .. } => Class::Proactive,
            Self::Repair { cause: Cause::Requested, .. } => Class::Repair,
            Self::Request { .. } => Class::Request,
            _ => Class::Session,
        }
    }

    /// Its number, and up to three values.
    fn fields(&self) -> (u8, [u32; 3]) {
        let node = |node: &Option<NodeId>| node.map_or(NO_NODE, |node| node.0);
        match self {
            Self::Data { segment } => (0, [*segment, 0, 0]),
            Self::Repair { group, cause, path } => {
                let (cause, path) = (*cause == Cause::Estimated, *path == Path::Subcast);
                (1, [*group, cause.into(), path.into()])
            }
            Self::Request { group, need, below } => (2, [*group, *need, node(below)]),
            Self::Heartbeat { segments, radius } => (3, [*segments, (*radius).into(), 0]),
            Self::Search => (4, [0; 3]),
            Self::Offer { children, radius } => (5, [*children, (*radius).into(), 0]),
            Self::Join => (6, [0; 3]),
            Self::Trace => (7, [0; 3]),
            Self::Traced => (8, [0; 3]),
            Self::Candidate { router, hops } => (9, [router.0, *hops, 0]),
        }
    }

    fn from_fields(number: u8, [a, b, c]: [u32; 3]) -> Option<Self> {
        let node = |number: u32| (number != NO_NODE).then_some(NodeId(number));
        let radius = u8::try_from(b).unwrap_or(u8::MAX);
        Some(match number {
            0 => Self::Data { segment: a },
            1 => Self::Repair {
                group: a,
                cause: if b == 0 { Cause::Requested } else { Cause::Estimated },
                path: if c == 0 { Path::Direct } else { Path::Subcast },
            },
            2 => Self::Request { group: a, need: b, below: node(c) },
            3 => Self::Heartbeat { segments: a, radius },
            4 => Self::Search,
            5 => Self::Offer { children: a, radius },
            6 => Self::Join,
            7 => Self::Trace,
            8 => Self::Traced,
            9 => Self::Candidate { router: NodeId(a), hops: b },
            _ => return None,
        })
    }
}

impl RepairPacket {
    /// Bytes of a packet, without the segment that may follow.
    pub(super) const BYTES: u16 = 27;

    /// Parses the beginning of a packet.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (&[_, number], rest) = packet.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (sent_at, rest) = rest.split_first_chunk()?;
        let (&[hops], rest) = rest.split_first_chunk()?;
        let (a, rest) = rest.split_first_chunk()?;
        let (b, rest) = rest.split_first_chunk()?;
        let (c, _) = rest.split_first_chunk()?;
        Some(Self {
            from: NodeId(u32::from_be_bytes(*from)),
            sent_at: Instant::from_nanos(u64::from_be_bytes(*sent_at)),
            hops,
            message: Message::from_fields(number, [*a, *b, *c].map(u32::from_be_bytes))?,
        })
    }

    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        let (number, fields) = self.message.fields();
        to.extend([self.message.class() as u8, number]);
        to.extend(self.from.0.to_be_bytes());
        to.extend(self.sent_at.as_nanos().to_be_bytes());
        to.push(self.hops);
        fields.iter().for_each(|field| to.extend(field.to_be_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire_and_their_first_byte_is_their_class() {
        let (from, sent_at, router) = (NodeId(7), Instant::from_nanos(1 << 40), NodeId(9));
        let repair = |cause, path| Message::Repair { group: 3, cause, path };
        for message in [
            Message::Data { segment: 447 },
            repair(Cause::Requested, Path::Direct),
            repair(Cause::Estimated, Path::Subcast),
            Message::Request { group: 1, need: 2, below: None },
            Message::Request { group: 1, need: 2, below: Some(router) },
            Message::Heartbeat { segments: 9, radius: 255 },
            Message::Search,
            Message::Offer { children: 16, radius: 4 },
            Message::Join,
            Message::Trace,
            Message::Traced,
            Message::Candidate { router, hops: 3 },
        ] {
            let packet = RepairPacket { from, sent_at, hops: 33, message };
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            assert_eq!(bytes.len(), usize::from(RepairPacket::BYTES));
            assert_eq!(Class::of(&bytes), Some(message.class()));
            assert_eq!(RepairPacket::parse(&bytes), Some(packet));
            bytes.pop();
            assert_eq!(RepairPacket::parse(&bytes), None, "it is too short");
        }
        assert_eq!(Class::of(&[5]), None);
        assert_eq!(RepairPacket::parse(&[99; 27]), None);
    }
}
