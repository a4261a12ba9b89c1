// SPDX-License-Identifier: Apache-2.0
// A bounded cache by text, least recently used out first, in shards so that lookups do not queue
// for one lock. Thread-safe. It may be emptied at any time; values are small or shared pointers.
#pragma once

#include <array>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace kiln::server {

template <typename Value>
class Lru {
 public:
  // `cost_limit` in whatever unit Insert's costs are (bytes).
  explicit Lru(size_t cost_limit) : shard_limit_(cost_limit / kShards) {}

  std::optional<Value> Find(absl::string_view key) {
    Shard& shard = Of(key);
    std::lock_guard<std::mutex> lock(shard.mutex);
    const auto it = shard.index.find(key);
    if (it == shard.index.end()) return std::nullopt;
    shard.items.splice(shard.items.begin(), shard.items, it->second);
    return it->second->value;
  }

  // Replaces what was there. A value that costs more than a shard may hold is not kept.
  void Insert(absl::string_view key, Value value, size_t cost) {
    cost += key.size() + kOverhead;
    Shard& shard = Of(key);
    std::list<Item> dropped;  // destroyed without the lock
    std::lock_guard<std::mutex> lock(shard.mutex);
    if (const auto it = shard.index.find(key); it != shard.index.end())
      Drop(shard, it->second, &dropped);
    if (cost > shard_limit_) return;
    while (shard.cost + cost > shard_limit_) Drop(shard, std::prev(shard.items.end()), &dropped);
    shard.items.push_front({std::string(key), std::move(value), cost});
    shard.index[shard.items.front().key] = shard.items.begin();
    shard.cost += cost;
  }

  void Erase(absl::string_view key) {
    Shard& shard = Of(key);
    std::list<Item> dropped;
    std::lock_guard<std::mutex> lock(shard.mutex);
    if (const auto it = shard.index.find(key); it != shard.index.end())
      Drop(shard, it->second, &dropped);
  }

  size_t cost() {
    size_t sum = 0;
    for (Shard& shard : shards_) {
      std::lock_guard<std::mutex> lock(shard.mutex);
      sum += shard.cost;
    }
    return sum;
  }

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kOverhead = 160;  // list node, hash slot, string header

  struct Item {
    std::string key;
    Value value;
    size_t cost;
  };
  using Iterator = typename std::list<Item>::iterator;
  struct Shard {
    std::mutex mutex;
    std::list<Item> items;  // most recent first; keys of the index point into it
    absl::flat_hash_map<absl::string_view, Iterator> index;
    size_t cost = 0;
  };

  Shard& Of(absl::string_view key) {
    // The upper bits: the table inside uses the lower ones.
    return shards_[(absl::Hash<absl::string_view>()(key) >> 48) % kShards];
  }
  static void Drop(Shard& shard, Iterator item, std::list<Item>* dropped) {
    shard.cost -= item->cost;
    shard.index.erase(item->key);
    dropped->splice(dropped->begin(), shard.items, item);
  }

  const size_t shard_limit_;
  std::array<Shard, kShards> shards_;
};

}  // namespace kiln::server
