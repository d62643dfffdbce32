"""The switch of `gobpm_ray.runtime.crashpoints`: imported by whoever means to crash, and by nobody else."""

ARMED_BY_TESTS = True
