//! Signed digests of the symbols that a sender sends next: a receiver drops symbols that the sender
//! has not announced, while an attacker sends forged ones.
//!
//! The sender writes the digests of up to 96 symbols into a *list*, which is one packet. Up to 64
//! lists are a *group*, with one signature: the lists are the leaves of a hash tree, the signature
//! is over its root, and each list has its path to the root (Wong and Lam 1998, tree chaining). A
//! list therefore proves itself, whichever others were lost, and a group costs a receiver one
//! verification.

use crate::bytes::Reader;
use crate::head::InstanceId;
use crate::id::Toi;
use crate::key::{PublicKey, SecretKey, Signature};
use crate::records::HeadRecords;
use fontana_fec::{Esi, Sbn};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Type of the record of a head that has the key of the lists' signatures.
const RECORD: u8 = 2;

const SYMBOL_CONTEXT: &[u8] = b"fontana symbol digest v1\0";
const LIST_CONTEXT: &[u8] = b"fontana digest list v1\0";
const NODE_CONTEXT: &[u8] = b"fontana digest node v1\0";
const GROUP_CONTEXT: &[u8] = b"fontana digest group v1\0";

/// First bytes of an instance id, which lists name.
const INSTANCE_START: usize = 8;
/// Bytes of a list before its path: instance, number of the group, number of its lists, number of
/// the list, signature.
const FIXED_BYTES: usize = INSTANCE_START + 8 + 1 + 1 + size_of::<Signature>();

/// The first 96 bits of the SHA-256 hash of a symbol and its place, or of a node of the tree of a
/// group. SHA-256 has instructions on current processors, which make it faster for inputs of the
/// size of a packet than other hashes. To forge a symbol takes a second preimage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolDigest(pub [u8; Self::SIZE]);

impl SymbolDigest {
    /// Size in bytes.
    pub const SIZE: usize = 12;

    /// The digest of an encoding symbol of content, as it is sent.
    pub fn of(toi: Toi, sbn: Sbn, esi: Esi, symbol: &[u8]) -> Self {
        let hasher = Sha256::new()
            .chain_update(SYMBOL_CONTEXT)
            // Content has TOIs of 32 bits.
            .chain_update((toi.0 as u32).to_be_bytes())
            .chain_update(sbn.0.to_be_bytes())
            .chain_update(esi.0.to_be_bytes());
        Self::start_of(hasher.chain_update(symbol))
    }

    fn of_list(digests: &[u8]) -> Self {
        Self::start_of(Sha256::new().chain_update(LIST_CONTEXT).chain_update(digests))
    }

    fn of_node(left: Self, right: Self) -> Self {
        let hasher = Sha256::new().chain_update(NODE_CONTEXT);
        Self::start_of(hasher.chain_update(left.0).chain_update(right.0))
    }

    fn start_of(hasher: Sha256) -> Self {
        let hash: [u8; 32] = hasher.finalize().into();
        Self(hash.first_chunk().copied().unwrap_or_default())
    }
}

/// Number of a group of lists: the first one of a sender's run is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupNumber(pub u64);

/// A group of lists that a sender sends.
#[derive(Debug)]
pub struct DigestGroup {
    lists: Vec<Vec<u8>>,
}

impl DigestGroup {
    /// Most lists of a group. A signature takes as long as hashing 30 symbols: it is shared by
    /// 6 144 of them.
    pub const MAX_LISTS: usize = 1 << MAX_HEIGHT;

