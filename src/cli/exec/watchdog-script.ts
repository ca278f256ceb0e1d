/** The watchdog's program: POSIX sh, for dash, busybox ash and bash alike. watchdog.ts says what it does and why. */

/**
 * Descriptor 3 is the socket to the wrapper. `$1` is the instance, `$2` the grace period in tenths of a second.
 *
 * - 4 and 5 become pipes: shells put short here-documents into one. bash before 5.1 uses a file: then named pipes, unlinked.
 *   Closed at the start, also in the timer: a job whose reader has gone must meet SIGPIPE, which our ends would keep away.
 * - A trapped signal makes `read` fail as end-of-file does (dash tells the two apart by nothing), but only end-of-file
 *   means that the wrapper is gone: after a signal, read again. TERM and the like reach everybody in a systemd unit that
 *   is stopped, and must not end the one that watches.
 * - A lease is a deadline in hundredths of a second of /proc/uptime, which goes on while the machine is suspended.
 *   A timer sleeps up to it and then wakes the shell with USR1 (again every second, lest one falls between two commands),
 *   which looks whether the deadline was moved meanwhile: so a heartbeat starts no process, and there is only one timer.
 * - The timer is ended through its trap, so that its `sleep` is reaped by its parent: orphans would pile up as zombies
 *   under a process 1 that does not reap. By USR2, for which the shell itself has no trap: a trapped signal that falls
 *   between the fork of the timer and its first command would be lost, and the shell would wait for the whole nap.
 *   For the same reason a `sleep` is ended by KILL.
 * - Without a group (the wrapper died between fork and telling it) the job is recognised by its environment, Linux only;
 *   twice more after a second, for a child that was not yet through execve.
 */
export const WATCHDOG_SCRIPT = String.raw`# runledger watchdog: ends the job when its wrapper is gone or frozen past its lease
exec 4<<E 5<<E
-
E
-
E
[ -p /dev/fd/4 ] || { d=$(mktemp -d) && mkfifo "$d/4" "$d/5" && exec 4<>"$d/4" 5<>"$d/5"; rm -rf "$d"; }
trap signal=1 HUP INT QUIT TERM
trap 'signal=1 tick=1' USR1
id=$1 grace=$2 started= group= deadline= timer= signal= tick=

now() {
  if IFS='. ' read -r s cs _ </proc/uptime; then t=$s$cs; else t=$(date +%s)00; fi
}
start_timer() {
  [ "$timer" ] || { nap $(($1 + 10)) & timer=$!; }
}
nap() {
  exec 4<&- 5<&-
  trap 'kill -KILL $!; wait; exit' USR2
  sleep $(($1 / 100)).$(($1 % 100 / 10)) & wait $!
  while kill -USR1 $$; do sleep 1 & wait $!; done
}
stop_timer() {
  [ "$timer" ] && kill -USR2 "$timer" && wait "$timer"
  timer=
}
look() {
  tick=
  stop_timer
  now
  if [ "$t" -lt "$deadline" ]; then start_timer $((deadline - t)); else end_group; fi
}
end_group() {
  deadline=
  kill -TERM -"$group" && kill -CONT -"$group"
  i=0
  while [ $i -lt "$grace" ] && kill -0 -"$group"; do sleep 0.1; i=$((i + 1)); done
  kill -KILL -"$group"
}
hunt() {
  kill -KILL $(cd /proc && grep -sl "RUNLEDGER_INSTANCE_ID=$id" [0-9]*/environ | tr -dc '0-9\n')
}

echo ready >&3
while :; do
  read -r word value <&3 || { [ "$signal" ] && word= || word=end; signal=; }
  [ "$tick" ] && [ "$deadline" ] && look
  case $word in
    end) break ;;
    start) started=1; exec 4<&- 5<&- ;;
    group) group=$value ;;
    lease) now; deadline=$((t + value)); start_timer "$value" ;;
    done) stop_timer; exit 0 ;;
  esac
done
[ "$group" ] && kill -KILL -"$group"
stop_timer
[ "$started" ] && [ -z "$group" ] && { hunt; sleep 1; hunt; sleep 1; hunt; }
exit 0
`
