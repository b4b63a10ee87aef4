#!/usr/bin/env bash
# A file in a hot folder cannot be read; another new file arrives.
. "$(dirname "$0")/prelude.sh"
mkdir in out
echo 1 >in/a
"$FONTANA" keygen k >/dev/null
chown -R 65534 .
user="setpriv --reuid 65534 --clear-groups"
$user "$FONTANA" send in --watch --sign k -i lo --ticket-file t >s.log 2>&1 &
until_true 50 test -s t
$user "$FONTANA" recv "$(cat t)" -i lo --watch -o out >r.log 2>&1 &
until_true 100 test -e out/in/a || wrong "no first version: $(last s.log 3) $(last r.log 3)"
$user bash -c 'echo x >in/secret; chmod 000 in/secret'
echo 2 >in/b
chown 65534 in/b
until_true 150 test -e out/in/b && right "b is there; $(last s.log 2)"
wrong "b is not there after 15 s: $(last s.log 3)"
