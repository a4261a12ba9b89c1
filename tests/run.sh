#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs all tests, and prints the test runner's closing lines last. Installs the distribution's packages that are
# missing. A rerun builds only what changed. Exit 0: everything passed.
#   tests/run.sh            format; clang-tidy on changed files; the core under the thread sanitizer; the fuzz targets, briefly;
#                           all tests under the address and undefined sanitizers, those of whole processes on release binaries
#   tests/run.sh quick      the release build's tests alone
# Tests labelled `slow` (soaks, kill loops, injected faults) are a command of their own: ctest --test-dir build/release -L slow
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
source deploy/setup.sh

FUZZ_SECONDS=${FUZZ_SECONDS:-15}  # for each target
TIDY_SECONDS=${TIDY_SECONDS:-300}  # files that are left by then are named and left out
failed=() times=()

# stage NAME COMMAND...: runs it, keeps its time, remembers a failure and goes on.
stage() {
  local name=$1 start=$SECONDS
  shift
  kiln_say "$name"
  # In a subshell: a function that gives up ends its stage, not the run.
  ("$@") || failed+=("$name")
  times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

# The commit that this change starts from: the branch point from origin/main, or the parent of a commit that is its tip (CI).
base_commit() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null)
  [[ -n $base && $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-parse --verify -q HEAD~1)
  printf '%s' "$base"
}

changed_files() {
  local base
  base=$(base_commit)
  { git diff --name-only --diff-filter=d ${base:+"$base"} -- "$@"; git ls-files --others --exclude-standard -- "$@"; } | sort -u
}

check_format() {
  git ls-files '*.cc' '*.h' | xargs -r clang-format --dry-run -Werror
}

# One file, until the second TIDY_UNTIL. A file whose generated headers are not built is none to complain of.
tidy_file() {
  local found
  (($(date +%s) < TIDY_UNTIL)) || { echo "left out, the time is over: $1"; return 0; }
  found=$(clang-tidy -p build/release --quiet "$1" 2>/dev/null) && return 0
  if grep -q "file not found \[clang-diagnostic-error" <<<"$found"; then
    echo "left out, it includes what is not generated yet: $1"
    return 0
  fi
  printf '%s\n' "$found"
  return 1
}

# Needs the compile commands and the generated headers of build/release. A changed header is looked at in the .cc file of its name.
check_tidy() {
  local files
  mapfile -t files < <(changed_files '*.cc' '*.h' | sed 's/\.h$/.cc/' | sort -u | while read -r file; do
    grep -qF "\"file\": \"$PWD/$file\"" build/release/compile_commands.json && echo "$file"
  done)
  echo "${#files[@]} changed files"
  ((${#files[@]})) || return 0
  export -f tidy_file
  export TIDY_UNTIL=$(($(date +%s) + TIDY_SECONDS))
  printf '%s\n' "${files[@]}" | xargs -P "$(kiln_jobs)" -I{} bash -c 'tidy_file "$1"' _ {}
}

# Two tests that start no thread, and take minutes of it, are left out.
run_tsan() {
  kiln_configure tsan && kiln_build tsan || return 1
  TSAN_OPTIONS=halt_on_error=1 ctest --test-dir build/tsan -L core -E '^(proto\.contract\.language\.mutation|worker\.compiler\.search)$' \
    --output-on-failure -j "$(kiln_jobs)" --no-tests=error
}

# Each target NAME_fuzz from the inputs that NAME_seeds writes and those that earlier runs found. The first failure ends it.
run_fuzz() {
  local target name corpus log
  (cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang \
    -DCMAKE_CXX_COMPILER=clang++ -DKILN_FUZZ=ON) >build/fuzz-configure.log 2>&1 ||
    { cat build/fuzz-configure.log; return 1; }
  kiln_build fuzz fuzz || return 1
  for target in build/fuzz/bin/*_fuzz; do
    name=$(basename "$target" _fuzz) corpus=build/fuzz/corpus/$name log=build/fuzz/$name.log
    mkdir -p "$corpus"
    "build/fuzz/bin/${name}_seeds" "$corpus" || return 1
    "$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -print_funcs=0 -artifact_prefix=build/fuzz/ \
      "$corpus" >"$log" 2>&1 || { tail -40 "$log"; echo "the fuzz target $name failed"; return 1; }
    echo "$name: $(grep '^Done' "$log")"
  done
}

build_release() {
  kiln_configure release && kiln_build release kiln-server kiln-worker kiln e2e_binaries
}

build_asan() {
  kiln_configure asan -DKILN_E2E_BIN="$PWD/build/release/bin" && kiln_build asan
}

# Prints all of it to $log; the closing lines are shown once more at the very end.
run_ctest() {
  local folder=$1
  ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    ctest --test-dir "$folder" -LE slow --output-on-failure -j "$(kiln_jobs)" --no-tests=error 2>&1 | tee "$log"
  return "${PIPESTATUS[0]}"
}

kiln_install tests
log=build/ctest.log
mkdir -p build
# Benchmarks' and users' settings must not change what is tested.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS KILN_SERVER

if [[ ${1:-} == quick ]]; then
  stage "build/release" eval 'kiln_configure release && kiln_build release'
  stage "tests" run_ctest build/release
else
  stage "clang-format" check_format
  stage "build/release: the binaries" build_release
  stage "clang-tidy on changed files" check_tidy
  stage "thread sanitizer over the core" run_tsan
  stage "fuzz targets" run_fuzz
  stage "build/asan: address and undefined sanitizers" build_asan
  stage "tests" run_ctest build/asan
fi

kiln_say "time of each stage"
printf '%s\n' "${times[@]}"
if ((${#failed[@]})); then
  kiln_say "failed"
  printf '  %s\n' "${failed[@]}"
fi
# The test runner's own words, last.
kiln_say "tests"
[[ -f $log ]] && sed -n '/% tests passed/,$p' "$log"
((${#failed[@]} == 0))
