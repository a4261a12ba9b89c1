#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Kiln, starts a server and a worker on loopback, tunes a 1024x1024x1024 matrix product on this CPU, compares the winner
# with a naive kernel and with OpenBLAS, and shows that the answer is kept: asked again, and after a restart of the server.
#   deploy/quickstart.sh [--db FILE] [--seconds S]     FILE: kept; default: a temporary one, removed at the end
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/setup.sh"

db= seconds=60
while (($#)); do
  case $1 in
    --db) db=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) sed -n '3,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

kiln_install build
kiln_configure release
kiln_build release kiln-server kiln-worker kiln bench_naive
bin=$KILN_ROOT/build/release/bin

# OpenBLAS is to run as it does for anyone else.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS

scratch=$(mktemp -d "${TMPDIR:-/tmp}/kiln-quickstart-XXXXXX")
db=${db:-$scratch/kiln.db}
server_pid= worker_pid= watch_pid=
finish() {
  local status=$?
  trap - EXIT INT TERM
  for pid in $watch_pid $worker_pid $server_pid; do kill "$pid" 2>/dev/null || true; done
  for pid in $watch_pid $worker_pid $server_pid; do wait "$pid" 2>/dev/null || true; done
  if ((status)); then
    for log in server worker; do
      [[ -s $scratch/$log.log ]] && { echo "--- last lines of the $log:"; tail -n 20 "$scratch/$log.log"; } >&2
    done
  fi
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# await FILE PREFIX PID: the rest of the line that starts with PREFIX, once the process has printed it.
await() {
  local line
  for ((i = 0; i < 300; ++i)); do
    line=$(grep -m1 "^$2" "$1" 2>/dev/null || true)
    [[ -n $line ]] && { printf '%s\n' "${line#"$2"}"; return; }
    kill -0 "$3" 2>/dev/null || kiln_die "it ended before it was ready: $(tail -n 3 "${1%.out}.log")"
    sleep 0.1
  done
  kiln_die "not ready after 30 s: $1"
}

start_server() {
  "$bin/kiln-server" --db "$db" --listen "$1" >"$scratch/server.out" 2>>"$scratch/server.log" &
  server_pid=$!
  KILN_SERVER=$(await "$scratch/server.out" 'kiln-server ready on ' "$server_pid")
  export KILN_SERVER
}

matmul=(matmul --dims M=1024,N=1024,K=1024)

kiln_say "server and worker on loopback"
start_server 127.0.0.1:0
echo "server: $KILN_SERVER, database $db"
"$bin/kiln-worker" --server "$KILN_SERVER" --device cpu >"$scratch/worker.out" 2>>"$scratch/worker.log" &
worker_pid=$!
echo "worker: $(await "$scratch/worker.out" 'kiln-worker ready: ' "$worker_pid")"

kiln_say "tuning ${matmul[*]} (f32, up to $seconds s)"
if [[ ! -t 2 ]]; then
  # The CLI draws its progress on terminals only; elsewhere a line every few seconds does.
  python3 "$here/progress.py" "$bin/kiln" & watch_pid=$!
fi
"$bin/kiln" tune "${matmul[@]}" --seconds "$seconds" --trials 1000 --json >"$scratch/tuned.json"
if [[ -n $watch_pid ]]; then kill "$watch_pid" 2>/dev/null || true; wait "$watch_pid" 2>/dev/null || true; watch_pid=; fi

kiln_say "the winner beside a naive kernel and OpenBLAS"
"$bin/bench_naive" 1024 1024 1024 >"$scratch/naive.json"
"$bin/kiln" run "${matmul[@]}" --json >"$scratch/run.json"
python3 "$here/report.py" compare "$scratch/tuned.json" "$scratch/naive.json" "$scratch/run.json"

kiln_say "asked a second time"
"$bin/kiln" tune "${matmul[@]}" --json >"$scratch/second.json"
python3 "$here/report.py" answer "$scratch/tuned.json" "$scratch/second.json"
"$bin/kiln" lookup "${matmul[@]}" --json >"$scratch/lookup.json"
python3 "$here/report.py" answer "$scratch/tuned.json" "$scratch/lookup.json"

kiln_say "the server is restarted, and asked a third time"
kill -TERM "$server_pid"
wait "$server_pid" || true
start_server "$KILN_SERVER"
"$bin/kiln" lookup "${matmul[@]}" --json >"$scratch/third.json"
python3 "$here/report.py" answer "$scratch/tuned.json" "$scratch/third.json"

kiln_say "done"
