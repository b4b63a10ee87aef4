//! The originals, called as their users call them: what depends on the code or on the lost shards
//! is made beforehand, if the library offers it.

use super::{Call, Group, Work};
use reed_solomon_erasure::galois_8::ReedSolomon;
use std::ffi::c_int;

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Original {
    /// The crate `reed-solomon-erasure`, with its kernels in C.
    ReedSolomonErasure,
    /// klauspost/reedsolomon, by the mode of `klauspost.go`.
    Klauspost(c_int),
    /// ISA-L with `gf_gen_cauchy1_matrix`.
    IsaLCauchy,
    /// ISA-L with `gf_gen_rs_matrix`.
    IsaLVandermonde,
    /// zfec, which inverts a matrix each time.
    Zfec,
}

impl Original {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ReedSolomonErasure => "reed-solomon-erasure",
            Self::Klauspost(_) => "klauspost",
            Self::IsaLCauchy | Self::IsaLVandermonde => "ISA-L",
            Self::Zfec => "zfec",
        }
    }

    /// Encodes into shards that it has.
    pub(super) fn encoder(self, group: &Group) -> Work<'_> {
        let mut parity = vec![vec![0; group.size]; group.parity.len()];
        let (k, size) = (group.data.len(), group.size);
        match self {
            Self::ReedSolomonErasure => {
                let code = ReedSolomon::new(k, parity.len()).unwrap();
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        code.encode_sep(&group.data, &mut parity).unwrap();
                    }),
                    Call::Read(to) => *to = parity.concat(),
                })
            }
            Self::Klauspost(mode) => {
                let klauspost = klauspost::Group::new(mode, group, false);
                Box::new(move |call| klauspost.encode(call))
            }
            Self::IsaLCauchy | Self::IsaLVandermonde => {
                let matrix = isal::matrix(self == Self::IsaLCauchy, k, k + parity.len());
                let tables = isal::Tables::new(&matrix[k * k..], k);
                let source: Vec<_> = group.data.iter().map(|shard| shard.as_ptr()).collect();
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        tables.encode(size, &source, &mut parity);
                    }),
                    Call::Read(to) => *to = parity.concat(),
                })
            }
            Self::Zfec => {
                let code = zfec::Code::new(k, parity.len());
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        code.encode(&group.data, &mut parity, size);
                    }),
                    Call::Read(to) => *to = parity.concat(),
                })
            }
        }
    }

    /// Recovers the first data shards, from the others and as many parity shards.
    pub(super) fn decoder(self, group: &Group) -> Work<'_> {
        let (k, size, lost) = (group.data.len(), group.size, group.lost());
        let mut out = vec![vec![0; size]; lost];
        let rest = group.data[lost..].iter();
        match self {
            Self::ReedSolomonErasure => {
                let code = ReedSolomon::new(k, group.parity.len()).unwrap();
                let mut shards = group.shards();
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        shards[..lost].fill(None);
                        code.reconstruct_data(&mut shards).unwrap();
                    }),
                    Call::Read(to) => {
                        *to = shards[..lost].iter().flatten().flatten().copied().collect()
                    }
                })
            }
            Self::Klauspost(mode) => {
                let klauspost = klauspost::Group::new(mode, group, true);
                Box::new(move |call| klauspost.reconstruct(call))
            }
            Self::IsaLCauchy | Self::IsaLVandermonde => {
                let matrix = isal::matrix(self == Self::IsaLCauchy, k, k + group.parity.len());
                let row = |matrix: &[u8], index: usize| matrix[index * k..][..k].to_vec();
                let rows = (lost..k + lost).flat_map(|index| row(&matrix, index)).collect();
                let inverse = isal::invert(rows, k);
                let tables = isal::Tables::new(&inverse[..lost * k], k);
                let received: Vec<_> =
                    rest.chain(&group.parity[..lost]).map(|shard| shard.as_ptr()).collect();
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        tables.encode(size, &received, &mut out);
                    }),
                    Call::Read(to) => *to = out.concat(),
                })
            }
            Self::Zfec => {
                let code = zfec::Code::new(k, group.parity.len());
                // A data shard that is available is in its place.
                let received: Vec<_> =
                    group.parity[..lost].iter().chain(rest).map(Vec::as_slice).collect();
                let numbers: Vec<_> = (k..k + lost).chain(lost..k).map(|i| i as u32).collect();
                Box::new(move |call| match call {
                    Call::Run(times) => (0..times).for_each(|_| {
                        code.decode(&received, &numbers, &mut out, size);
                    }),
                    Call::Read(to) => *to = out.concat(),
                })
            }
        }
    }
}

