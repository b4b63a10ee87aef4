#!/usr/bin/env bash
# Many small files, and a receiver that joins late: bytes on the wire against content and manifest.
. "$(dirname "$0")/prelude.sh"
mkdir m
python3 -c "
import os
for i in range(12000):
    open(f'm/file-{i:06}', 'wb').write(os.urandom(50) * 4)"
start_sender m --rate 40M
sleep 4
seconds=30 receive -o out --json
stop_sender
bytes=$(grep -o '"payload_bytes":[0-9]*' r.log | tail -1 | cut -d: -f2)
content=$((12000 * 200))
manifest=$((12000 * 50))
[ $received = 0 ] && [ "$bytes" -lt $((3 * (content + manifest))) ] &&
  right "$bytes bytes for $content of content and about $manifest of manifest"
wrong "recv $received: $bytes bytes for $content of content and about $manifest of manifest"
