// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace kiln::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<std::pair<std::string, std::string>>;

// One scrape: families in the order in which they are first named.
class Page {
 public:
  void Counter(const std::string& name, const std::string& help, double value,
               const Labels& labels = {}) {
    AddMetric(name, help, MetricType::Counter, labels).counter.value = value;
  }
  void Gauge(const std::string& name, const std::string& help, double value,
             const Labels& labels = {}) {
    AddMetric(name, help, MetricType::Gauge, labels).gauge.value = value;
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  ClientMetric& AddMetric(const std::string& name, const std::string& help, MetricType type,
                          const Labels& labels) {
    if (families_.empty() || families_.back().name != name)
      families_.push_back({name, help, type, {}});
    ClientMetric metric;
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    families_.back().metric.push_back(std::move(metric));
    return families_.back().metric.back();
  }
  std::vector<MetricFamily> families_;
};

void AddCalls(const Counters& c, Page* page) {
  const std::string lookups = "kiln_lookups_total", help = "Lookups by outcome.";
  page->Counter(lookups, help, c.lookup_hits, {{"outcome", "hit"}});
  page->Counter(lookups, help, c.lookup_misses, {{"outcome", "miss"}});
  page->Counter(lookups, help, c.lookup_errors, {{"outcome", "error"}});
  page->Counter("kiln_answers_read_ahead_total", "Answers read into memory after the start.",
                c.answers_read_ahead);
  page->Counter("kiln_lookups_from_memory_total",
                "Answers and records that needed no read of the database.", c.lookups_from_memory);
  const std::string tunes = "kiln_tunes_total", tunes_help = "TuneSchedule by what came of it.";
  page->Counter(tunes, tunes_help, c.tunes_stored, {{"outcome", "stored"}});
  page->Counter(tunes, tunes_help, c.tunes_created, {{"outcome", "created"}});
  page->Counter(tunes, tunes_help, c.tunes_joined, {{"outcome", "joined"}});
  page->Counter(tunes, tunes_help, c.tunes_repeated, {{"outcome", "repeated"}});
  page->Counter(tunes, tunes_help, c.tunes_refused, {{"outcome", "refused"}});
}

void AddJobs(const Counters& c, Page* page) {
  const std::string ended = "kiln_jobs_ended_total", help = "Jobs by how they ended.";
  page->Counter(ended, help, c.jobs_succeeded, {{"state", "succeeded"}});
  page->Counter(ended, help, c.jobs_failed, {{"state", "failed"}});
  page->Counter(ended, help, c.jobs_cancelled, {{"state", "cancelled"}});
  page->Counter("kiln_job_queue_seconds_total",
                "Time that ended jobs waited for their first lease.", c.queue_seconds);
  page->Counter("kiln_job_run_seconds_total", "Time that ended jobs were leased.", c.run_seconds);
  const std::string leases = "kiln_leases_total",
                    leases_help = "Leases granted, and how they went on.";
  page->Counter(leases, leases_help, c.leases_granted, {{"event", "granted"}});
  page->Counter(leases, leases_help, c.leases_released, {{"event", "released"}});
  page->Counter(leases, leases_help, c.leases_expired, {{"event", "expired"}});
  page->Counter(leases, leases_help, c.leases_kept, {{"event", "kept_over_restart"}});
  page->Counter(leases, leases_help, c.leases_fenced, {{"event", "fenced"}});
  page->Counter("kiln_leases_swept_total",
                "Leases that only the periodic sweep granted: a notification was missed.",
                c.swept_leases);
  page->Counter("kiln_outcomes_total", "Outcomes of candidates reported by workers.", c.outcomes);
  const std::string records = "kiln_records_total", records_help = "Records that workers brought.";
  page->Counter(records, records_help, c.published, {{"decision", "published"}});
  page->Counter(records, records_help, c.not_better, {{"decision", "not_better"}});
  page->Counter(records, records_help, c.records_refused, {{"decision", "refused"}});
  page->Counter("kiln_results_not_stored_total",
                "Records that could not be read back after they were written.", c.not_stored);
  page->Counter("kiln_store_failures_total", "Writes that the database refused or failed.",
                c.store_failures);
}

void AddState(Core* core, Page* page) {
  const auto depths = core->jobs.DepthByDevice();
  for (const auto& [device, depth] : depths) {
    page->Gauge("kiln_jobs", "Live jobs.", depth.queued, {{"device", device}, {"state", "queued"}});
    page->Gauge("kiln_jobs", "Live jobs.", depth.running,
                {{"device", device}, {"state", "running"}});
  }
  for (const auto& [device, depth] : depths) {
    page->Gauge("kiln_operations", "Operations on live jobs.", depth.operations,
                {{"device", device}});
  }
  for (const auto& [device, depth] : depths) {
    page->Gauge("kiln_queue_oldest_seconds", "Age of the oldest queued job.",
                depth.oldest_queued_seconds, {{"device", device}});
  }
  int64_t present = 0, lost = 0, draining = 0;
  for (const Worker& worker : core->roster.List()) {
    ++(worker.lost ? lost : worker.draining ? draining : present);
  }
  const std::string workers = "kiln_workers", help = "Workers by state.";
  page->Gauge(workers, help, present, {{"state", "present"}});
  page->Gauge(workers, help, draining, {{"state", "draining"}});
  page->Gauge(workers, help, lost, {{"state", "lost"}});
  page->Gauge("kiln_held_calls", "Open waits, watches and polls.", core->held.size());
  page->Gauge("kiln_pool_queue", "Calls that wait for a thread.", core->pool.depth());
  for (const auto& [name, value] : core->store->Counters()) {
    page->Gauge(absl::StrCat("kiln_store_", name), "Of the database, as it counts itself.", value);
  }
}

class Scrape final : public prometheus::Collectable {
 public:
  explicit Scrape(Core* core) : core_(core) {}
  std::vector<MetricFamily> Collect() const override {
    Page page;
    AddCalls(core_->counters, &page);
    AddJobs(core_->counters, &page);
    AddState(core_, &page);
    return page.Take();
  }

 private:
  Core* const core_;
};

class CivetEndpoint final : public MetricsEndpoint {
 public:
  CivetEndpoint(const std::string& address, Core* core)
      : scrape_(std::make_shared<Scrape>(core)), exposer_(address, /*num_threads=*/1) {
    exposer_.RegisterCollectable(scrape_);
  }
  int port() const override {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    return ports.empty() ? 0 : ports.front();
  }

 private:
  const std::shared_ptr<Scrape> scrape_;  // the exposer holds it weakly
  prometheus::Exposer exposer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(const std::string& address,
                                                                        Core* core) {
  try {
    std::unique_ptr<MetricsEndpoint> endpoint = std::make_unique<CivetEndpoint>(address, core);
    return endpoint;
  } catch (const std::exception& error) {  // CivetException
    return MakeError(
        absl::StatusCode::kUnavailable,
        absl::StrCat("--metrics-listen: cannot listen on ", address, ": ", error.what()),
        {"ADDRESS_IN_USE", {{"field", "--metrics-listen"}, {"value", address}}});
  }
}

}  // namespace kiln::server
