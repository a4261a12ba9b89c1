// SPDX-License-Identifier: Apache-2.0
// The program itself, against a server in this process: exit codes, JSON shapes, what goes where.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "proto/contract/error.h"
#include "tests/client/fake_server.h"

namespace kiln::cli {
namespace {

using client::FakeProduct;
using client::MakeProduct;
using Json = nlohmann::json;

struct Result {
  int code = -1;
  std::string out, err;
  Json json() const { return Json::parse(out, nullptr, false); }
};

class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::path(testing::TempDir()) / "kiln-command-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  pid_t Spawn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KILN_TEST_BINARY);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, Path("out").c_str(), O_CREAT | O_TRUNC | O_WRONLY,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, 2, Path("err").c_str(), O_CREAT | O_TRUNC | O_WRONLY,
                                     0600);
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, KILN_TEST_BINARY, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }

  Result Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), Read("out"), Read("err")};
  }

  // With --server, unless the line says otherwise.
  Result Kiln(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server", server_.address()});
    return Wait(Spawn(arguments));
  }

  // Exit code, error object and the line on stderr.
  Json ExpectError(int code, std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Result result = Kiln(arguments);
    EXPECT_EQ(result.code, code) << result.out << result.err;
    EXPECT_EQ(result.err.rfind("kiln: ", 0), 0) << result.err;
    const Json json = result.json();
    EXPECT_TRUE(json.is_object() && json.contains("error")) << result.out;
    if (!json.is_object() || !json.contains("error")) return Json::object();
    for (const char* field : {"code", "reason", "message", "details"})
      EXPECT_TRUE(json["error"].contains(field)) << field;
    return json["error"];
  }

  std::vector<std::string> Select(const std::string& command, int m, int n, int k) {
    return {command, "matmul", "--dims",
            "M=" + std::to_string(m) + ",N=" + std::to_string(n) + ",K=" + std::to_string(k)};
  }

  client::FakeServer server_;
  std::filesystem::path folder_;
};

TEST_F(CommandTest, LookupPrintsTheWholeAnswer) {
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.Store(product.record);
  auto line = Select("lookup", 4, 5, 6);
  line.push_back("--json");
  const Result result = Kiln(line);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = result.json();
  EXPECT_EQ(json["match"], "exact");
  EXPECT_EQ(json["signature"], product.record.key.signature);
  EXPECT_EQ(json["device"], product.record.key.device);
  EXPECT_EQ(json["objective"], "warm,burst");
  EXPECT_EQ(json["schedule"], "contraction/1 mr=6 nr=16");
  EXPECT_EQ(json["record"], product.record.id);
  EXPECT_EQ(json["job"], "jobs/00000000000000bb");
  const Json& step = json["plan"][0];
  EXPECT_EQ(step["kind"], "kernel");
  EXPECT_EQ(step["entry"], "matmul");
  EXPECT_EQ(step["grid"], Json({4, 1, 1}));
  EXPECT_EQ(step["block"], Json({1, 1, 1}));
  EXPECT_EQ(step["cluster"].size(), 3);
  EXPECT_EQ(step["shared_bytes"], 0);
  EXPECT_TRUE(step["attributes"].is_object());
  EXPECT_EQ(step["artifact"], client::KernelArtifactDigest());
  EXPECT_EQ(step["arguments"][1]["name"], "B");
  EXPECT_EQ(step["arguments"][1]["tensor"], 1);
  EXPECT_EQ(step["arguments"][3]["scalar"], 4);
  EXPECT_EQ(json["workspace_bytes"], 0);
  EXPECT_EQ(json["required_alignment"], Json({{"A", 16}, {"B", 16}, {"C", 16}}));
  EXPECT_EQ(json["measurement"]["median_ns"], 1234.5);
  EXPECT_EQ(json["measurement"]["ci95_ns"], Json({1200.0, 1300.0}));
  for (const char* field : {"samples", "timer", "cache", "method"})
    EXPECT_TRUE(json["measurement"].contains(field)) << field;
  EXPECT_EQ(json["baseline"],
            Json({{"name", "openblas 0.3.21 zen"}, {"median_ns", 1500.0}, {"ratio", 1.21}}));
  EXPECT_EQ(json["verified"]["method"], "f64-reference/1");
  EXPECT_EQ(json["verified"]["sets"], 6);
  EXPECT_EQ(json["trials"],
            Json({{"measured", 37}, {"failed", {{"mismatch", 2}, {"compile", 1}}}}));
  EXPECT_EQ(json["toolchain"], "g++ 12.2.0");
  EXPECT_EQ(json["created"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["lookup_ns"], 5000.0);
}

TEST_F(CommandTest, PeopleGetTheSameInWords) {
  server_.Store(MakeProduct(4, 5, 6).record);
  const Result result = Kiln(Select("lookup", 4, 5, 6));
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* words :
       {"contraction/1 mr=6 nr=16", "1.234 us, 0.2 GFLOP/s", "openblas 0.3.21 zen", "6 input sets",
        "37 measured, 3 failed (1 compile, 2 mismatch)"}) {
    EXPECT_NE(result.out.find(words), std::string::npos) << words << " is not in\n" << result.out;
  }
}

