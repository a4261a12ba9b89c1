// SPDX-License-Identifier: Apache-2.0
// GetSchedule and BatchGetSchedules. They never start work. The usual case is an answer that was
// given before to the same bytes: it is found by them and sent as it was, so that a lookup costs
// hardly more than an empty call. The next best is one that the store keeps for the very question:
// one point read. Only who asks in other words than the record's own is understood in full.
#include <chrono>
#include <cstring>
#include <utility>

#include "server/answer_message.h"
#include "server/call_service.h"
#include "server/explain.h"
#include "server/kiln_service.h"
#include "server/selection.h"

namespace kiln::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kMaxBatch = 1000;
// What fits into the 4 MiB that every client receives, with room for the frame.
constexpr size_t kMaxBatchBytes = 3'800'000;
// Programs up to this size are parsed on the spot (tens of microseconds); larger ones on the pool.
constexpr size_t kInlineBytes = 8192;

// The cache's keys: a request's bytes and a question's text are told apart by their first letter.
constexpr char kByBytes = 'b', kByQuestion = 'q';
constexpr int kAheadBatch = 512;
// Reading ahead ends here; the rest of the memory is for what is asked.
constexpr double kAheadShare = 0.9;

std::string KeyOf(const grpc::ByteBuffer& buffer) {
  std::string bytes(1, kByBytes);
  bytes.reserve(buffer.Length() + 1);
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// GetScheduleResponse.lookup_ns alone, serialised: appended to a message, it sets the field.
grpc::Slice LookupNs(SteadyClock::time_point began) {
  const double ns = std::chrono::duration<double, std::nano>(SteadyClock::now() - began).count();
  char bytes[9];
  bytes[0] = static_cast<char>((v1::GetScheduleResponse::kLookupNsFieldNumber << 3) |
                               1);  // a fixed 64-bit value
  uint64_t bits;
  std::memcpy(&bits, &ns, sizeof bits);
  for (int i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (8 * i));
  return grpc::Slice(bytes, sizeof bytes);
}

// A slice of the remembered response, without a copy; the reference goes with the slice.
grpc::Slice Share(std::shared_ptr<const std::string> text) {
  using Ref = std::shared_ptr<const std::string>;
  Ref* ref = new Ref(std::move(text));
  return grpc::Slice(
      const_cast<char*>((*ref)->data()), (*ref)->size(),
      [](void* p) { delete static_cast<Ref*>(p); }, ref);
}

absl::Status CheckQuality(const v1::GetScheduleRequest& request, Match* least) {
  KILN_ASSIGN_OR_RETURN(*least, wire::FromWire(request.min_quality()));
  if (*least == Match::kExact || *least == Match::kStale) return absl::OkStatus();
  const std::string word(Print(*least));
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat("min_quality: ", word, " is not built yet; allowed: exact, stale"),
                   {"QUALITY_NOT_BUILT",
                    {{"field", "min_quality"}, {"value", word}, {"allowed", "exact, stale"}}});
}

}  // namespace

KilnService::ReadyPtr KilnService::FindReady(const std::string& key) {
  std::optional<Cached> cached = cache_.Find(key);
  if (!cached || !core_->lookup.IsCurrent(cached->ready->fresh)) return nullptr;
  Add(core_->counters.lookups_from_memory);
  Add(cached->ready->status.ok() ? core_->counters.lookup_hits : core_->counters.lookup_misses);
  return std::move(cached->ready);
}

bool KilnService::ReadAhead() {
  if (static_cast<double>(cache_.cost()) > kAheadShare * static_cast<double>(cache_limit_))
    return false;
  const int64_t publications = core_->lookup.publications();
  absl::StatusOr<db::AnswerPage> page = core_->store->ListAnswers(ahead_, kAheadBatch);
  if (!page.ok()) return false;
  for (db::StoredAnswer& answer : page->answers) {
    const std::string key = absl::StrCat(std::string(1, kByQuestion), answer.question);
    answer.question.clear();
    const size_t cost = answer.message.size() + sizeof(AheadAnswer) + answer.signature.size() +
                        answer.toolchain.size() + answer.emitter.size() + answer.record.size();
    cache_.Insert(
        key, {nullptr, std::make_shared<AheadAnswer>(AheadAnswer{std::move(answer), publications})},
        cost);
    Add(core_->counters.answers_read_ahead);
  }
  ahead_ = page->before;
  return ahead_ != 0;
}

