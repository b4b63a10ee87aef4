#!/usr/bin/env bash
# Each system call of the tables of calls that the content does not need (store/src/disk/tolerant.rs,
# net/src/optional.rs) fails once, and always. Judged are exit codes and bytes: all files and 0, with
# a warning of some calls; of calls that files need, another code, and no file with other bytes.
LIMIT=${LIMIT:-900}
export LIMIT
. "$(dirname "$0")/prelude.sh"
files=(a 1 2 3)
tried=0 failed=0

mkdir d
random 1500000 d/a
for file in 1 2 3; do
  random 3000 "d/$file"
done

# Sends and receives; one side's calls fail: inject SIDE CALLS ERROR WHEN. Sets $received, $sent,
# $right (files) and $faults.
inject() {
  local side=$1 traced=(timeout -k 2 40 strace -f -qq -o st -e "trace=$2"
    -e "inject=$2:error=$3$4")
  local sending=() receiving=()
  [ "$side" = send ] && sending=("${traced[@]}") || receiving=("${traced[@]}")
  rm -rf o st t
  "${sending[@]}" "$FONTANA" send d -i lo --rate 40M --for 20 --ticket-file t >s.log 2>&1 &
  local sending_process=$!
  until_true 100 test -s t -o ! -d /proc/$sending_process
  received=- right=0
  if [ -s t ]; then
    "${receiving[@]}" timeout -k 2 30 "$FONTANA" recv "$(cat t)" -i lo -o o \
      --silence 3 >r.log 2>&1
    received=$?
  fi
  # The program, and not strace: this namespace has no other processes of that name.
  pkill -INT -x fontana
  wait "$sending_process"
  sent=$?
  for file in "${files[@]}"; do
    cmp -s "d/$file" "o/d/$file" && right=$((right + 1))
  done
  faults=$(grep -c INJECTED st)
}

# judge EXPECTED WHAT: completes, warns, fails or ends.
judge() {
  local log=r.log good=0
  tried=$((tried + 1))
  case $1 in
    warns) [ "$received" = 0 ] && [ "$right" = 4 ] && grep -q ^warning r.log && good=1 ;;
    completes) [ "$received" = 0 ] && [ "$right" = 4 ] && good=1 ;;
    fails) [ "$received" != 0 ] && [ "$received" -lt 100 ] && good=1 ;;
    # Or it says why not, in time: no call is made twice in vain, and nothing panics.
    ends)
      [ "$received" = 0 ] && [ "$right" = 4 ] && good=1
      [ "$received" = - ] && log=s.log
      [ "$good" = 0 ] && [[ $received == - || $received -lt 100 ]] && [ "$sent" -lt 131 ] &&
        [ "$sent" != 101 ] && grep -q ^error "$log" && good=1
      ;;
  esac
  # What is there is right.
  for file in "${files[@]}"; do
    [ ! -e "o/d/$file" ] || cmp -s "d/$file" "o/d/$file" || good=0
  done
  ((good)) && return
  failed=$((failed + 1))
  echo "sweep: $2: $1 expected: recv $received, send $sent, $right of 4 files: $(last "$log" 3)"
}

# One row of the tables: sweep EXPECTED SIDE CALLS ERROR.
sweep() {
  local when
  for when in "" :when=1; do
    inject "$2" "$3" "$4" "$when"
    [ "$faults" = 0 ] && { tried=$((tried + 1)) failed=$((failed + 1)); echo "sweep: no $3"; continue; }
    judge "$1" "$2 $3 $4 ${when:-always}"
  done
}

sweep warns recv fchmod,fchmodat EPERM
sweep warns recv utimensat EPERM
sweep completes recv fallocate EOPNOTSUPP
sweep warns recv fsync,fdatasync,syncfs EINVAL
sweep warns recv fsync,fdatasync,syncfs ENOSYS
sweep completes recv flock ENOSYS
sweep fails recv fsync,fdatasync EIO

# Options of sockets are told apart by their number only: each fails once.
for side in recv send; do
  inject "$side" setsockopt ENOPROTOOPT :when=1000
  calls=$(grep -c '^[0-9]* *setsockopt' st)
  for ((number = 1; number <= calls && number <= 40; number++)); do
    inject "$side" setsockopt ENOPROTOOPT ":when=$number"
    judge ends "$side setsockopt $number"
  done
  inject "$side" setsockopt EPERM ""
  judge ends "$side setsockopt always"
done
sweep completes recv setpriority EPERM
sweep completes send setpriority EPERM

# A receiver that is killed holds no lock, whatever the lock file says.
rm -rf o t
random 40000000 large
start_sender large --rate 40M
without_locks=(strace -f -qq -o st -e trace=flock -e inject=flock:error=ENOSYS)
"${without_locks[@]}" "$FONTANA" recv "$(cat t)" -i lo -o o >r.log 2>&1 &
disown
until_true 50 bash -c 'test -s o/.fontana*/lock'
received=0
timeout 5 "${without_locks[@]}" "$FONTANA" recv "$(cat t)" -i lo -o o >r.log 2>&1 || received=$?
tried=$((tried + 1))
[ "$received" = 6 ] || { failed=$((failed + 1)); echo "sweep: a locked directory: recv $received"; }
kill -KILL "$(awk '{ print $3 }' o/.fontana*/lock)"
sleep .5
timeout 30 "${without_locks[@]}" "$FONTANA" recv "$(cat t)" -i lo -o o >r.log 2>&1
tried=$((tried + 1))
cmp -s large o/large || { failed=$((failed + 1)); echo "sweep: after a kill: $(last r.log 2)"; }
stop_sender
((failed == 0)) && right "$tried conditions"
wrong "$failed of $tried conditions"
