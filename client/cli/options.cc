// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

constexpr char kDefaultServer[] = "127.0.0.1:7600";
constexpr double kLongestSeconds = 1e7;

// A list that may be given in one piece or in several: --dims M=1,N=2 or --dims M=1 --dims N=2.
void AddList(CLI::App* app, const std::string& name, std::string* value, const std::string& help) {
  app->add_option(name, *value, help)->join(',');
}

void AddCommon(CLI::App* app, Options* options) {
  app->add_option("--server", options->server,
                  "HOST:PORT or unix:PATH (default: KILN_SERVER, else 127.0.0.1:7600)");
  app->add_flag("--json", options->json, "one JSON object on stdout, errors too");
  app->add_option("--timeout", options->timeout_seconds,
                  "seconds: of each call, and of the whole wait for a job")
      ->check(CLI::Range(0.001, kLongestSeconds));
  app->add_flag("--local", options->local,
                "start a server and a worker of one's own, and stop them afterwards");
  app->add_option("--db", options->database,
                  "with --local: the database file (default: a temporary one)");
}

void AddSelect(CLI::App* app, SelectText* select) {
  app->add_option("SELECT", select->program, "a standard operator's name, or a program: FILE.kiln")
      ->required();
  AddList(app, "--dims", &select->dims, "M=512,N=512,K=1..4096: a value or a range for each dim");
  AddList(app, "--type", &select->types,
          "A=f16,...: types of tensors that the program declares without one");
  AddList(app, "--stride", &select->strides, "A=600:1,...: strides in elements");
  AddList(app, "--align", &select->alignment,
          "A=4,...: alignment of base pointers in bytes (default 16)");
  AddList(app, "--alias", &select->alias, "y=x,...: an output that is computed in place");
  AddList(app, "--policy", &select->policy,
          "tf32, finite_only, approximate, accumulate=C:f16, order=fixed, library=no");
  AddList(app, "--objective", &select->objective, "warm|cold,burst|sustained");
  app->add_option("--device", select->device,
                  "cpu, cuda:any, a product, an architecture, sim:ARCH:PRODUCT or a fingerprint")
      ->capture_default_str();
}

void AddTune(CLI::App* app, Options* options) {
  AddSelect(app, &options->select);
  app->add_option("--trials", options->trials,
                  "candidates to evaluate, failed ones too (default 200)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  app->add_option("--seconds", options->seconds,
                  "from the first lease, final re-measurement included (default 60)")
      ->check(CLI::Range(0.001, kLongestSeconds));
  app->add_option("--seed", options->seed, "of the search");
  app->add_flag("--force", options->force, "search again, even if an answer is stored");
  app->add_option("--wait-worker", options->wait_worker,
                  "seconds to wait for a fitting worker (default 600)")
      ->check(CLI::Range(0.001, kLongestSeconds));
}

class Builder {
 public:
  explicit Builder(Options* options)
      : options_(options), app_("Kiln: tuned kernels, kept and served.", "kiln") {
    app_.set_version_flag("--version", absl::StrCat("kiln ", KILN_VERSION));
    app_.require_subcommand(1);
    AddCommon(&app_, options_);
    AddTune(Add("tune", "have a schedule searched, or get the stored one", Command::kTune),
            options_);
    CLI::App* lookup = Add("lookup", "get the stored schedule; never tunes", Command::kLookup);
    AddSelect(lookup, &options_->select);
    lookup
        ->add_option("--min-quality", options_->min_quality,
                     "exact, stale, near, predicted or default")
        ->check(CLI::IsMember({"exact", "stale", "near", "predicted", "default"}))
        ->capture_default_str();
    CLI::App* run =
        Add("run", "load the stored plan, run it, check it against a reference and time it",
            Command::kRun);
    AddSelect(run, &options_->select);
    AddList(run, "--in", &options_->inputs,
            "A=a.npy,...: data for inputs and constants (default: random)");
    AddList(run, "--out", &options_->outputs, "C=c.npy,...: where results go");
    AddSelect(Add("inspect", "what Kiln makes of a program; needs no server", Command::kInspect),
              &options_->select);
    Add("jobs", "list jobs, finished ones too", Command::kJobs);
    Add("records", "list what is stored", Command::kRecords);
    Add("workers", "list workers", Command::kWorkers);
    CLI::App* job = AddGroup("job", "one job");
    AddNamed(job, "get", "show it", Command::kJobGet, "NAME", "a job or an operation");
    AddNamed(job, "watch", "wait for its end, showing progress", Command::kJobWatch, "NAME",
             "an operation");
    AddNamed(job, "cancel", "withdraw one's interest in it", Command::kJobCancel, "NAME",
             "one's own operation");
    AddNamed(AddGroup("record", "one record"), "get", "show it", Command::kRecordGet, "ID",
             "of a record");
    CLI::App* artifact = AddNamed(AddGroup("artifact", "one artifact"), "get", "fetch it, checked",
                                  Command::kArtifactGet, "DIGEST", "64 hex digits");
    artifact->add_option("-o,--output", options_->output_file, "the file to write")->required();
  }

  CLI::App& app() { return app_; }

 private:
  CLI::App* Add(const std::string& name, const std::string& help, Command command,
                CLI::App* parent = nullptr) {
    CLI::App* sub = (parent == nullptr ? &app_ : parent)->add_subcommand(name, help);
    AddCommon(sub, options_);
    sub->callback([options = options_, command] { options->command = command; });
    return sub;
  }

  CLI::App* AddGroup(const std::string& name, const std::string& help) {
    CLI::App* group = app_.add_subcommand(name, help);
    group->require_subcommand(1);
    return group;
  }

  CLI::App* AddNamed(CLI::App* group, const std::string& name, const std::string& help,
                     Command command, const std::string& argument,
                     const std::string& argument_help) {
    CLI::App* sub = Add(name, help, command, group);
    sub->add_option(argument, options_->name, argument_help)->required();
    return sub;
  }

  Options* options_;
  CLI::App app_;
};

absl::Status Usage(absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat(message, "; see kiln --help"),
                   {"USAGE", {}});
}

}  // namespace

absl::StatusOr<ParsedLine> ParseCommandLine(int argc, const char* const* argv) {
  ParsedLine parsed;
  Builder builder(&parsed.options);
  try {
    builder.app().parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return Usage(error.what());
    std::ostringstream out;
    builder.app().exit(error, out, out);
    parsed.help = HelpText{out.str()};
    return parsed;
  }
  Options& options = parsed.options;
  if (!options.database.empty() && !options.local) return Usage("--db: only with --local");
  if (options.local && !options.server.empty())
    return Usage("--server: not with --local, which has a server of its own");
  if (options.server.empty()) {
    const char* server = std::getenv("KILN_SERVER");
    options.server = server != nullptr && *server != '\0' ? server : kDefaultServer;
  }
  return parsed;
}

bool AsksForJson(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

}  // namespace kiln::cli