    /// Makes and signs the lists of `digests`, in the order in which their symbols are sent:
    /// `per_list` in each but the last one. Further digests than
    /// [`MAX_LISTS`](Self::MAX_LISTS) lists have are not in the group.
    pub fn new(
        key: &SecretKey,
        instance: InstanceId,
        number: GroupNumber,
        digests: &[SymbolDigest],
        per_list: usize,
    ) -> Self {
        let per_list = per_list.clamp(1, DigestList::MAX_DIGESTS);
        let bytes: Vec<Vec<u8>> = digests
            .chunks(per_list)
            .take(Self::MAX_LISTS)
            .map(|list| list.iter().flat_map(|digest| digest.0).collect())
            .collect();
        let leaves = bytes.iter().map(|list| SymbolDigest::of_list(list)).collect();
        let tree = Tree::new(leaves);
        let count = bytes.len() as u8;
        let signature = key.sign(&signed_message(instance, number, count, tree.root()));
        let lists = (0_u8..).zip(&bytes).map(|(index, digests)| {
            let mut list = Vec::with_capacity(DigestList::MAX_SIZE);
            list.extend(instance.0.iter().take(INSTANCE_START));
            list.extend(number.0.to_be_bytes());
            list.extend([count, index]);
            list.extend(signature);
            list.extend(tree.path(index.into()).flat_map(|node| node.0));
            list.extend(digests);
            list
        });
        Self { lists: lists.collect() }
    }

    /// The lists, each as the payload of a packet.
    pub fn into_lists(self) -> Vec<Vec<u8>> {
        self.lists
    }
}

/// Largest height of the tree of a group.
const MAX_HEIGHT: u32 = 6;

/// Height of the tree over so many lists.
fn height(lists: u8) -> u32 {
    u32::from(lists).next_power_of_two().trailing_zeros()
}

fn signed_message(
    instance: InstanceId,
    GroupNumber(number): GroupNumber,
    lists: u8,
    root: SymbolDigest,
) -> Vec<u8> {
    [GROUP_CONTEXT, &instance.0, &number.to_be_bytes(), &[lists], &root.0].concat()
}

/// The hash tree over the lists of a group. Leaves that are missing to the next power of two are
/// zeros.
struct Tree {
    /// The leaves first, the root last.
    levels: Vec<Vec<SymbolDigest>>,
}

impl Tree {
    fn new(mut leaves: Vec<SymbolDigest>) -> Self {
        leaves.resize(leaves.len().next_power_of_two(), SymbolDigest::default());
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let node = |pair: &[SymbolDigest]| match *pair {
                [left, right] => SymbolDigest::of_node(left, right),
                _ => SymbolDigest::default(),
            };
            let level = below.chunks(2).map(node).collect();
            levels.push(level);
        }
        Self { levels }
    }

    fn root(&self) -> SymbolDigest {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or_default()
    }

    /// The sibling of the leaf, and of each node above it below the root.
    fn path(&self, leaf: usize) -> impl Iterator<Item = SymbolDigest> + '_ {
        let below_root = self.levels.iter().take_while(|level| level.len() > 1);
        below_root.enumerate().map(move |(height, level)| {
            level.get((leaf >> height) ^ 1).copied().unwrap_or_default()
        })
    }
}

/// A received list, not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestList<'a> {
    instance: [u8; INSTANCE_START],
    number: GroupNumber,
    lists: u8,
    index: u8,
    signature: Signature,
    path: &'a [u8],
    digests: &'a [u8],
}

impl<'a> DigestList<'a> {
    /// Most digests of a list: with the other fields they fit a packet of 1 400 bytes.
    pub const MAX_DIGESTS: usize = 96;
    /// Size in bytes of the longest list.
    pub const MAX_SIZE: usize = Self::size_of(Self::MAX_DIGESTS);

    /// Bytes of a list of so many digests in the largest group.
    pub const fn size_of(digests: usize) -> usize {
        let path = (MAX_HEIGHT as usize).saturating_mul(SymbolDigest::SIZE);
        FIXED_BYTES.saturating_add(path).saturating_add(digests.saturating_mul(SymbolDigest::SIZE))
    }

    /// The number of digests of a list that has at most so many bytes. 0: it has room for none.
    pub fn digests_in(bytes: usize) -> usize {
        let room = bytes.saturating_sub(Self::size_of(0));
        (room / SymbolDigest::SIZE).min(Self::MAX_DIGESTS)
    }