KilnService::ReadyPtr KilnService::TakeAhead(const std::string& question,
                                             const std::string& device_id) {
  const std::string key = absl::StrCat(std::string(1, kByQuestion), question);
  const std::optional<Cached> cached = cache_.Find(key);
  if (!cached) return nullptr;
  cache_.Erase(key);
  const std::optional<Freshness> fresh =
      core_->lookup.StillExact(cached->ahead->answer, cached->ahead->publications, device_id);
  if (!fresh) return nullptr;
  auto ready = std::make_shared<ReadyAnswer>();
  ready->fresh = *fresh;
  // The message stays where it is.
  ready->response = {cached->ahead, &cached->ahead->answer.message};
  Add(core_->counters.lookups_from_memory);
  return ready;
}

KilnService::ReadyPtr KilnService::FindKept(const v1::GetScheduleRequest& request,
                                            const std::string& key) {
  Match least = Match::kExact;
  if (!CheckQuality(request, &least).ok()) return nullptr;
  const absl::StatusOr<Spelling> spelling = Spell(request.selection(), &core_->lookup);
  if (!spelling.ok()) return nullptr;
  // Who names a signature, too, is answered where it can be compared.
  const std::string& signature = request.selection().signature();
  ReadyPtr ready = signature.empty() ? TakeAhead(spelling->question, spelling->device_id) : nullptr;
  if (ready == nullptr) {
    std::optional<Lookup::Kept> kept =
        core_->lookup.FindKept(spelling->question, spelling->device_id);
    if (!kept || (!signature.empty() && signature != kept->answer.signature)) return nullptr;
    auto found = std::make_shared<ReadyAnswer>();
    found->fresh = kept->fresh;
    found->response = std::make_shared<const std::string>(std::move(kept->answer.message));
    ready = std::move(found);
  }
  Add(core_->counters.lookup_hits);
  Remember(key, ready);
  return ready;
}

void KilnService::Remember(const std::string& key, const ReadyPtr& ready) {
  const size_t size = ready->response == nullptr ? ready->status.error_details().size() + 512
                                                 : ready->response->size();
  cache_.Insert(key, {ready, nullptr}, size + sizeof(ReadyAnswer));
}

KilnService::ReadyPtr KilnService::MakeReady(const v1::GetScheduleRequest& request,
                                             const std::string& key) {
  if (ReadyPtr kept = FindKept(request, key)) return kept;
  auto ready = std::make_shared<ReadyAnswer>();
  const absl::StatusOr<Question> question = Understand(request.selection(), &core_->lookup);
  if (question.ok()) {
    ready->fresh = core_->lookup.FreshnessOf(question->key);
    absl::StatusOr<std::string> response = BuildAnswer(request, *question);
    ready->status = wire::ToGrpc(response.status());
    if (response.ok()) {
      ready->response = std::make_shared<const std::string>(*std::move(response));
    }
  } else if (GetErrorInfo(question.status()).reason == "NO_WORKER_FOR_DEVICE") {
    // No worker and no record ever named such a device: to a lookup that is a miss like any other.
    ready->status = wire::ToGrpc(MakeError(absl::StatusCode::kNotFound, question.status().message(),
                                           {"NOT_TUNED", GetErrorInfo(question.status()).details}));
  } else {
    ready->status = wire::ToGrpc(question.status());
  }
  const bool miss = ready->status.error_code() == grpc::StatusCode::NOT_FOUND;
  Add(ready->status.ok() ? core_->counters.lookup_hits
      : miss             ? core_->counters.lookup_misses
                         : core_->counters.lookup_errors);
  // Errors of the moment are not remembered.
  if (ready->status.ok() || miss) Remember(key, ready);
  return ready;
}

