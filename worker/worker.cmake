# run_job, the bench child, and (with KILN_SERVICE) the agent and the main program.
kiln_library(kiln_worker
  SRCS bench.cc bench_child.cc bench_fault.cc bench_plan.cc bench_protocol.cc conditions.cc entry.cc finalists.cc
       frontend.cc ledger.cc message.cc processor_limit.cc run_job.cc subject.cc workshop.cc
  HDRS bench.h bench_child.h bench_fault.h bench_plan.h bench_protocol.h conditions.h entry.h finalists.h frontend.h job.h
       ledger.h message.h processor_limit.h run_job.h subject.h version.h workshop.h
  DEPS kiln_contract kiln_compile kiln_measure kiln_verify kiln_compiler kiln_search kiln_runtime Threads::Threads)
target_compile_definitions(kiln_worker PUBLIC KILN_VERSION="${PROJECT_VERSION}")

if(KILN_SERVICE)
  find_package(CLI11 REQUIRED)
  kiln_library(kiln_agent
    SRCS agent.cc connection.cc log.cc options.cc worker_main.cc
    HDRS agent.h connection.h log.h options.h worker_main.h
    DEPS kiln_worker kiln_device kiln_wire kiln_proto
    PRIVATE_DEPS CLI11::CLI11)
  kiln_binary(kiln-worker SRCS main.cc DEPS kiln_agent)
endif()
