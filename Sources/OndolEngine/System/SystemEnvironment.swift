// The real system as an `Environment`.

// The C target's header also declares the system's types, and may be where the compiler finds them.
internal import COndol
internal import OndolPlatform

extension Environment {
  /// The disk, the wall clock, the system's randomness and the process's threads.
  package static func live() -> Environment {
    let start = ContinuousClock.now
    var environment = Environment(
      fileSystem: DiskFileSystem(), now: wallClock,
      uptime: { Int64((ContinuousClock.now - start) / .microseconds(1)) },
      sleep: { microseconds in try? await Task.sleep(for: .microseconds(microseconds)) },
      random: {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
      }, threads: SharedThreads.process)
    environment.openFiles = .process
    return environment
  }

  /// Files that exist only within the process; the rest as in `live()`.
  package static func memory() -> Environment {
    var environment = live()
    environment.fileSystem = MemoryFileSystem()
    environment.openFiles = nil
    return environment
  }

  /// Microseconds since 1970.
  private static func wallClock() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }
}
