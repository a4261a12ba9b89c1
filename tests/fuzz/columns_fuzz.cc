// SPDX-License-Identifier: Apache-2.0
// libFuzzer over the JSON columns of the database: no bytes crash the reader, and what it accepts
// is written as text that it reads as the same value. The first byte chooses the column.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "db/columns.h"

namespace {

// `read` and `write` are the two directions of one column.
template <typename Value, typename Read, typename Write>
void Check(const std::string& text, Read read, Write write) {
  Value value;
  if (!read(text, &value)) return;
  const std::string written = write(value);
  Value again;
  if (!read(written, &again) || write(again) != written) std::abort();
}

template <typename Value>
void CheckColumn(const std::string& text) {
  Check<Value>(
      text, [](const std::string& t, Value* value) { return kiln::db::FromColumn(t, value); },
      [](const Value& value) { return kiln::db::ToColumn(value); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      CheckColumn<Plan>(text);
      break;
    case 1:
      Check<Record>(text, db::FromEvidence, db::EvidenceColumn);
      break;
    case 2:
      CheckColumn<WorkloadSpec>(text);
      break;
    case 3:
      Check<Outcome>(text, db::FromDetail, db::DetailColumn);
      break;
    case 4:
      Check<Job>(text, db::FromRequest, db::RequestColumn);
      break;
    case 5:
      Check<Job>(text, db::FromCondition, db::ConditionColumn);
      break;
    case 6:
      CheckColumn<std::vector<std::string>>(text);
      break;
    case 7:
      CheckColumn<std::vector<int64_t>>(text);
      break;
  }
  return 0;
}
