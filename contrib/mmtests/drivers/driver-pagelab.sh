# Hands the settings of a configuration to pagelab-bench.

run_bench() {
	$SHELLPACK_INCLUDE/shellpack-bench-pagelab \
		--suite "${PAGELAB_SUITE:-quick}" \
		--iterations "${PAGELAB_ITERATIONS:-5}"
	return $?
}
