# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart.sh and tests/run.sh. Bash functions:
#   kiln_install build|tests   packages of the distribution (Debian 12 and newer, Ubuntu 24.04), only what is missing
#   kiln_configure PRESET [CMAKE ARGUMENTS]
#   kiln_build PRESET [TARGETS]   with as many compilers as fit into memory
# Each prints one line about what it does and fails with the reason.

KILN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

kiln_say() { printf '\n== %s\n' "$*"; }
kiln_die() { printf 'kiln: %s\n' "$*" >&2; exit 1; }

# package  probe  what it must provide. `command` is on PATH, `header` under an include folder, `module` known to pkg-config,
# `library` to the dynamic linker, `file` matches a pattern.
KILN_BUILD_PACKAGES='
g++                          command g++
cmake                        command cmake
ninja-build                  command ninja
pkg-config                   command pkg-config
git                          command git
python3                      command python3
ccache                       command ccache
protobuf-compiler            command protoc
protobuf-compiler-grpc       command grpc_cpp_plugin
libprotobuf-dev              module  protobuf
libgrpc++-dev                module  grpc++
libabsl-dev                  module  absl_statusor
libssl-dev                   module  libcrypto
libsqlite3-dev               module  sqlite3
libzstd-dev                  module  libzstd
libspdlog-dev                module  spdlog
prometheus-cpp-dev           module  prometheus-cpp-pull
nlohmann-json3-dev           header  nlohmann/json.hpp
libcli11-dev                 header  CLI/CLI.hpp
libgtest-dev                 module  gtest
libgmock-dev                 module  gmock
libbenchmark-dev             module  benchmark
libgoogle-common-protos-java file    /usr/share/java/*google-common-protos*.jar
libopenblas0-pthread         library libopenblas.so.0
'
KILN_TEST_PACKAGES='
clang                        command clang++
clang-format                 command clang-format
clang-tidy                   command clang-tidy
procps                       command ps
'

kiln_provides() {
  case $1 in
    command) command -v "$2" >/dev/null ;;
    module) pkg-config --exists "$2" 2>/dev/null ;;
    header) [[ -e /usr/include/$2 || -e /usr/local/include/$2 ]] ;;
    library) PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -qF " $2 " || ldconfig -p | grep -qF "$2" ;;
    file) compgen -G "$2" >/dev/null ;;
  esac
}

# Names of the packages in the table on stdin whose probe fails.
kiln_missing() {
  local package probe what
  while read -r package probe what; do
    [[ -z $package ]] || kiln_provides "$probe" "$what" || printf '%s\n' "$package"
  done
}

# The fuzzer's runtime bears clang's version in its name.
kiln_fuzzer_package() {
  local version
  version=$(clang++ -dumpversion 2>/dev/null) || return 0
  compgen -G "$(clang++ -print-resource-dir)/lib/*/libclang_rt.fuzzer*" >/dev/null ||
    printf 'libclang-rt-%s-dev\n' "${version%%.*}"
}

kiln_apt() {
  command -v apt-get >/dev/null || kiln_die "these are missing, and there is no apt-get to install them with: $*"
  local root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || kiln_die "these are missing; run as root: apt-get install $*"
    root=(sudo)
  fi
  kiln_say "installing $*"
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || kiln_die "apt-get update failed"
  "${apt[@]}" install -y --no-install-recommends "$@" >/dev/null || kiln_die "apt-get install failed: $*"
}

kiln_install() {
  local table=$KILN_BUILD_PACKAGES missing
  [[ $1 == tests ]] && table+=$KILN_TEST_PACKAGES
  mapfile -t missing < <(kiln_missing <<<"$table")
  if ((${#missing[@]})); then
    kiln_apt "${missing[@]}"
    mapfile -t missing < <(kiln_missing <<<"$table")
    ((${#missing[@]} == 0)) || kiln_die "installed, but still without what Kiln needs of them: ${missing[*]}"
  fi
  if [[ $1 == tests ]]; then
    local fuzzer
    fuzzer=$(kiln_fuzzer_package)
    [[ -z $fuzzer ]] || kiln_apt "$fuzzer"
    [[ -z $(kiln_fuzzer_package) ]] || kiln_die "clang++ has no fuzzer runtime: $fuzzer"
  fi
}

# Compilers at once: one a core, 1.5 GiB each (a file with generated gRPC code takes 1 GiB), within the container's limit.
kiln_jobs() {
  local cores kib limit
  cores=$(nproc)
  kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null)
  [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < kib)) && kib=$((limit / 1024))
  local fit=$((kib / 1572864))
  ((fit < 1)) && fit=1
  echo $((fit < cores ? fit : cores))
}

kiln_configure() {
  local preset=$1
  shift
  # Objects are shared between build folders and checkouts.
  export CCACHE_BASEDIR=$KILN_ROOT CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  local log=$KILN_ROOT/build/$preset-configure.log
  mkdir -p "$KILN_ROOT/build"
  (cd "$KILN_ROOT" && cmake --preset "$preset" "$@") >"$log" 2>&1 || {
    cat "$log" >&2
    kiln_die "cmake --preset $preset failed"
  }
}

kiln_build() {
  local preset=$1
  shift
  [[ -f $KILN_ROOT/build/$preset/build.ninja ]] || kiln_configure "$preset"
  export CCACHE_BASEDIR=$KILN_ROOT CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  kiln_say "building build/$preset ($(kiln_jobs) at a time)"
  local quiet=()
  [[ -t 1 ]] || quiet=(--quiet)
  ninja -C "$KILN_ROOT/build/$preset" -j "$(kiln_jobs)" "${quiet[@]}" "$@" ||
    kiln_die "build/$preset did not build"
}
