# Both do everything on a fresh Debian 12 machine with rustup's cargo; see scripts/.

.PHONY: solve test check

# Builds and solves LLaMA 13B on 64 A100s.
solve:
	@scripts/solve

# Builds and runs every test.
test:
	@scripts/test

# What has to pass before a change is merged.
check:
	@.ci/run
