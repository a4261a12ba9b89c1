// SPDX-License-Identifier: Apache-2.0
#include "server/answer_maker.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log.h"

namespace kiln::server {
namespace {

// A batch is some tens of milliseconds on one of the pool's threads, and one commit.
constexpr int kBatch = 256;
constexpr absl::Duration kPause = absl::Milliseconds(500);
constexpr absl::Duration kAfterFailure = absl::Seconds(30);

}  // namespace

absl::Duration AnswerMaker::MakeSome() {
  const absl::StatusOr<db::Unanswered> batch = store_->ListUnanswered(version_, kBatch);
  if (!batch.ok()) return kAfterFailure;
  if (batch->publications == 0) return kPause;
  std::vector<db::StoredAnswer> answers;
  answers.reserve(batch->records.size());
  for (const Record& record : batch->records) {
    absl::StatusOr<db::StoredAnswer> answer = make_(record);
    if (answer.ok()) {
      answers.push_back(*std::move(answer));
    } else {
      Log(Level::kWarning,
          absl::StrCat("no answer is kept for ", record.id, ": ", answer.status().message()));
    }
  }
  const absl::Status kept = store_->PutAnswers(version_, batch->upto, answers);
  // Lookups find the records without them, a full disk or a read-only store notwithstanding.
  if (!kept.ok()) return kAfterFailure;
  return batch->publications < kBatch ? kPause : absl::ZeroDuration();
}

}  // namespace kiln::server
