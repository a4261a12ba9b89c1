// SPDX-License-Identifier: Apache-2.0
// bench_lookup_server DATABASE: Kiln's server and, in the same process, an echo: the least that a
// unary gRPC call can be. The echo takes raw bytes and answers with as many as it was last told to
// (by a request of four bytes: their number). Once the answers of all records are made (a server
// makes them behind an import), prints the two addresses; ends when its input does.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "db/sqlite_store.h"
#include "kiln/v1/kiln.grpc.pb.h"
#include "server/server.h"
#include "worker/compiler/families/family.h"

namespace kiln::bench {
namespace {

class Echo : public v1::KilnService::WithRawCallbackMethod_GetSchedule<v1::KilnService::Service> {
 public:
  grpc::ServerUnaryReactor* GetSchedule(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override {
    grpc::Slice bytes;
    if (request->Length() == sizeof(uint32_t) && request->DumpToSingleSlice(&bytes).ok()) {
      uint32_t size = 0;
      std::memcpy(&size, bytes.begin(), sizeof(size));
      size_ = size;
    }
    grpc::Slice answer(zeros_.data(), std::min<size_t>(size_, zeros_.size()));
    *response = grpc::ByteBuffer(&answer, 1);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::string zeros_ = std::string(1 << 20, '\0');
  std::atomic<uint32_t> size_{0};
};

int Run(const char* path) {
  absl::StatusOr<std::unique_ptr<db::Store>> store =
      db::OpenSqliteStore({.path = path, .owner = "bench_lookup_server"});
  if (!store.ok()) {
    std::fprintf(stderr, "bench_lookup_server: %s\n", store.status().ToString().c_str());
    return 1;
  }
  const server::SystemClock clock;
  server::Options options;
  options.db = path;
  options.listen = "127.0.0.1:0";
  auto match = [](const Workload& workload, const DeviceFingerprint& device,
                  std::map<std::string, std::string>* refused) {
    return compiler::MatchFamily(workload, device, refused).status();
  };
  absl::StatusOr<std::unique_ptr<server::Server>> kiln =
      server::Server::Start(options, store->get(), &clock, match);
  if (!kiln.ok()) {
    std::fprintf(stderr, "bench_lookup_server: %s\n", kiln.status().ToString().c_str());
    return 1;
  }
  while ((*store)->Counters()["unanswered"] > 0) absl::SleepFor(absl::Milliseconds(20));
  Echo echo;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  std::unique_ptr<grpc::Server> echo_server = builder.BuildAndStart();
  std::printf("kiln %s\necho 127.0.0.1:%d\n", (*kiln)->address().c_str(), port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  echo_server->Shutdown();
  (*kiln)->Stop();
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_lookup_server DATABASE\n");
    return 2;
  }
  return kiln::bench::Run(argv[1]);
}
