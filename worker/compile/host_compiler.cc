// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/host_compiler.h"

#include <errno.h>
#include <signal.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"
#include "proto/contract/workload.h"
#include "worker/compile/child.h"

namespace kiln::worker {
namespace {

constexpr int64_t kLogBytes = int64_t{1} << 20;

// Besides the emission's own. Nothing that depends on the time, the folder or chance goes into the
// output, and nothing is linked that is not used (a kernel needs libc and libm alone).
const char* const kFixedFlags[] = {
    "-std=c++20",          "-fPIC",          "-shared", "-fno-ident", "-frandom-seed=kiln",
    "-Wl,--build-id=none", "-Wl,--as-needed"};

bool TellsOfMemory(absl::string_view log) {
  return absl::StrContains(log, "virtual memory exhausted") ||
         absl::StrContains(log, "out of memory") ||
         absl::StrContains(log, "annot allocate memory") ||
         absl::StrContains(log, "std::bad_alloc");
}

absl::Status NoCompiler(const std::string& compiler, absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("compiler ", compiler, ": ", what,
                                "; install g++ or name another with --compiler"),
                   {"NO_COMPILER", {{"field", "compiler"}, {"value", compiler}}});
}

// A compiler that outlives the supervisor, and so its wall clock, ends by itself.
int64_t ProcessorSeconds(absl::Duration limit) {
  return limit == absl::InfiniteDuration() ? 0 : absl::ToInt64Seconds(limit) + 5;
}

}  // namespace

std::string FirstErrorLine(absl::string_view log, size_t limit) {
  absl::string_view first, chosen;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    if (first.empty()) first = line;
    const bool tells = absl::StrContains(line, "error:") ||
                       absl::StrContains(line, "undefined reference") ||
                       absl::StrContains(line, "cannot run");
    if (tells) {
      chosen = line;
      break;
    }
  }
  if (chosen.empty()) chosen = first;
  std::string text;
  // Folders of this machine say nothing to who reads it elsewhere: "/usr/bin/ld: x" becomes "ld:
  // x".
  for (absl::string_view word : absl::StrSplit(chosen, ' ')) {
    if (absl::StartsWith(word, "/")) word = word.substr(word.rfind('/') + 1);
    absl::StrAppend(&text, text.empty() ? "" : " ", word);
  }
  if (text.size() > limit) text.resize(limit);
  // Never half a character: drop what continues one, and its start.
  size_t end = text.size();
  while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80) --end;
  if (end < text.size() || (end > 0 && static_cast<unsigned char>(text[end - 1]) >= 0xC0))
    text.resize(end > 0 ? end - 1 : 0);
  return text;
}

absl::StatusOr<std::unique_ptr<HostCompiler>> HostCompiler::Make(const CompilerOptions& options,
                                                                 const TempRoot& root) {
  std::unique_ptr<HostCompiler> compiler(new HostCompiler(options, root));
  KILN_RETURN_IF_ERROR(compiler->Identify());
  absl::StatusOr<CompileResult> trial =
      compiler->Compile("extern \"C\" int kiln_probe() { return 0; }\n", {"-O0"}, nullptr);
  if (!trial.ok()) return Annotate(trial.status(), "trying the compiler");
  if (!trial->artifact.has_value()) {
    return NoCompiler(options.compiler,
                      absl::StrCat("cannot compile an empty program: ", trial->reason));
  }
  // Opened after the trial, which has to try the compiler, not the cache.
  if (!options.cache_dir.empty()) {
    KILN_ASSIGN_OR_RETURN(compiler->cache_,
                          ArtifactCache::Open(options.cache_dir, options.cache_bytes));
  }
  return compiler;
}

absl::StatusOr<std::string> HostCompiler::Ask(const std::string& question) const {
  KILN_ASSIGN_OR_RETURN(const TempFolder folder, TempFolder::Make(root_));
  const std::string log = absl::StrCat(folder.path(), "/log");
  ChildOptions child{.supervisor = options_.supervisor,
                     .command = {options_.compiler, question},
                     .log = log,
                     .temp_root = root_.path(),
                     .limit = options_.limit};
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Child> running, Child::Start(child));
  const ChildEnd end = running->Wait(nullptr);
  KILN_ASSIGN_OR_RETURN(const std::string text, LoadFile(log, kLogBytes));
  if (end.ok()) return std::string(absl::StripAsciiWhitespace(text));
  const std::string said = FirstErrorLine(text);
  return NoCompiler(options_.compiler,
                    absl::StrCat(question, " ", Print(end), said.empty() ? "" : ": ", said));
}

