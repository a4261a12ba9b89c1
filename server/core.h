// SPDX-License-Identifier: Apache-2.0
// The server's parts, made in order and handed to the services. No gRPC. What it is given outlives
// it.
#pragma once

#include "absl/status/statusor.h"
#include "db/store.h"
#include "server/admission.h"
#include "server/clock.h"
#include "server/counters.h"
#include "server/dispatcher.h"
#include "server/held_calls.h"
#include "server/job_table.h"
#include "server/log.h"
#include "server/lookup.h"
#include "server/options.h"
#include "server/publisher.h"
#include "server/roster.h"
#include "server/store_watch.h"
#include "server/work_pool.h"

namespace kiln::server {

struct Core {
  Core(const Options& o, db::Store* s, const Clock* c, FamilyMatcher m)
      : options(o),
        store(s),
        clock(c),
        match(std::move(m)),
        roster(c, o.jobs.lease_expiry),
        jobs(s, c, o.jobs, &counters),
        // Most of the memory is for ready answers (KilnService), the rest for what they are made
        // of.
        lookup(s, &roster, c, o.worker_grace, o.cache_bytes / 4, &counters),
        dispatcher(&jobs, &roster, c, &counters),
        publisher(s, &jobs, &lookup, c, &counters),
        held(o.max_held_calls),
        pool(o.threads) {}

  // Reads what a restart must not lose. Codes of the store.
  absl::Status Start() {
    KILN_RETURN_IF_ERROR(lookup.Start());
    KILN_RETURN_IF_ERROR(jobs.Recover());
    pool.RunEvery(absl::Milliseconds(100), [this] { dispatcher.Sweep(); });
    pool.RunEvery(absl::Seconds(5), [this] { WatchStore(); });
    return absl::OkStatus();
  }

  void WatchStore() {
    std::map<std::string, int64_t> totals = store->Counters();
    const auto news = store_watch.Note(totals["write_failures"], totals["commits"]);
    if (news) Log(Level::kWarning, *news);
  }

  const Options options;
  db::Store* const store;
  const Clock* const clock;
  const FamilyMatcher match;
  Counters counters;
  Roster roster;
  JobTable jobs;
  Lookup lookup;
  Dispatcher dispatcher;
  Publisher publisher;
  HeldCalls held;
  StoreWatch store_watch;
  WorkPool pool;  // last: its threads use the others
};

}  // namespace kiln::server
