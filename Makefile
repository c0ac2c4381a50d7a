# Both do everything on a fresh Debian 12 machine with rustup's cargo; see scripts/.

.PHONY: solve test check

# Builds and solves LLaMA 65B on 128 cards of 24 GB.
solve:
	@scripts/solve

# Builds and runs every test.
test:
	@scripts/test

# What has to pass before a change is merged.
check:
	@.ci/run
