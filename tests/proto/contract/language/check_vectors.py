#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes the signatures of proto/contract/vectors.json without Kiln: SHA-256 of "kiln/1\\n" + canonical text."""
import hashlib
import json
import sys


def main(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)["vectors"]
    wrong = 0
    meanings = {}
    for vector in vectors:
        digest = hashlib.sha256(b"kiln/1\n" + vector["canonical"].encode("utf-8")).hexdigest()
        if digest != vector["signature"]:
            print(f"{vector['name']}: the signature is {vector['signature']}, the text's is {digest}")
            wrong += 1
        meanings.setdefault(vector["meaning"], set()).add(digest)
    for meaning, digests in meanings.items():
        if len(digests) != 1:
            print(f"{meaning}: {len(digests)} signatures for one meaning")
            wrong += 1
    if len(set.union(*meanings.values())) != len(meanings):
        print("two meanings share a signature")
        wrong += 1
    if len(vectors) < 30:
        print(f"only {len(vectors)} vectors")
        wrong += 1
    print(f"{len(vectors)} vectors, {len(meanings)} meanings, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
