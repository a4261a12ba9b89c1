# SPDX-License-Identifier: Apache-2.0
"""Checks of the tree itself: check_tree.py includes|getenv|paths|readmes|spdx|sizes

Each prints what breaks the rule, one line with its place, and exits 1; `sizes` informs and fails nothing. The rules about
includes are those of README.md, "Layers".
"""

import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = (".h", ".cc", ".c")

# Folder -> what its files may include of ours, as prefixes; the longest matching folder decides. A folder may always include itself,
# except that the compiler's stages and the client's folders are separate rows.
LAYERS = {
    "proto/contract": [],
    "proto": ["proto/contract"],
    "db": ["proto"],
    "server": ["db", "proto", "worker/compiler"],
    "client/runtime": ["proto/contract/plan.h"],
    "client": ["proto", "client/runtime"],
    "client/cli": ["client", "proto", "worker"],
    "worker": ["proto", "client/runtime"],
    "worker/compile": ["proto/contract"],
    "worker/device": ["proto/contract", "client/runtime"],
    "worker/measure": ["proto/contract", "client/runtime"],
    "worker/verify": ["proto/contract", "client/runtime", "worker/compiler"],
    "worker/compiler": ["proto/contract"],
}
# Inside the compiler a stage includes only earlier ones.
STAGES = ["analysis", "tile", "families", "emit", "model", "search"]
for index, stage in enumerate(STAGES):
    LAYERS[f"worker/compiler/{stage}"] = ["proto/contract"] + [f"worker/compiler/{earlier}" for earlier in STAGES[:index]]
# Nothing outside a folder of these includes what is in it.
CLOSED = {"db": ["server"], "server": [], "client/cli": []}

WIRE = re.compile(r"^(grpcpp/|grpc/|google/|kiln/v1/|.*\.pb\.h)")
WIRE_PLACES = re.compile(r"^(proto/wire[^/]*|server/[^/]*(service|call|message|selection|explain)[^/]*|server/(main|server)\.(cc|h)|"
                         r"worker/(agent|connection|main)\.(cc|h)|client/(?!kiln_client)[^/]*\.(cc|h)|client/cli/main\.cc)$")
SQL = re.compile(r"^sqlite3\.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
OURS = re.compile(r"^(proto|db|server|worker|client|tests)/")


def tracked():
    """Paths of the tree: git's where there is one, new files included, else all but build/."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
                            text=True, check=False)
    if listed.returncode == 0:
        paths = listed.stdout.splitlines()
    else:
        paths = [os.path.relpath(os.path.join(folder, name), ROOT)
                 for folder, _, names in os.walk(ROOT) for name in names]
        paths = [path for path in paths if not path.startswith(("build/", ".git/"))]
    return sorted(path for path in paths if os.path.isfile(os.path.join(ROOT, path)))


def lines(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path):
    matching = [folder for folder in LAYERS if within(path, folder)]
    return max(matching, key=len) if matching else None


def check_include(path, included):
    """Why `path` may not include `included`, or None."""
    folder = layer_of(path)
    target = layer_of(included)
    for closed, allowed in CLOSED.items():
        if within(included, closed) and not within(path, closed) and not any(within(path, user) for user in allowed):
            return f"{closed} is not for others"
    if target == folder:
        return None
    # The files of worker/ and worker/compiler/ themselves compose their parts.
    if folder in ("worker", "worker/compiler") and within(included, folder):
        return None
    if any(within(included, allowed) for allowed in LAYERS[folder]):
        return None
    return f"{folder} may include {', '.join(LAYERS[folder]) or 'itself alone'}"


def includes(paths):
    for path in paths:
        if not path.endswith(CODE) or layer_of(path) is None:
            continue
        for number, line in enumerate(lines(path), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, included = match.groups()
            place = f"{path}:{number}: includes {included}"
            if quote == '"' and OURS.match(included):
                why = check_include(path, included)
                if why:
                    yield f"{place}: {why}"
                if not os.path.isfile(os.path.join(ROOT, included)):
                    yield f"{place}: there is no such file"
            elif WIRE.match(included) and not WIRE_PLACES.match(path):
                yield f"{place}: messages and gRPC stay in proto/wire, services, agents, the client library and mains"
            elif SQL.match(included) and not within(path, "db"):
                yield f"{place}: SQLite stays in db/"


def getenv(paths):
    for path in paths:
        if path.endswith(CODE) and layer_of(path) and "options" not in os.path.basename(path):
            for number, line in enumerate(lines(path), 1):
                if re.search(r"\bgetenv\s*\(", line.split("//")[0]):
                    yield f"{path}:{number}: getenv belongs in an options file"


# Folders of somebody's machine, never of everybody's.
MACHINE = re.compile(r"(?<![\w.$}-])/(work|farm|root|Users|home/\w+|tmp/\w{3,})/")


def paths_of_machines(paths):
    for path in paths:
        for number, line in enumerate(lines(path), 1):
            if MACHINE.search(line) and path != "tests/repo/check_tree.py":
                yield f"{path}:{number}: a path of one machine: {line.strip()[:100]}"


def readmes(paths):
    """Every folder says what lives in it; in tests/, those that mirror no other."""
    present = set(paths)
    mirrors = ("tests/proto", "tests/db", "tests/server", "tests/worker", "tests/client")
    folders = {os.path.dirname(path) for path in paths}
    for folder in sorted(folders):
        exempt = (folder.startswith(".") or any(within(folder, mirror) for mirror in mirrors) or
                  folder in ("cmake", "db/migrations", "proto/kiln/v1", "proto/compat", "tests/bench/naive"))
        if not exempt and os.path.join(folder, "README.md") not in present:
            yield f"{folder or '.'}: has no README.md"


def spdx(paths):
    for path in paths:
        if path.endswith(CODE + (".proto", ".py", ".sh", ".sql")):
            head = "\n".join(lines(path)[:2])
            if "SPDX-License-Identifier: Apache-2.0" not in head:
                yield f"{path}: its first line is not SPDX-License-Identifier: Apache-2.0"


def sizes(paths):
    counted = collections.Counter({path: len(lines(path)) for path in paths if path.endswith(CODE + (".py", ".sh"))})
    print(f"{len(counted)} files, {sum(counted.values())} lines; the longest:")
    for path, count in counted.most_common(10):
        print(f"  {count:5} {path}")
    return []


CHECKS = {"includes": includes, "getenv": getenv, "paths": paths_of_machines, "readmes": readmes, "spdx": spdx, "sizes": sizes}


def main(name):
    broken = list(CHECKS[name](tracked()))
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