/// `klauspost.go`, in the library that `.ci/originals` makes.
mod klauspost {
    use super::Call;
    use std::ffi::c_int;

    #[link(name = "klauspost")]
    unsafe extern "C" {
        fn klauspost_new(
            mode: c_int,
            data: c_int,
            parity: c_int,
            shards: *const *mut u8,
            size: c_int,
            lost: c_int,
        ) -> c_int;
        fn klauspost_encode(group: c_int, times: c_int);
        fn klauspost_reconstruct(group: c_int, times: c_int);
    }

    pub(super) struct Group {
        number: c_int,
        shards: Vec<*mut u8>,
        size: usize,
        data: usize,
        lost: usize,
    }

    impl Group {
        /// With parity shards if they `are_known`. The shards are never freed: the library has
        /// references to them.
        pub(super) fn new(mode: c_int, group: &super::Group, are_known: bool) -> Self {
            let zeros = vec![vec![0; group.size]; group.parity.len()];
            let parity = if are_known { &group.parity } else { &zeros };
            let copies = group.data.iter().chain(parity).cloned();
            let shards: Vec<*mut u8> = copies.map(|shard| shard.leak().as_mut_ptr()).collect();
            let (data, lost) = (group.data.len(), group.lost());
            let counts = [data, parity.len(), group.size, lost].map(|count| count as c_int);
            let [k, m, size, lost_shards] = counts;
            // SAFETY: `k + m` shards of `size` bytes, which live until the process ends.
            let number = unsafe { klauspost_new(mode, k, m, shards.as_ptr(), size, lost_shards) };
            Self { number, shards, size: group.size, data, lost }
        }

        pub(super) fn encode(&self, call: Call<'_>) {
            match call {
                // SAFETY: the group exists.
                Call::Run(times) => unsafe { klauspost_encode(self.number, times as c_int) },
                Call::Read(to) => *to = self.read(&self.shards[self.data..]),
            }
        }

        pub(super) fn reconstruct(&self, call: Call<'_>) {
            match call {
                // SAFETY: the group exists.
                Call::Run(times) => unsafe { klauspost_reconstruct(self.number, times as c_int) },
                Call::Read(to) => *to = self.read(&self.shards[..self.lost]),
            }
        }

        fn read(&self, shards: &[*mut u8]) -> Vec<u8> {
            // SAFETY: shards of `size` bytes, which no call is writing to.
            let read = |&shard: &*mut u8| unsafe { std::slice::from_raw_parts(shard, self.size) };
            shards.iter().map(read).collect::<Vec<_>>().concat()
        }
    }
}

/// The functions of ISA-L (`erasure_code.h`) that are needed, with slices.
mod isal {
    use std::ffi::c_int;

    #[link(name = "isal")]
    unsafe extern "C" {
        fn gf_gen_cauchy1_matrix(matrix: *mut u8, rows: c_int, k: c_int);
        fn gf_gen_rs_matrix(matrix: *mut u8, rows: c_int, k: c_int);
        fn gf_invert_matrix(matrix: *mut u8, inverse: *mut u8, n: c_int) -> c_int;
        fn ec_init_tables(k: c_int, rows: c_int, matrix: *const u8, tables: *mut u8);
        fn ec_encode_data(
            length: c_int,
            k: c_int,
            rows: c_int,
            tables: *const u8,
            data: *const *const u8,
            coding: *const *mut u8,
        );
    }

    /// The identity, and below it the rows of the parity shards: `rows x k` in all.
    pub(super) fn matrix(is_cauchy: bool, k: usize, rows: usize) -> Vec<u8> {
        let mut matrix = vec![0; rows * k];
        let make = if is_cauchy { gf_gen_cauchy1_matrix } else { gf_gen_rs_matrix };
        // SAFETY: the matrix has room for `rows x k` bytes.
        unsafe { make(matrix.as_mut_ptr(), rows as c_int, k as c_int) };
        matrix
    }