TEST_F(CommandTest, AMissExplainsTheKeyAndTheCommand) {
  const Json error = ExpectError(3, Select("lookup", 4, 5, 6));
  EXPECT_EQ(error["reason"], "NOT_TUNED");
  const std::string message = error["message"];
  EXPECT_NE(message.find("; to tune it: kiln tune matmul --dims M=4,N=5,K=6"), std::string::npos)
      << message;
  EXPECT_NE(message.find(MakeProduct(4, 5, 6).record.key.signature), std::string::npos) << message;
}

TEST_F(CommandTest, TuneAnswersWithTheWinnerAndIsSilentWithoutATerminal) {
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.AddWatch({{client::RunningOperation("operations/1", 2, 10),
                     client::DoneOperation("operations/1", product.record)},
                    absl::OkStatus()});
  auto line = Select("tune", 4, 5, 6);
  line.insert(line.end(), {"--trials", "10", "--json"});
  const Result result = Kiln(line);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.json()["match"], "exact");
  EXPECT_EQ(result.json()["record"], product.record.id);
}

TEST_F(CommandTest, AFailedJobHasItsOwnExitCode) {
  server_.AddWatch({{client::FailedOperation(
                        "operations/1", MakeError(absl::StatusCode::kInternal,
                                                  "every candidate failed", {"ALL_FAILED", {}}))},
                    absl::OkStatus()});
  const Json error = ExpectError(5, Select("tune", 4, 5, 6));
  EXPECT_EQ(error["reason"], "JOB_FAILED");
  EXPECT_EQ(error["details"]["cause"], "ALL_FAILED");
  server_.AddWatch({{client::FailedOperation(
                        "operations/1", MakeError(absl::StatusCode::kFailedPrecondition,
                                                  "no worker came", {"NO_WORKER_FOR_DEVICE", {}}))},
                    absl::OkStatus()});
  ExpectError(4, Select("tune", 4, 5, 6));
}

TEST_F(CommandTest, RefusalsKeepTheServersReason) {
  server_.AddFailure(
      MakeError(absl::StatusCode::kResourceExhausted, "the queue is full", {"QUEUE_FULL", {}}));
  EXPECT_EQ(ExpectError(6, Select("tune", 4, 5, 6))["reason"], "QUEUE_FULL");
}

TEST_F(CommandTest, UsageAndProgramErrorsAreTwo) {
  ExpectError(2, {"frobnicate"});
  ExpectError(2, {"tune", "matmul", "--frobnicate"});
  ExpectError(2, {"lookup", "nosuch"});
  ExpectError(2, {"lookup", "matmul", "--dims", "M=4,N=5"});
  ExpectError(2, {"lookup", "matmul", "--dims", "M=-4,N=5,K=6"});
  ExpectError(2, {"artifact", "get", "no digest", "-o", Path("x")});
  EXPECT_EQ(server_.lookups, 0);  // none of it needs a server
}

TEST_F(CommandTest, NoServerIsFour) {
  server_.Stop();
  auto line = Select("lookup", 4, 5, 6);
  line.insert(line.end(), {"--timeout", "1"});
  EXPECT_EQ(ExpectError(4, line)["reason"], "SERVER_UNAVAILABLE");
}

