# Read by CMake through CMAKE_TOOLCHAIN_FILE (set in .cargo/config.toml).
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
