// SPDX-License-Identifier: Apache-2.0
// Keeps a number of unary calls in flight and times each. Requests and answers are raw bytes, so
// that the client costs the same whatever the server does.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln::bench {

struct Load {
  int64_t calls = 0;
  int64_t errors = 0;
  double seconds = 0;
  std::vector<int64_t> latency_ns;  // of each call, in order of completion
  std::string first_error;
};

class LoadClient {
 public:
  LoadClient(const std::string& address, int threads, int channels_per_thread);

  // One call; its answer's bytes. Ends the process on an error: the benchmark is not set up.
  std::string Call(const std::string& request);
  // `in_flight` calls at a time, until `calls` are done. `request` gives the bytes of the n-th
  // call, from any thread.
  Load Run(int64_t calls, int in_flight, const std::function<const std::string&(int64_t)>& request);

 private:
  Load RunThread(int thread, int64_t first, int64_t calls, int in_flight,
                 const std::function<const std::string&(int64_t)>& request);

  int threads_;
  std::vector<std::vector<std::unique_ptr<grpc::GenericStub>>> stubs_;  // by thread
};

}  // namespace kiln::bench
