#!/usr/bin/env bash
# Throwaway PostgreSQL, MariaDB and MySQL servers on free loopback ports; everything they write stays in one folder.
#   scripts/servers.sh start [--owner PID] DIR [postgres|mariadb|mysql …]   all three by default. Prints RUNLEDGER_TEST_…=URL lines,
#                                              and RUNLEDGER_TEST_MISSING=mysql when MySQL could not be fetched. `pgbouncer` after
#                                              `postgres` is PgBouncer in transaction mode in front of it.
#   scripts/servers.sh restart DIR NAME        stops one in order and begins it again, with its data and on its port.
#   scripts/servers.sh stop DIR                ends what start began in DIR, at whatever point it is.
# With --owner they also end, data included, within seconds of the death of that process, however it dies.
# RUNLEDGER_POSTGRES=18 takes that major version from npm in place of Debian's.
# The URLs are an administrator's, who may create databases and users. What was committed does not survive a crash of the machine,
# as tests want it; RUNLEDGER_DURABLE=1 leaves each server its ordinary durability, as benchmarks want it.
# Zone, collation and character set are none that the product may rely on, so that a query which does is found out.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/toolchain.sh"
self=$root/scripts/servers.sh
durable=${RUNLEDGER_DURABLE:-}
not_fetched=3 # exit status of a MySQL that cannot be had, apart from one that does not start

main() {
  local command=${1:-} owner='' dir
  shift || true
  if [ "${1:-}" = --owner ]; then owner=$2; shift 2; fi
  [ -n "${1:-}" ] || die 'usage: scripts/servers.sh start [--owner PID] DIR [postgres|mariadb|mysql …] | restart DIR NAME | stop DIR'
  mkdir -p "$1"; dir=$(readlink -f "$1"); shift
  case $command in
    start) [ $# -gt 0 ] || set -- postgres mariadb mysql; start "$dir" "$owner" "$@" ;;
    restart) restart "$dir" "$1" ;;
    stop) stop "$dir" ;;
    start-one) start_one "$dir" "$1" ;;                     # by start, in a session of its own
    watch) tail --pid="$1" -f /dev/null; stop "$dir"; rm -rf "$dir"/{postgres,pgbouncer,mariadb,mysql} ;; # by start
    *) die "unknown command: $command" ;;
  esac
}

# --- start and stop ---

start() { # DIR OWNER NAME…
  local dir=$1 owner=$2 name status failed=''; shift 2
  chmod 711 "$dir" # a server that runs as another user must reach its folder inside
  trap 'stop "$dir"; exit 143' INT TERM HUP
  if [ -n "$owner" ]; then background "$dir/watch.pid" "$self" watch "$dir" "$owner" >/dev/null 2>&1; fi
  local -A starters=()
  for name in "$@"; do
    mkdir -p "$dir/$name"
    background "$dir/$name/starter.pid" "$self" start-one "$dir" "$name" >"$dir/$name/start.log" 2>&1
    starters[$name]=$!
  done
  for name in "$@"; do
    status=0; wait "${starters[$name]}" || status=$?
    case $status in
      0) say "$(<"$dir/$name/version")"; echo "RUNLEDGER_TEST_${name^^}=$(<"$dir/$name/url")" ;;
      "$not_fetched") tail -3 "$dir/$name/start.log" >&2; echo "RUNLEDGER_TEST_MISSING=$name" ;;
      *) say "$name does not start:"; tail -20 "$dir/$name/start.log" >&2; failed=1 ;;
    esac
  done
  [ -z "$failed" ] || { stop "$dir"; exit 1; }
}

