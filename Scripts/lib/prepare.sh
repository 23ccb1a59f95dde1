# The requirements of every script: a new enough Swift, and the liblz4 headers. Sourced, not run. It
# is silent if nothing is missing, and otherwise writes to standard error.

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$(basename "$0"): $*"
  exit 1
}

# Runs a command, and shows its output only if it fails.
quietly() {
  _quietly_output=$(mktemp "${TMPDIR:-/tmp}/ondol-output.XXXXXX")
  if "$@" >"$_quietly_output" 2>&1 </dev/null; then
    rm -f "$_quietly_output"
  else
    _quietly_status=$?
    cat "$_quietly_output" >&2
    rm -f "$_quietly_output"
    return "$_quietly_status"
  fi
}

# True when version $1.$2 is at least $3.$4. Compared as numbers: 6.10 is newer than 6.3.
at_least() {
  [ "$1" -gt "$3" ] || { [ "$1" -eq "$3" ] && [ "$2" -ge "$4" ]; }
}

require_swift() {
  command -v swift >/dev/null 2>&1 ||
    fail "Swift was not found. Install Swift 6.3 or newer from https://www.swift.org/install and try again."
  _swift_text=$(swift --version 2>/dev/null) || fail "'swift --version' failed; is the toolchain whole?"
  _swift_version=$(printf '%s\n' "$_swift_text" |
    sed -n 's/.*Swift version \([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p' | head -n 1)
  [ -n "$_swift_version" ] || fail "cannot read Swift's version from: $_swift_text"
  # Unquoted on purpose: the two numbers are two arguments.
  # shellcheck disable=SC2086
  at_least $_swift_version 6 3 ||
    fail "Swift $(echo "$_swift_version" | tr ' ' .) is too old: 6.3 or newer is needed." \
      "See https://www.swift.org/install."
}

have_lz4() {
  if command -v pkg-config >/dev/null 2>&1 && pkg-config --exists liblz4 2>/dev/null; then
    return 0
  fi
  for _directory in /usr/include /usr/local/include /opt/homebrew/include; do
    [ ! -e "$_directory/lz4.h" ] || return 0
  done
  return 1
}

# Runs a command as root: directly if this is root, otherwise by sudo if it exists.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail "'$*' has to run as root, and there is no sudo here. Run it yourself and try again."
  fi
}

# The package lists are downloaded only if they are missing or turn out to be too old.
apt_install() {
  if apt-cache show "$1" >/dev/null 2>&1 &&
    quietly as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install --yes --no-install-recommends "$1" 2>/dev/null; then
    return 0
  fi
  quietly as_root apt-get update &&
    quietly as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install --yes --no-install-recommends "$1"
}

# Installs a package with this machine's manager: `install_package APT DNF BREW`.
install_package() {
  if command -v apt-get >/dev/null 2>&1; then
    say "Installing $1 with apt-get."
    apt_install "$1" || fail "apt-get could not install $1."
  elif command -v dnf >/dev/null 2>&1; then
    say "Installing $2 with dnf."
    quietly as_root dnf install --assumeyes "$2" || fail "dnf could not install $2."
  elif command -v brew >/dev/null 2>&1; then
    say "Installing $3 with Homebrew."
    quietly brew install "$3" || fail "Homebrew could not install $3."
  else
    fail "$1 is missing, and none of apt-get, dnf and brew is here to install it." \
      "Install it by hand and try again."
  fi
}

require_lz4() {
  have_lz4 && return 0
  install_package liblz4-dev lz4-devel lz4
  have_lz4 || fail "liblz4 was installed, but lz4.h is not where compilers look."
}

# The headers of PostgreSQL's library, for the product OndolPostgres. Homebrew keeps them in a
# folder that only pkg-config knows.
have_libpq() {
  if command -v brew >/dev/null 2>&1; then
    PKG_CONFIG_PATH="$(brew --prefix)/opt/libpq/lib/pkgconfig:${PKG_CONFIG_PATH:-}"
    export PKG_CONFIG_PATH
  fi
  if command -v pkg-config >/dev/null 2>&1; then
    pkg-config --exists libpq 2>/dev/null
  else
    [ -e /usr/include/postgresql/libpq-fe.h ] || [ -e /usr/include/libpq-fe.h ]
  fi
}

require_libpq() {
  have_libpq && return 0
  install_package libpq-dev libpq-devel libpq
  have_libpq || fail "libpq was installed, but libpq-fe.h is not where compilers look."
}

# A server for tests, which start it in directories of their own.
have_postgres() {
  command -v postgres >/dev/null 2>&1 && return 0
  for _directory in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin \
    /usr/local/opt/postgresql@*/bin; do
    [ ! -x "$_directory/postgres" ] || return 0
  done
  return 1
}

require_postgres() {
  have_postgres && return 0
  install_package postgresql postgresql-server postgresql@17
  have_postgres || fail "PostgreSQL was installed, but postgres is not where servers are."
}

# The package manager fetches the two Swift dependencies with git.
require_git() {
  command -v git >/dev/null 2>&1 || install_package git git git
}

# Only for scripts that use it.
require_python() {
  command -v python3 >/dev/null 2>&1 || install_package python3 python3 python3
}

require_swift
require_lz4
require_git

# The package manager passes a package's traits to the compiler in the order of a set. This makes the
# order the same in every run. Otherwise a build whose sources did not change compiles all of the
# package again. Programs that a script runs draw their orders by chance as always.
swift() {
  SWIFT_DETERMINISTIC_HASHING=1 command swift "$@"
}
