// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/references.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/verify/exactness.h"

namespace kiln::verify {
namespace {

// Of the file that keeps a set for other processes. It lives as long as a job, on one machine, for
// one build.
constexpr char kMagic[] = "kiln-reference/1";

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

uint64_t Hash(uint64_t hash, const void* bytes, size_t size) {
  const uint8_t* at = static_cast<const uint8_t*>(bytes);
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  for (; size > 0; ++at, --size) hash = (hash ^ *at) * 0x100000001B3u;
  return hash;
}

size_t OutputCount(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.tensors.begin(), graph.tensors.end(),
                    [](const Tensor& tensor) { return tensor.kind == TensorKind::kOutput; }));
}

std::string HeaderOf(const Workload& workload, SetKind kind, uint64_t seed) {
  return absl::StrCat(kMagic, " ", workload.signature, " ", Print(kind), " ", seed, "\n");
}

// The values and errors of all outputs, with a hash behind them. False if anything is not as it was
// written.
bool Load(const std::string& path, const std::string& header, std::vector<Expected>& outputs) {
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return false;
  std::string found(header.size(), '\0');
  if (std::fread(found.data(), 1, found.size(), file.get()) != found.size() || found != header) {
    return false;
  }
  uint64_t hash = 0, stored = 0;
  for (Expected& output : outputs) {
    for (std::vector<double>* part : {&output.values, &output.errors}) {
      if (std::fread(part->data(), sizeof(double), part->size(), file.get()) != part->size()) {
        return false;
      }
      hash = Hash(hash, part->data(), part->size() * sizeof(double));
    }
  }
  return std::fread(&stored, sizeof(stored), 1, file.get()) == 1 && stored == hash;
}

// Best effort: without it the next process computes again.
void Save(const std::string& path, const std::string& header,
          const std::vector<Expected>& outputs) {
  const std::string part = absl::StrCat(path, ".", getpid());
  File file(std::fopen(part.c_str(), "wb"));
  if (file == nullptr) return;
  bool good = std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  uint64_t hash = 0;
  for (const Expected& output : outputs) {
    for (const std::vector<double>* piece : {&output.values, &output.errors}) {
      good &=
          std::fwrite(piece->data(), sizeof(double), piece->size(), file.get()) == piece->size();
      hash = Hash(hash, piece->data(), piece->size() * sizeof(double));
    }
  }
  good &= std::fwrite(&hash, sizeof(hash), 1, file.get()) == 1;
  good &= std::fclose(file.release()) == 0;
  if (!good || std::rename(part.c_str(), path.c_str()) != 0) std::remove(part.c_str());
}

}  // namespace

ReferenceCache::ReferenceCache(const Workload& workload, Reference reference,
                               ReferenceOptions options)
    : workload_(workload),
      reference_(std::move(reference)),
      options_(std::move(options)),
      product_(ProductCheck::Find(workload, options_.slow_terms)) {}

std::string ReferenceCache::PathOf(SetKind kind) const {
  return absl::StrCat(options_.directory, "/reference-", Print(kind));
}

absl::StatusOr<const ReferenceSet*> ReferenceCache::Get(SetKind kind) {
  auto found = sets_.find(kind);
  if (found != sets_.end()) return found->second.get();
  auto set = Compute(kind);
  if (!set.ok()) return set.status();
  return sets_.emplace(kind, *std::move(set)).first->second.get();
}

absl::StatusOr<std::unique_ptr<ReferenceSet>> ReferenceCache::Compute(SetKind kind) {
  auto set = std::make_unique<ReferenceSet>();
  set->kind = kind;
  set->inputs = MakeInputs(workload_, kind, options_.seed);
  std::vector<const void*> inputs;
  for (const compiler::HostTensor& input : set->inputs) inputs.push_back(input.bytes.data());
  set->exact.assign(OutputCount(workload_.graph), false);
  if (kind == SetKind::kSmallInteger) {
    set->exact = ExactOutputs(workload_, SmallMagnitude(workload_));
  }
  if (product_) return set;
  std::vector<double*> values, errors;
  for (const Tensor& tensor : workload_.graph.tensors) {
    if (tensor.kind != TensorKind::kOutput) continue;
    size_t elements = 1;
    for (int64_t extent : StaticShape(workload_.graph, tensor))
      elements *= static_cast<size_t>(extent);
    set->outputs.push_back({std::vector<double>(elements), std::vector<double>(elements)});
  }
  for (Expected& output : set->outputs) {
    values.push_back(output.values.data());
    errors.push_back(output.errors.data());
  }
  const std::string header = HeaderOf(workload_, kind, options_.seed);
  if (!options_.directory.empty() && Load(PathOf(kind), header, set->outputs)) return set;
  switch (reference_(inputs.data(), values.data(), errors.data(), options_.threads)) {
    case 0:
      break;
    case 1:
      return absl::ResourceExhaustedError("the reference ran out of memory");
    default:
      return absl::InternalError(
          absl::StrCat("the reference refused the ", Print(kind),
                       " inputs: a subscript that depends on them is outside"));
  }
  if (!options_.directory.empty()) Save(PathOf(kind), header, set->outputs);
  return set;
}

}  // namespace kiln::verify