restart() { # DIR NAME
  local home=$1/$2 pid cwd uid args
  pid=$(ours "$1" "$home/server.pid") || die "$2 does not run in $1"
  mapfile -d '' args <"/proc/$pid/cmdline"
  cwd=$(readlink "/proc/$pid/cwd"); uid=$(stat -c %u "/proc/$pid")
  case $2 in postgres) kill -INT "$pid" ;; *) kill -TERM "$pid" ;; esac # PostgreSQL's "fast" stop: it does not wait for its clients
  while ours "$1" "$home/server.pid" >/dev/null; do sleep 0.05; done
  rm -f "$home/server.log"
  ( cd "$cwd"; if [ "$uid" != "$EUID" ]; then exec setsid setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "${args[@]}"; else exec setsid "${args[@]}"; fi ) </dev/null >"$home/server.log" 2>&1 &
  echo $! >"$home/server.pid"
  wait_ready $! || die "$2 does not start again: $(tail -3 "$home/server.log")"
}

# A session of its own: Ctrl-C in a terminal does not reach it, and its group can be ended as a whole.
background() { local file=$1; shift; setsid "$@" </dev/null & echo $! >"$file"; }

stop() { # DIR
  local dir=$1 file turn
  for file in "$dir"/*/starter.pid; do end_group "$dir" "$file"; done # first, or one of them starts a server behind our back
  for ((turn = 0; turn < 100; turn++)); do
    end_servers "$dir" "$turn" || break
    sleep 0.05
  done
  end_group "$dir" "$dir/watch.pid"
}

end_servers() { # DIR TURN: true while one of them is still there
  local dir=$1 file pid left=1
  for file in "$dir"/*/server.pid; do
    pid=$(ours "$dir" "$file") || continue
    # PostgreSQL's "immediate" stop takes its children and shared memory along; the others are one process each, and nobody wants their data.
    case $file in */postgres/*) if [ "$2" -lt 80 ]; then kill -QUIT "$pid"; else kill -KILL "$pid"; fi ;; *) kill -KILL "$pid" ;; esac 2>/dev/null
    left=0
  done
  return $left
}

end_group() { # DIR PIDFILE
  local pid
  if pid=$(ours "$1" "$2") && [ "$pid" != $$ ]; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
}

# The pid in the file, if that is still a process of ours: its command line names our folder. A zombie has no command line.
ours() {
  local pid
  pid=$(cat "$2" 2>/dev/null) && grep -qsF -- "$1" "/proc/$pid/cmdline" && echo "$pid"
}

# --- one server ---

start_one() { # DIR NAME
  home=$1/$2
  if ours "$1" "$home/server.pid" >/dev/null && [ -s "$home/url" ]; then return; fi
  rm -rf "$home"/{data,url}
  password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
  local attempt
  "$2_prepare"
  for attempt in 1 2 3 4 5; do # somebody may take the port between our look and the server's bind
    port=$(free_port)
    rm -f "$home/server.log" # wait_ready must not read that of an earlier server
    "$2_run" </dev/null >"$home/server.log" 2>&1 &
    echo $! >"$home/server.pid"
    if wait_ready $!; then "$2_url" >"$home/url"; return; fi
  done
  tail -20 "$home/server.log"
  return 1
}

# Below the kernel's own range (from 32768), so that no outgoing connection sits on it.
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}

wait_ready() { # PID: the server says so itself, after it has bound its port
  local turn
  for ((turn = 0; turn < 1200; turn++)); do
    if grep -qsE 'ready (for|to accept) connections|process up: PgBouncer' "$home/server.log"; then return 0; fi
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

# PostgreSQL refuses to run as root: then it runs as the user that Debian made for it.
as_postgres() { if [ "$EUID" = 0 ]; then exec setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; else exec "$@"; fi; }

postgres_prepare() {
  case ${RUNLEDGER_POSTGRES:-} in
    '') debian_packages "${needs_postgres[@]}"; bin=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -1) ;;
    18) newer_postgres "$RUNLEDGER_POSTGRES" ;;
    *) die "RUNLEDGER_POSTGRES: no such version: $RUNLEDGER_POSTGRES" ;;
  esac
  "$bin/postgres" --version >"$home/version"
  printf '%s' "$password" >"$home/password"
  [ "$EUID" != 0 ] || chown postgres: "$home" "$home/password"
  cd "$home" # postgres must be able to read its working directory
  (as_postgres "$bin/initdb" -D "$home/data" -U app -A scram-sha-256 --pwfile="$home/password" --no-sync \
    -E UTF8 --locale=C.UTF-8 --locale-provider=icu --icu-locale=en-US)
}
# Copied, because the user that it runs as need not be able to read this checkout; its packages come without the links of its libraries.
newer_postgres() { # MAJOR
  local arch=x64; [ "$(uname -m)" = x86_64 ] || arch=arm64
  packages_of tools/postgres-matrix
  rm -rf "$home/server"; cp -r "$root/tools/postgres-matrix/node_modules/postgres$1-$arch/native" "$home/server"
  node -e '
    const [, folder] = process.argv
    for (const { source, target } of JSON.parse(fs.readFileSync(`${folder}/pg-symlinks.json`))) {
      fs.symlinkSync(path.basename(source), path.join(folder, path.relative("native", target)))
    }' "$home/server"
  bin=$home/server/bin
}
postgres_run() {
  local switch=off; [ -z "$durable" ] || switch=on
  as_postgres "$bin/postgres" -D "$home/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c fsync="$switch" -c synchronous_commit="$switch" -c full_page_writes="$switch" \
    -c max_connections=400 -c shared_buffers=128MB -c max_wal_size=1GB -c timezone=Asia/Kathmandu
}
postgres_url() { echo "postgres://app:$password@127.0.0.1:$port/postgres"; }

# In transaction mode: a client has a session of the server for the length of a transaction, and seldom the same one twice.
# It asks the server for the passwords of users, and signs in as them, so that users of a test's own come through.
pgbouncer_prepare() {
  debian_packages "${needs_pgbouncer[@]}"
  PATH=$PATH:/usr/sbin
  pgbouncer --version | head -1 >"$home/version"
  local server=$home/../postgres turn
  for ((turn = 0; turn < 1200; turn++)); do [ ! -s "$server/url" ] || break; sleep 0.05; done
  read -r user password server_port < <(sed -nE 's#^postgres://([^:]+):([^@]+)@[^:]+:([0-9]+)/.*#\1 \2 \3#p' "$server/url")
  echo "\"$user\" \"$password\"" >"$home/users"
  [ "$EUID" != 0 ] || chown postgres: "$home" "$home/users"
}
pgbouncer_run() {
  cat >"$home/pgbouncer.ini" <<END
[databases]
* = host=127.0.0.1 port=$server_port
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $home/users
auth_user = $user
pool_mode = transaction
default_pool_size = 8
server_idle_timeout = 5
max_client_conn = 1000
END
  [ "$EUID" != 0 ] || chown postgres: "$home/pgbouncer.ini"
  as_postgres pgbouncer "$home/pgbouncer.ini"
}
pgbouncer_url() { echo "postgres://$user:$password@127.0.0.1:$port/postgres"; }

mariadb_prepare() {
  PATH=$PATH:/usr/sbin
  debian_packages "${needs_mariadb[@]}"
  mariadbd --version >"$home/version"
  mariadb-install-db --no-defaults "${user_root[@]}" --datadir="$home/data" --auth-root-authentication-method=socket --skip-test-db --skip-name-resolve
  mysql_users >"$home/init.sql"
}
mariadb_run() { mysql_common; exec mariadbd --no-defaults "${user_root[@]}" "${common[@]}"; }
mariadb_url() { echo "mysql://app:$password@127.0.0.1:$port/mysql"; }

mysql_prepare() {
  local unpacked; unpacked=$(fetched_mysql) || exit
  mysqld_of "$unpacked"
  echo "mysqld $("${mysqld[@]}" --version | sed 's/.*mysqld *//')" >"$home/version"
  cp -r "$unpacked/data" "$home/data"
  { echo "alter user root@localhost identified by '$password';"; mysql_users; } >"$home/init.sql"
}
mysql_run() { mysql_common; exec "${mysqld[@]}" "${common[@]}" --mysqlx=OFF; }
mysql_url() { mariadb_url; }