    pub(super) fn invert(mut matrix: Vec<u8>, k: usize) -> Vec<u8> {
        assert_eq!(matrix.len(), k * k);
        let mut inverse = vec![0; k * k];
        // SAFETY: both matrices are of `k x k` bytes.
        let result =
            unsafe { gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), k as c_int) };
        assert_eq!(result, 0, "consecutive parity shards determine as many data shards");
        inverse
    }

    /// Look-up tables for products with the rows of a matrix.
    pub(super) struct Tables {
        k: usize,
        rows: usize,
        tables: Vec<u8>,
    }

    impl Tables {
        pub(super) fn new(matrix: &[u8], k: usize) -> Self {
            let rows = matrix.len() / k;
            let mut tables = vec![0; 32 * k * rows];
            // SAFETY: the matrix has `rows x k` bytes, and the tables take 32 for each of them.
            unsafe {
                ec_init_tables(k as c_int, rows as c_int, matrix.as_ptr(), tables.as_mut_ptr());
            }
            Self { k, rows, tables }
        }

        /// Writes one shard for each row into `out`. `data` are `k` shards of `size` bytes.
        pub(super) fn encode(&self, size: usize, data: &[*const u8], out: &mut [Vec<u8>]) {
            assert!(data.len() == self.k && out.len() == self.rows);
            assert!(out.iter().all(|shard| shard.len() == size));
            let coding: Vec<_> = out.iter_mut().map(|shard| shard.as_mut_ptr()).collect();
            // SAFETY: `k` shards are read and `rows` written, each of `size` bytes, with tables
            // that were made for these numbers.
            unsafe {
                ec_encode_data(
                    size as c_int,
                    self.k as c_int,
                    self.rows as c_int,
                    self.tables.as_ptr(),
                    data.as_ptr(),
                    coding.as_ptr(),
                );
            }
        }
    }
}

/// The functions of zfec (`fec.h`), in the library that `.ci/originals` makes.
mod zfec {
    use std::ffi::{c_ushort, c_void};

    #[link(name = "zfec")]
    unsafe extern "C" {
        fn fec_init();
        fn fec_new(k: c_ushort, all: c_ushort) -> *mut c_void;
        fn fec_free(code: *mut c_void);
        fn fec_encode(
            code: *const c_void,
            source: *const *const u8,
            parity: *const *mut u8,
            numbers: *const u32,
            count: usize,
            size: usize,
        );
        fn fec_decode(
            code: *const c_void,
            received: *const *const u8,
            out: *const *mut u8,
            numbers: *const u32,
            size: usize,
        );
    }

    pub(super) struct Code {
        code: *mut c_void,
        k: usize,
        parity: usize,
    }

    impl Code {
        pub(super) fn new(k: usize, parity: usize) -> Self {
            // SAFETY: at most 256 shards.
            let code = unsafe {
                fec_init();
                fec_new(k as c_ushort, (k + parity) as c_ushort)
            };
            Self { code, k, parity }
        }

        pub(super) fn encode(&self, data: &[Vec<u8>], parity: &mut [Vec<u8>], size: usize) {
            assert!(data.len() == self.k && parity.len() == self.parity);
            assert!(data.iter().chain(&*parity).all(|shard| shard.len() == size));
            let source: Vec<_> = data.iter().map(|shard| shard.as_ptr()).collect();
            let coding: Vec<_> = parity.iter_mut().map(|shard| shard.as_mut_ptr()).collect();
            let numbers: Vec<u32> = (0..self.parity).map(|i| (self.k + i) as u32).collect();
            // SAFETY: shards of `size` bytes, as many as the code has.
            unsafe {
                let (source, coding) = (source.as_ptr(), coding.as_ptr());
                fec_encode(self.code, source, coding, numbers.as_ptr(), self.parity, size);
            }
        }

        /// `numbers` are those of the received shards, each data shard in its place.
        pub(super) fn decode(
            &self,
            received: &[&[u8]],
            numbers: &[u32],
            out: &mut [Vec<u8>],
            size: usize,
        ) {
            assert!(received.len() == self.k && numbers.len() == self.k);
            assert!(received.iter().all(|shard| shard.len() == size));
            assert!(out.iter().all(|shard| shard.len() == size));
            let received: Vec<_> = received.iter().map(|shard| shard.as_ptr()).collect();
            let out: Vec<_> = out.iter_mut().map(|shard| shard.as_mut_ptr()).collect();
            // SAFETY: `k` shards of `size` bytes are read, and one is written for each data shard
            // that is not among them.
            unsafe {
                fec_decode(self.code, received.as_ptr(), out.as_ptr(), numbers.as_ptr(), size);
            }
        }
    }

    impl Drop for Code {
        fn drop(&mut self) {
            // SAFETY: `fec_new` made it.
            unsafe { fec_free(self.code) }
        }
    }
}
