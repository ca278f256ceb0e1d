#!/usr/bin/env bash
# A MariaDB Galera cluster of three nodes on loopback, of Debian's packages; everything it writes stays in one folder.
#   scripts/galera.sh start [--owner PID] DIR     prints GALERA_1=URL to GALERA_3=URL when all three are in the cluster
#   scripts/galera.sh kill DIR N                  SIGKILL to node N and all that belongs to it
#   scripts/galera.sh rejoin DIR N                starts it again, and returns when it is synced
#   scripts/galera.sh stop DIR                    ends what start began in DIR
# With --owner they also end within seconds of the death of that process, however it dies. What was committed does not survive
# a crash of the whole cluster, as a demonstration wants it.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/toolchain.sh"
self=$root/scripts/galera.sh
PATH=$PATH:/usr/sbin
nodes='1 2 3'

main() {
  local command=${1:-} owner='' dir
  shift || true
  if [ "${1:-}" = --owner ]; then owner=$2; shift 2; fi
  [ -n "${1:-}" ] || die 'usage: scripts/galera.sh start [--owner PID] DIR | kill DIR N | rejoin DIR N | stop DIR'
  mkdir -p "$1"; dir=$(readlink -f "$1"); shift
  case $command in
    start) start "$owner" ;;
    kill) end_node "$1" ;;
    rejoin) start_node "$1" ;;
    stop) for n in $nodes; do end_node "$n"; done; end_watch ;;
    watch) tail --pid="$1" -f /dev/null; for n in $nodes; do end_node "$n"; done; rm -rf "$dir"/node-* ;; # by start
    *) die "unknown command: $command" ;;
  esac
}

start() { # OWNER
  local n
  debian_packages "${needs_galera[@]}"
  chmod 711 "$dir"
  if [ -n "$1" ]; then setsid "$self" watch "$dir" "$1" </dev/null >/dev/null 2>&1 & echo $! >"$dir/watch.pid"; fi
  od -An -N12 -tx1 /dev/urandom | tr -d ' \n' >"$dir/password"
  free_ports >"$dir/ports"
  for n in $nodes; do prepare_node "$n"; done
  start_node 1 --wsrep-new-cluster
  for n in 2 3; do start_node "$n"; done # One after the other: each is sent the data of one that has them.
  for n in $nodes; do echo "GALERA_$n=mysql://app:$(<"$dir/password")@127.0.0.1:$(port "$n")/mysql"; done
}

# Four for each node (clients, group, and two to hand data over), below the kernel's own range.
free_ports() {
  local base=$((20000 + RANDOM % 11000)) port
  for ((port = base; port < base + 12; port++)); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then free_ports; return; fi
  done
  echo "$base"
}

port() { echo $(($(<"$dir/ports") + 4 * ($1 - 1) + ${2:-0})); }

prepare_node() { # N
  local home=$dir/node-$1 n members=()
  for n in $nodes; do members+=("127.0.0.1:$(port "$n" 1)"); done
  mkdir -p "$home"
  { echo "create user app@'%' identified by '$(<"$dir/password")';"; echo "grant all on *.* to app@'%' with grant option;"; } >"$home/init.sql"
  cat >"$home/my.cnf" <<END
[mysqld]
datadir=$home/data
tmpdir=$home/tmp
bind-address=127.0.0.1
port=$(port "$1")
socket=$home/mysql.sock
pid-file=$home/pid
log-error=$home/server.log
skip-name-resolve
default-time-zone=+05:45
innodb-flush-log-at-trx-commit=0
innodb-buffer-pool-size=128M
innodb-autoinc-lock-mode=2
binlog-format=ROW
wsrep-on=ON
wsrep-provider=/usr/lib/galera/libgalera_smm.so
wsrep-cluster-name=runledger
wsrep-cluster-address=gcomm://$(IFS=,; echo "${members[*]}")
wsrep-node-name=node-$1
wsrep-node-address=127.0.0.1:$(port "$1" 1)
wsrep-provider-options=base_host=127.0.0.1;base_port=$(port "$1" 1);gmcast.listen_addr=tcp://127.0.0.1:$(port "$1" 1);ist.recv_addr=127.0.0.1:$(port "$1" 2);gcache.size=32M;pc.recovery=false
wsrep-sst-method=rsync
wsrep-sst-receive-address=127.0.0.1:$(port "$1" 3)
wsrep-slave-threads=2
END
  if [ "$1" = 1 ]; then # The others get its data.
    mariadb-install-db --no-defaults --datadir="$home/data" --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve >"$home/install.log" 2>&1
  fi
  mkdir -p "$home"/{data,tmp}
  # What receives the data refuses to write as root.
  [ "$EUID" != 0 ] || chown -R mysql: "$home"
}

start_node() { # N [--wsrep-new-cluster]
  local home=$dir/node-$1 turn as=()
  [ "$EUID" != 0 ] || as=(setpriv --reuid=mysql --regid=mysql --init-groups --)
  rm -f "$home/server.log"
  TMPDIR=$home/tmp setsid "${as[@]}" mariadbd --defaults-file="$home/my.cnf" ${2:+"$2" --init-file="$home/init.sql"} </dev/null >/dev/null 2>&1 &
  echo $! >"$home/server.pid"
  for ((turn = 0; turn < 1200; turn++)); do
    if grep -qs 'Synchronized with group, ready for connections' "$home/server.log" && grep -qs 'ready for connections\.$' "$home/server.log"; then return; fi
    ours "$1" >/dev/null || [ "$turn" -lt 20 ] || break
    sleep 0.1
  done
  tail -20 "$home/server.log" >&2
  die "node $1 does not start"
}

# The pid of a node, if that is still a process of ours: its command line names our folder. A zombie has no command line.
ours() {
  local pid
  pid=$(cat "$dir/node-$1/server.pid" 2>/dev/null) && grep -qsF -- "$dir/" "/proc/$pid/cmdline" && echo "$pid"
}

end_node() { # N: in a group of its own, with what it has started to hand data over
  local pid
  if pid=$(ours "$1"); then kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true; fi
}

end_watch() {
  local pid
  if pid=$(cat "$dir/watch.pid" 2>/dev/null) && grep -qsF -- "$dir" "/proc/$pid/cmdline"; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
}

main "$@"