absl::Status HostCompiler::Identify() {
  KILN_ASSIGN_OR_RETURN(const std::string version, Ask("--version"));
  KILN_ASSIGN_OR_RETURN(const std::string machine, Ask("-dumpmachine"));
  if (absl::StrContains(version, "clang")) {
    // "Debian clang version 14.0.6"
    const std::vector<std::string> words =
        absl::StrSplit(version.substr(0, version.find('\n')), ' ', absl::SkipEmpty());
    std::string number = "unknown";
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "version") number = words[i + 1];
    }
    identity_ = absl::StrCat("clang++ ", number, " ", machine);
    return absl::OkStatus();
  }
  KILN_ASSIGN_OR_RETURN(const std::string number, Ask("-dumpfullversion"));
  identity_ = absl::StrCat("g++ ", number, " ", machine);
  return absl::OkStatus();
}

std::string HostCompiler::Toolchain(const std::vector<std::string>& flags) const {
  return absl::StrCat(
      identity_, " flags:",
      Sha256Hex(absl::StrCat(absl::StrJoin(kFixedFlags, "\n"), "\n", absl::StrJoin(flags, "\n")))
          .substr(0, 8));
}

absl::StatusOr<CompileResult> HostCompiler::Compile(absl::string_view source,
                                                    const std::vector<std::string>& flags,
                                                    const CancelToken* cancel,
                                                    std::optional<absl::Duration> limit) const {
  const absl::Time start = absl::Now();
  CompileResult result;
  std::vector<std::string> all(std::begin(kFixedFlags), std::end(kFixedFlags));
  all.insert(all.end(), flags.begin(), flags.end());
  const std::string key = cache_.has_value() ? ArtifactCache::Key(identity_, all, source) : "";
  if (cache_.has_value()) {
    if (std::optional<std::string> bytes = cache_->Find(key)) {
      std::string digest = Sha256Hex(*bytes);
      result.artifact = Compiled{*std::move(bytes), std::move(digest), true};
      result.spent = absl::Now() - start;
      return result;
    }
  }

  KILN_ASSIGN_OR_RETURN(const TempFolder folder, TempFolder::Make(root_));
  KILN_RETURN_IF_ERROR(
      SaveFile(absl::StrCat(folder.path(), "/kernel.cc"), source, /*durable=*/false));
  ChildOptions child{.supervisor = options_.supervisor,
                     .directory = folder.path(),
                     .log = absl::StrCat(folder.path(), "/log"),
                     .temp_root = root_.path(),
                     .limit = limit.value_or(options_.limit),
                     .memory_bytes = options_.memory_bytes,
                     .cpu_seconds = ProcessorSeconds(limit.value_or(options_.limit)),
                     .file_bytes = options_.output_bytes};
  // Its own temporary files belong to the folder as well.
  child.command = {"env", absl::StrCat("TMPDIR=", folder.path()), "LC_ALL=C", options_.compiler};
  child.command.insert(child.command.end(), all.begin(), all.end());
  for (const char* word : {"-o", "kernel.so", "kernel.cc", "-lm"}) child.command.push_back(word);
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<Child> running, Child::Start(child));
  const ChildEnd end = running->Wait(cancel);
  result.spent = absl::Now() - start;
  if (cancel != nullptr && cancel->cancelled())
    return absl::CancelledError("cancelled while compiling");
  if (end.kind == ChildEnd::kLost) return absl::UnavailableError(Print(end));
  if (end.ok()) {
    KILN_ASSIGN_OR_RETURN(std::string bytes, LoadFile(absl::StrCat(folder.path(), "/kernel.so"),
                                                      options_.output_bytes));
    if (cache_.has_value())
      cache_->Insert(key, bytes).IgnoreError();  // a cache that is full or gone costs time only
    std::string digest = Sha256Hex(bytes);
    result.artifact = Compiled{std::move(bytes), std::move(digest), false};
    return result;
  }

  const std::string log = LoadFile(child.log, kLogBytes).value_or("");
  if (absl::StrContains(log, "No space left on device")) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no space left in ", root_.path(), " while compiling"));
  }
  if (end.kind == ChildEnd::kTimedOut) {
    result.stage = Stage::kTimeout;
    result.reason =
        absl::StrCat("the compiler took longer than ", absl::FormatDuration(child.limit));
  } else if (TellsOfMemory(log) || absl::StrContains(log, "File size limit") ||
             absl::StrContains(log, "File too large")) {
    result.stage = Stage::kResources;
    result.reason = absl::StrCat("the compiler hit its limit of memory (",
                                 options_.memory_bytes >> 20, " MiB) or output (",
                                 options_.output_bytes >> 20, " MiB): ", FirstErrorLine(log, 800));
  } else {
    const std::string line = FirstErrorLine(log);
    result.stage = Stage::kCompile;
    result.reason = line.empty() ? absl::StrCat("the compiler ", Print(end)) : line;
  }
  return result;
}

}  // namespace kiln::worker
