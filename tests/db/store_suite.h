// SPDX-License-Identifier: Apache-2.0
// The contract of db/store.h as tests that every implementation passes. A test program includes
// this and says
//   INSTANTIATE_TEST_SUITE_P(NAME, StoreSuite, ::testing::Values(StoreFactory{...}));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/store.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {

// A fresh store in the given (empty) directory.
using StoreFactory = std::function<std::unique_ptr<Store>(const TestDirectory&)>;

class StoreSuite : public ::testing::TestWithParam<StoreFactory> {
 protected:
  StoreSuite() : store_(GetParam()(directory_)) {}

  Job MustCreate(int n, const std::string& request_id = "") {
    Operation operation = SampleOperation("alice", request_id);
    absl::StatusOr<Job> job = store_->CreateJob(SampleJob(n), &operation);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(Job());
  }
  std::string MustTune(int n, double median_ns = 1000.25) {
    absl::StatusOr<std::string> id = TuneSample(*store_, n, median_ns);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
  std::optional<Record> MustFind(const Key& key, const std::string& canonical) {
    absl::StatusOr<std::optional<Record>> record = store_->FindPublished(key, canonical);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *record : std::nullopt;
  }

  TestDirectory directory_;
  std::unique_ptr<Store> store_;
};

inline std::string Detail(const absl::Status& status, const std::string& name) {
  return GetErrorInfo(status).details[name];
}

}  // namespace kiln::db

#include "tests/db/store_suite_answers.inc"
#include "tests/db/store_suite_jobs.inc"
#include "tests/db/store_suite_records.inc"
