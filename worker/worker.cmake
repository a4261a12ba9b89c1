# run_job, the bench child, and (with KILN_SERVICE) the agent and the main program.
