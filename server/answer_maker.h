// SPDX-License-Identifier: Apache-2.0
// Makes the answers that lookups send (db::StoredAnswer) of what was published, behind the
// publications: after an import, an upgrade of Kiln or of the database, and a moment after each
// publication. Until then a lookup takes the longer way to the same answer. Run by one thread at a
// time; counters are anybody's.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"

namespace kiln::server {

class AnswerMaker {
 public:
  // `make` gives a record's answer, or why it can have none. Answers of another version are made
  // anew.
  using Make = std::function<absl::StatusOr<db::StoredAnswer>(const Record&)>;
  AnswerMaker(db::Store* store, int64_t version, Make make)
      : store_(store), version_(version), make_(std::move(make)) {}

  // Makes some. Says when to come back: at once if more are left.
  absl::Duration MakeSome();

 private:
  db::Store* const store_;
  const int64_t version_;
  const Make make_;
};

}  // namespace kiln::server