# --- what MariaDB and MySQL share ---

user_root=() # neither runs as root without being told to
[ "$EUID" != 0 ] || user_root=(--user=root)

mysql_common() {
  common=(--datadir="$home/data" --init-file="$home/init.sql" --bind-address=127.0.0.1 --port="$port" --socket=mysql.sock --pid-file="$home/data/pid"
    --max-connections=400 --innodb-buffer-pool-size=128M --default-time-zone=+05:45)
  if [ -z "$durable" ]; then common+=(--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --skip-log-bin); fi
}

mysql_users() { # one statement a line: MariaDB reads the file so
  echo "create user app@'%' identified by '$password';"
  echo "grant all on *.* to app@'%' with grant option;"
}

# --- MySQL from Debian sid, unpacked beside the system ---

mysqld_of() { # FOLDER
  local lib; lib=$(dirname "$(compgen -G "$1/usr/lib/*-linux-gnu/libc.so.6")")
  # With the C library it was built for, which is newer than the machine's.
  mysqld=("$(compgen -G "$lib/ld-linux*.so.?")" --library-path "$lib:$lib/mysql/private:$1/usr/lib/mysql/private" "$1/usr/sbin/mysqld" --no-defaults
    "${user_root[@]}" --basedir="$1/usr" --lc-messages-dir="$1/usr/share/mysql" --character-sets-dir="$1/usr/share/mysql/charsets"
    --plugin-dir="$1/usr/lib/mysql/plugin" --secure-file-priv=NULL --performance-schema=OFF)
}

# Prints the folder, with an initialized data folder in it; made once for this user, in one step, whoever else is at it.
# The name changes when what we do here does.
fetched_mysql() {
  local cache=${RUNLEDGER_CACHE:-${HOME:-~}/.cache/runledger-dev}/mysql folder
  folder=$cache/sid-$(uname -m)-1
  mkdir -p "$cache"
  ( flock 9; [ -d "$folder" ] || fetch_mysql "$cache" "$folder" 9>&- ) 9>"$cache/lock" >&2 || return
  echo "$folder"
}

fetch_mysql() { # CACHE FOLDER
  local fetch deb
  rm -rf "$1"/fetch-* # of a fetch that was killed
  fetch=$(mktemp -d "$1/fetch-XXXXXX") && mkdir "$fetch/root" || return
  say 'fetching MySQL from Debian sid'
  if ! download_mysql "$fetch"; then rm -rf "$fetch"; return $not_fetched; fi
  for deb in "$fetch"/archives/*.deb; do
    case ${deb##*/} in perl* | libperl* | libgdbm* | libdb5* | gcc-*-base*) ;; *) dpkg -x "$deb" "$fetch/root" || return ;; esac
  done
  mysqld_of "$fetch/root"
  "${mysqld[@]}" --initialize-insecure --datadir="$fetch/root/data" --skip-log-bin --innodb-doublewrite=OFF --innodb-flush-log-at-trx-commit=0 &&
    mv -T "$fetch/root" "$2" && rm -rf "$fetch"
}

download_mysql() { # FOLDER: the packages into its archives/, whatever this system is and has
  local uri
  # Any Debian mirror of this machine's own list has sid too. The signatures are checked as for its own packages.
  uri=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -v security | head -1)
  mkdir -p "$1"/{lists,archives}/partial
  : >"$1/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${uri:-none} sid main" >"$1/sources.list"
  local options=(-qq -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o Dir::State="$1" -o Dir::State::status="$1/status" -o Dir::State::lists="$1/lists" -o Dir::Cache="$1"
    -o APT::Sandbox::User=root -o Acquire::Retries=2 -o Acquire::http::Timeout=20)
  timeout 300 apt-get "${options[@]}" -o APT::Update::Error-Mode=any update &&
    timeout 300 apt-get "${options[@]}" install -y --no-install-recommends --download-only mysql-server-core >/dev/null
}

main "$@"