TEST_F(CommandTest, AnInterruptWithdrawsAndSaysHowToComeBack) {
  auto line = Select("tune", 4, 5, 6);
  line.insert(line.end(), {"--json", "--server", server_.address()});
  const pid_t pid = Spawn(line);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (server_.watches == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  kill(pid, SIGINT);
  const Result result = Wait(pid);
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(server_.cancels, 1);
  EXPECT_NE(result.err.find("kiln job get jobs/00000000000000bb"), std::string::npos) << result.err;
  EXPECT_EQ(result.json()["error"]["details"]["operation"], "operations/00000000000000aa");
}

TEST_F(CommandTest, ListsAreObjectsAndMayBeEmpty) {
  EXPECT_EQ(Kiln({"jobs", "--json"}).json(), Json({{"jobs", Json::array()}}));
  EXPECT_EQ(Kiln({"records", "--json"}).json(), Json({{"records", Json::array()}}));
  Job job;
  job.name = "jobs/00000000000000bb";
  job.key = MakeProduct(4, 5, 6).record.key;
  job.spec = MakeProduct(4, 5, 6).spec;
  job.device = MakeProduct(4, 5, 6).record.device;
  job.state = JobState::kRunning;
  job.operations = 3;
  server_.StoreJob(job);
  const Result jobs = Kiln({"jobs", "--json"});
  ASSERT_EQ(jobs.code, 0) << jobs.err;
  const Json listed = jobs.json()["jobs"][0];
  EXPECT_EQ(listed["name"], "jobs/00000000000000bb");
  EXPECT_EQ(listed["state"], "running");
  EXPECT_EQ(listed["operation_count"], 3);
  EXPECT_EQ(listed["device"], job.key.device);
  EXPECT_EQ(Kiln({"workers", "--json"}).json()["workers"][0]["state"], "idle");
  EXPECT_EQ(Kiln({"job", "get", "jobs/00000000000000bb", "--json"}).json()["name"],
            "jobs/00000000000000bb");
  ExpectError(3, {"job", "get", "jobs/0000000000000000"});
  ExpectError(2, {"job", "cancel", "jobs/00000000000000bb"});
}

TEST_F(CommandTest, ArtifactsAndRecordsAreFetched) {
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.Store(product.record);
  EXPECT_EQ(Kiln({"record", "get", product.record.id, "--json"}).json()["signature"],
            product.record.key.signature);
  ASSERT_EQ(
      Kiln({"artifact", "get", client::KernelArtifactDigest(), "-o", Path("kernels.so")}).code, 0);
  EXPECT_EQ(Read("kernels.so"), client::KernelArtifact());
  ExpectError(3, {"artifact", "get", std::string(64, '0'), "-o", Path("none")});
}

TEST_F(CommandTest, RunChecksAndTimesTheStoredPlan) {
  server_.Store(MakeProduct(33, 17, 9).record);
  auto line = Select("run", 33, 17, 9);
  line.push_back("--json");
  const Result result = Kiln(line);
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = result.json();
  EXPECT_GT(json["median_ns"], 0);
  EXPECT_LE(json["max_error"], json["tolerance"]);
  EXPECT_EQ(json["checked"], 33 * 17);
}

TEST_F(CommandTest, AWrongResultIsSeven) {
  server_.Store(MakeProduct(33, 17, 9, "wrong_matmul").record);
  const Json error = ExpectError(7, Select("run", 33, 17, 9));
  EXPECT_EQ(error["reason"], "RESULT_DIFFERS");
  EXPECT_NE(error["message"].get<std::string>().find("C["), std::string::npos) << error;
}

TEST_F(CommandTest, InspectTakesEveryLegalProgramWithoutAServer) {
  server_.Stop();
  const Result result = Kiln({"inspect", "softmax", "--dims", "M=4,N=8", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = result.json();
  EXPECT_EQ(json["signature"].get<std::string>().size(), 64);
  EXPECT_TRUE(json["family"].is_null());
  EXPECT_FALSE(json["refused"].empty());
  EXPECT_FALSE(json["axes"].empty());
  const Json product = Kiln({"inspect", "matmul", "--dims", "M=64,N=64,K=64", "--json"}).json();
  EXPECT_EQ(product["family"], "contraction/1");
  EXPECT_GT(product["space"]["size"], 10);
  EXPECT_FALSE(product["space"]["knobs"].empty());
  EXPECT_EQ(product["best"].size(), 10);
  EXPECT_LE(product["best"][0]["predicted_ns"], product["best"][9]["predicted_ns"]);
}

}  // namespace
}  // namespace kiln::cli
