// SPDX-License-Identifier: Apache-2.0
#include "client/cli/session.h"

#include <algorithm>

#include "proto/contract/error.h"

namespace kiln::cli {

absl::StatusOr<client::Client*> Session::Connect(bool needs_worker) {
  client::ClientOptions options;
  options.server = options_.server;
  options.answers = 0;  // one command asks once
  if (options_.timeout_seconds.has_value()) {
    options.call_timeout = absl::Seconds(*options_.timeout_seconds);
    options.retry_for = std::min(options.retry_for, options.call_timeout);
  }
  if (options_.local) {
    KILN_ASSIGN_OR_RETURN(local_, LocalCluster::Start(options_.database, needs_worker));
    interrupt_.SetCleanup([cluster = local_.get()] { cluster->Stop(); });
    options.server = local_->address();
  }
  KILN_ASSIGN_OR_RETURN(client_, client::Client::Make(options));
  return client_.get();
}

}  // namespace kiln::cli
