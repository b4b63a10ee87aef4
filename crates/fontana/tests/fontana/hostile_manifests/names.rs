//! Names that a hostile publisher may try.

/// Names that no entry of a manifest may have.
pub(crate) fn that_are_none() -> Vec<Vec<u8>> {
    let upwards: &[&[u8]] = &[
        b"..",
        b"../",
        b"../x",
        b"../../../../../../../../etc/passwd",
        b"a/..",
        b"a/../x",
        b"a/../../x",
        b"a/b/../../../x",
        b"../into/x",
        b"../.fontana-x/0",
        b"a/../.fontana-x",
        b"..//x",
    ];
    let here: &[&[u8]] = &[b".", b"./", b"./x", b"a/.", b"a/./x", b"./../x", b"././x"];
    let absolute: &[&[u8]] =
        &[b"/", b"/x", b"//x", b"//host/share", b"/etc/passwd", b"/proc/self/root/x", b"/dev/null"];
    let empty: &[&[u8]] = &[b"", b"a/", b"a//b", b"a///b", b"a/b/"];
    let zero: &[&[u8]] = &[
        b"\0",
        b"a\0",
        b"\0a",
        b"a\0b",
        b"a/b\0",
        b"..\0",
        b"\0/../x",
        b"a\0/../b",
        b"x.txt\0.exe",
    ];
    let long = [256, 257, 4096, 65_536].map(|length| vec![b'x'; length]);
    let long_below = [256, 1024].map(|length| [b"a/".to_vec(), vec![b'x'; length]].concat());
    let deep = [33, 34, 256, 2000].map(|depth| vec!["d"; depth].join("/").into_bytes());
    [upwards, here, absolute, empty, zero]
        .concat()
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain(long)
        .chain(long_below)
        .chain(deep)
        .collect()
}

/// Names that other systems, shells or terminals interpret. Here they are valid names, and a file
/// is received under each.
pub(crate) fn that_are_harmless_here() -> Vec<Vec<u8>> {
    let dots: &[&[u8]] =
        &[b"...", b"....", b".. ", b" ..", b"..;", b".\xe2\x80\x8b.", b"a..", b"..a"];
    let other_separators: &[&[u8]] = &[
        b"..\\x",
        b"\\..\\..\\x",
        b"a\\..\\x",
        b"\\\\host\\share",
        b"\\\\?\\C:\\x",
        b"..\xef\xbc\x8fx",
        b"\xef\xbc\x8e\xef\xbc\x8e",
        b"..\xe2\x88\x95x",
        b"\xc0\xae\xc0\xae\xc0\xaf",
        b"\xe0\x80\xae",
        b"%2e%2e%2fx",
        b"..%2fx",
        b"%00",
        b"..%c0%afx",
    ];
    let windows: &[&[u8]] = &[
        b"C:",
        b"C:x",
        b"C:\\x",
        b"CON",
        b"nul.txt",
        b"AUX",
        b"COM1",
        b"LPT1.a",
        b"a:b",
        b"a.",
        b"a ",
        b"CONIN$",
        b"desktop.ini",
        b"x.lnk",
        b"A~1",
        b"a::$DATA",
    ];
    let shells: &[&[u8]] = &[
        b"-rf", b"--help", b"-", b"~", b"~root", b"$HOME", b"`id`", b"$(id)", b";id", b"|id",
        b"&id", b"*", b"?", b"[a]", b"{a,b}", b"'", b"\"", b"#", b"!", b" ", b"=",
    ];
    let terminals: &[&[u8]] = &[
        b"\n",
        b"\r",
        b"\t",
        b"a\nb",
        b"\x1b[2J",
        b"\x1b]0;title\x07",
        b"\x7f",
        b"\x08",
        b"\xc2\x9b2J",
        b"\xe2\x80\xaegpj.exe",
        b"\xe2\x81\xa6x",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
    ];
    let bytes: &[&[u8]] = &[
        b"\xff",
        b"\xfe\xff",
        b"\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"e\xcc\x81",
        b"\xc3\xa9",
    ];
    let of_ours_or_the_system: &[&[u8]] = &[
        b"0",
        b"0.repair",
        b"journal",
        b"lock",
        b"manifest",
        b".fontana",
        b"fontana-1",
        b"d/.fontana-1",
        b".git/config",
        b".ssh/authorized_keys",
        b".bashrc",
        b"proc/self/mem",
        b"etc/passwd",
        b"lost+found/x",
        b"dev/null",
    ];
    let limits = [vec![b'x'; 255], vec!["d"; 32].join("/").into_bytes()];
    [dots, other_separators, windows, shells, terminals, bytes, of_ours_or_the_system]
        .concat()
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain(limits)
        .collect()
}
