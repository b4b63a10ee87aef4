# What all cases share: each is a script that makes one ordinary condition, runs the program
# ($FONTANA) in it, as root, and prints one line: RIGHT and ends with 0, or WRONG and ends with 1.
# A case runs in network, mount and process namespaces of its own, in an empty directory. All of its
# processes end with it.
: "${FONTANA:=fontana}"
export FONTANA RUST_BACKTRACE=0
name=$(basename "$0" .sh)
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${CASE_DIR:-}" ]; then
  CASE_DIR=$(mktemp -d)
  chmod 755 "$CASE_DIR"
  code=0
  CASE_DIR=$CASE_DIR timeout -k 2 "${LIMIT:-60}" unshare -nmpf --kill-child=KILL --mount-proc \
    bash "$0" "$@" || code=$?
  rm -rf "$CASE_DIR"
  ((code <= 1)) && exit "$code"
  echo "$name: WRONG: no verdict in time ($code)"
  exit 1
fi
cd "$CASE_DIR" || exit 1
ip link set lo up
ip link set lo multicast on

right() { echo "$name: RIGHT: $*"; exit 0; }
wrong() { echo "$name: WRONG: $*"; exit 1; }

# The last lines of a file, one after the other: last FILE [COUNT].
last() { tail -n "${2:-1}" "$1" | tr '\n' '|'; }

# Makes a file of random bytes: random BYTES FILE.
random() { head -c "$1" /dev/urandom >"$2"; }

# Waits until a command succeeds: until_true TENTHS COMMAND...
until_true() {
  local tenths=$1
  shift
  for ((tenth = 0; tenth < tenths; tenth++)); do
    "$@" && return
    sleep .1
  done
  return 1
}

# Starts a sender, and waits for its ticket in the file t. Its process: $sender.
start_sender() {
  rm -f t
  "$FONTANA" send "$@" -i lo --ticket-file t >s.log 2>&1 &
  sender=$!
  until_true 100 test -s t -o ! -d /proc/$sender
}

# Stops it as Ctrl-C does. Its exit code: $sent.
stop_sender() {
  kill -INT "$sender" 2>/dev/null
  wait "$sender"
  sent=$?
}

# Receives for at most $seconds (40). The exit code: $received.
receive() {
  timeout "${seconds:-40}" "$FONTANA" recv "$(cat t)" -i lo "$@" >r.log 2>&1
  received=$?
}

# Publishes files for mirrors, and prints the ticket.
published() { "$FONTANA" publish "$@" 2>&1 | grep -o "fontana://[^' ]*" | head -1; }

# Starts a web server with one defect: web MODE PORT DIR [ARGUMENT].
web() {
  python3 "$here/web.py" "$@" 2>"web$2.log" &
  until_true 50 bash -c "exec 3<>/dev/tcp/127.0.0.1/$2" 2>/dev/null
}

# Whether an injected fault was met, and how often: $faults. The trace is in the file st.
count_faults() {
  faults=$(grep -c INJECTED st)
  [ "$faults" != 0 ] || wrong "nothing injected"
}