    /// Parses a list from the payload of a packet.
    ///
    /// # Errors
    /// [`DigestListError`] if the bytes are not the encoding of a list.
    pub fn parse(payload: &'a [u8]) -> Result<Self, DigestListError> {
        let truncated = DigestListError::Truncated { actual: payload.len() };
        let mut reader = Reader::new(payload);
        let instance = reader.array().ok_or(truncated)?;
        let number = GroupNumber(reader.u64().ok_or(truncated)?);
        let lists = reader.u8().ok_or(truncated)?;
        let index = reader.u8().ok_or(truncated)?;
        if !(1..=DigestGroup::MAX_LISTS).contains(&lists.into()) || index >= lists {
            return Err(DigestListError::Number { lists, index });
        }
        let signature = reader.array().ok_or(truncated)?;
        let path_bytes = (height(lists) as usize).saturating_mul(SymbolDigest::SIZE);
        let path = reader.take(path_bytes).ok_or(truncated)?;
        let digests = reader.rest();
        let (count, rest) =
            (digests.len() / SymbolDigest::SIZE, digests.len() % SymbolDigest::SIZE);
        if rest != 0 || !(1..=Self::MAX_DIGESTS).contains(&count) {
            return Err(DigestListError::Digests { bytes: digests.len() });
        }
        Ok(Self { instance, number, lists, index, signature, path, digests })
    }

    /// Whether the list claims to be of this sender's run.
    pub fn is_of(&self, instance: InstanceId) -> bool {
        instance.0.starts_with(&self.instance)
    }

    /// Number of its group.
    pub fn group(&self) -> GroupNumber {
        self.number
    }

    /// Lists of its group, 1 to [`DigestGroup::MAX_LISTS`].
    pub fn lists(&self) -> u8 {
        self.lists
    }

    /// Its number among the lists of the group.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// The root of the tree of its group, if the list belongs to it.
    pub fn root(&self) -> SymbolDigest {
        let mut node = SymbolDigest::of_list(self.digests);
        for (height, sibling) in self.path.as_chunks().0.iter().enumerate() {
            let sibling = SymbolDigest(*sibling);
            let is_left = (usize::from(self.index) >> height) & 1 == 0;
            let (left, right) = if is_left { (node, sibling) } else { (sibling, node) };
            node = SymbolDigest::of_node(left, right);
        }
        node
    }

    /// Whether the sender of this run has signed the group with this root, with this key. Takes
    /// about 50 microseconds. A receiver remembers the roots that it has verified.
    pub fn verifies(&self, key: &PublicKey, instance: InstanceId, root: SymbolDigest) -> bool {
        let message = signed_message(instance, self.number, self.lists, root);
        self.is_of(instance) && key.verifies(&message, &self.signature)
    }

    /// The digests, in the order in which the symbols are sent.
    pub fn digests(&self) -> impl ExactSizeIterator<Item = SymbolDigest> + use<'a> {
        self.digests.as_chunks().0.iter().map(|&digest| SymbolDigest(digest))
    }
}

/// Reason why bytes are not a list of digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestListError {
    /// Bytes that end too early.
    #[error("{actual} bytes are too few for a list of digests")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// Numbers that no list has.
    #[error("list {index} of a group of {lists} lists, of which it has 1 to 64")]
    Number {
        /// Lists of the group.
        lists: u8,
        /// Number of the list.
        index: u8,
    },
    /// Bytes that are not 1 to 96 digests.
    #[error("{bytes} bytes of digests, which are 1 to 96 of 12 bytes")]
    Digests {
        /// Number of bytes.
        bytes: usize,
    },
}

/// The announcement in a head that its sender sends lists, and the key that signs them. The
/// publisher certifies the key by signing the head, which also has the instance and the expiry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestKey(pub PublicKey);

impl DigestKey {
    /// Bytes that the record adds to a head that has records.
    pub const RECORD_BYTES: usize = 2 + PublicKey::SIZE;

    /// The records, and that of the key. `None` if they have one already.
    pub fn add_to(&self, records: &HeadRecords) -> Option<HeadRecords> {
        records.with(RECORD, self.0.to_bytes().to_vec())
    }

    /// The key in the records of a head; `None` if there is none, or one that no signature can be
    /// checked with.
    pub fn of(records: &HeadRecords) -> Option<Self> {
        let value = records.get(RECORD)?.try_into().ok()?;
        PublicKey::from_bytes(value).ok().map(Self)
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestKey({})", self.0)
    }
}
