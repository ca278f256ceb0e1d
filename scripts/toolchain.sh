# Sourced by the scripts beside it (bash): $root, and the functions they share.
# Everything said here goes to stderr, because stdout belongs to the program that is being set up.

root=$(readlink -f "${BASH_SOURCE[0]}")
root=${root%/scripts/*}

# What the tests use, as what-must-be-there=Debian-package; the one place to add to. A path is looked for, a word is looked up
# in PATH. MariaDB's and MySQL's "core" packages hold the programs without a service that would start on the usual port.
needs_postgres=('/usr/lib/postgresql/*/bin/initdb=postgresql')
needs_pgbouncer=('pgbouncer=pgbouncer')
needs_galera=('mariadbd=mariadb-server-core' '/usr/bin/wsrep_sst_rsync=mariadb-server' '/usr/lib/galera/libgalera_smm.so=galera-4' 'rsync=rsync' 'socat=socat' 'lsof=lsof')
needs_mariadb=('mariadbd=mariadb-server-core' 'my_print_defaults=mariadb-client-core')
needs_tools=('php=php-cli' 'cron=cron' 'faketime=faketime' 'pgbouncer=pgbouncer' 'ps=procps' 'setpriv=util-linux' 'git=git'
  '/usr/lib/*/libatomic.so.1=libatomic1') # Node 26 needs it

say() { printf 'runledger: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# locked NAME COMMAND…: one at a time in this checkout. The command does not inherit the lock, so nothing it leaves behind holds it.
locked() {
  local name=$1; shift
  mkdir -p "$root/.cache"
  ( flock 9; "$@" 9>&- ) 9>"$root/.cache/$name.lock"
}

# Node >= 24 first on PATH and the packages of the lockfile in place. Silent and quick when there is nothing to do.
toolchain() {
  case $(node --version 2>/dev/null) in
    v2[4-9].* | v[3-9][0-9].*) ;;
    *) packages_of tools/node; PATH=$root/tools/node/node_modules/.bin:$PATH; export PATH ;;
  esac
  packages_of .
}

# packages_of FOLDER: its node_modules are what its package-lock.json says.
packages_of() { is_installed "$1" || locked install install "$1" || die "npm ci failed in $root/$1"; }

# By content where we installed (a branch switched back and forth costs nothing), else by age, so that `npm ci` by hand counts too.
is_installed() {
  local lock=$root/$1/package-lock.json modules=$root/$1/node_modules
  cmp -s "$lock" "$modules/.installed-lock.json" || [ "$modules/.package-lock.json" -nt "$lock" ]
}

install() {
  is_installed "$1" && return # somebody else did it while we waited for the lock
  command -v npm >/dev/null || die 'npm and any Node.js are needed to fetch the pinned Node.js: install them first'
  say "installing the packages of $1/package-lock.json"
  # Dev and optional packages also under NODE_ENV=production; no package of ours needs an install script.
  ( cd "$root/$1" && npm ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error ) </dev/null >/dev/null &&
    cp "$root/$1/package-lock.json" "$root/$1/node_modules/.installed-lock.json"
}

# dist/ is built from what stands in the checkout now.
build_if_stale() { is_built || locked build build || die 'the build failed'; }

is_built() {
  [ -x "$root/dist/bin/runledger.js" ] && [ -e "$root/.cache/built" ] && [ -z "$(
    cd "$root" && find src migrations package.json package-lock.json tsconfig.json tsconfig.build.json scripts/build.ts scripts/bundle \
      -newer .cache/built -print -quit
  )" ]
}

build() {
  is_built && return
  say 'building dist/'
  ( cd "$root" && npm run --silent build ) </dev/null >&2
}

# debian_packages NEED=PACKAGE…: installs what is missing, or says what to install.
debian_packages() {
  local missing=() need
  for need in "$@"; do is_there "${need%=*}" || missing+=("${need#*=}"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$EUID" = 0 ] && command -v apt-get >/dev/null || die "missing: ${missing[*]}. As root: apt-get install ${missing[*]}"
  say "installing ${missing[*]} (apt)"
  # A session of its own, which holds the lock to its end: Ctrl-C must not stop dpkg half way. Two checkouts may come here at once.
  ( flock 9; setsid --wait bash -c '. "$0"; apt_install "$@"' "$root/scripts/toolchain.sh" "${missing[@]}" ) 9>/run/runledger-apt.lock </dev/null >&2 ||
    die "apt could not install ${missing[*]}"
}

is_there() { case $1 in /*) compgen -G "$1" >/dev/null ;; *) PATH=$PATH:/usr/sbin:/sbin type -P "$1" >/dev/null ;; esac; }

# Installs without starting a service and without a PostgreSQL cluster on 5432: this machine's ports are not ours to take.
apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  local policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.conf
  if [ ! -e $policy ]; then
    trap "rm -f $policy" EXIT
    printf '#!/bin/sh\n# made by runledger for the time of one apt-get install: start no service\nexit 101\n' >$policy
    chmod 755 $policy
  fi
  if [ ! -e $clusters ]; then mkdir -p "${clusters%/*}"; echo 'create_main_cluster = false' >$clusters; fi
  local options=(-qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold)
  apt-get "${options[@]}" update && apt-get "${options[@]}" install -y --no-install-recommends "$@"
}