absl::StatusOr<std::string> KilnService::BuildAnswer(const v1::GetScheduleRequest& request,
                                                     const Question& question) {
  Match least = Match::kExact;
  KILN_RETURN_IF_ERROR(CheckQuality(request, &least));
  KILN_ASSIGN_OR_RETURN(const Answer answer, core_->lookup.Find(question));
  if (answer.match > least) {
    db::RecordFilter filter{question.key.signature, ""};
    KILN_ASSIGN_OR_RETURN(const db::PageOf<Record> near,
                          core_->store->ListRecords(filter, {5, ""}));
    return ExplainMiss(question, answer, near.items);
  }
  return AnswerMessage(answer.match, *answer.record, *question.workload, answer.stale_because);
}

grpc::ServerUnaryReactor* KilnService::GetSchedule(Context* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  const auto began = SteadyClock::now();
  const auto send = [response, began](const ReadyAnswer& ready) {
    if (ready.response == nullptr) return ready.status;
    const grpc::Slice slices[] = {Share(ready.response), LookupNs(began)};
    *response = grpc::ByteBuffer(slices, 2);
    return ready.status;
  };
  std::string key = KeyOf(*request);
  auto* reactor = context->DefaultReactor();
  if (const ReadyPtr ready = FindReady(key)) {
    reactor->Finish(send(*ready));
    return reactor;
  }
  const auto work = [this, reactor, send, key = std::move(key)] {
    v1::GetScheduleRequest message;
    const size_t size = key.size() - 1;
    if (!message.ParseFromArray(key.data() + 1, static_cast<int>(size))) {
      reactor->Finish(
          wire::ToGrpc(InvalidField("BAD_MESSAGE", "request", absl::StrCat(size, " bytes"),
                                    "no GetScheduleRequest", "a serialised message")));
      return;
    }
    reactor->Finish(send(*MakeReady(message, key)));
  };
  if (request->Length() <= kInlineBytes) {
    work();
  } else {
    core_->pool.Run(work);
  }
  return reactor;
}

grpc::ServerUnaryReactor* KilnService::BatchGetSchedules(
    Context* context, const v1::BatchGetSchedulesRequest* request,
    v1::BatchGetSchedulesResponse* response) {
  return Offload(core_, context, [this, request, response]() -> absl::Status {
    if (request->requests_size() > kMaxBatch) {
      return InvalidField("TOO_MANY", "requests", absl::StrCat(request->requests_size()),
                          "too many", absl::StrCat("0..", kMaxBatch));
    }
    size_t size = 0;
    for (const v1::GetScheduleRequest& one : request->requests()) {
      auto* item = response->add_items();
      const auto began = SteadyClock::now();
      const std::string key = absl::StrCat(std::string(1, kByBytes), one.SerializeAsString());
      ReadyPtr ready = FindReady(key);
      if (ready == nullptr) ready = MakeReady(one, key);
      if (ready->response != nullptr) {
        size += ready->response->size() + 32;
        if (size > kMaxBatchBytes) {
          wire::ToWire(
              MakeError(absl::StatusCode::kResourceExhausted,
                        "the answers before this one fill the message; ask for this one again",
                        {"BATCH_TOO_LARGE",
                         {{"limit", absl::StrCat(kMaxBatchBytes)}, {"retry_after_seconds", "0"}}}),
              item->mutable_status());
          continue;
        }
        item->mutable_response()->ParseFromString(*ready->response);
        item->mutable_response()->set_lookup_ns(
            std::chrono::duration<double, std::nano>(SteadyClock::now() - began).count());
      } else if (ready->status.error_code() == grpc::StatusCode::NOT_FOUND) {
        item->mutable_response()->set_match(v1::MATCH_NONE);
      } else {
        wire::ToWire(wire::FromGrpc(ready->status), item->mutable_status());
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace kiln::server
