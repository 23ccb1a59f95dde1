// How many processors there are: as many threads can work at once.

internal import OndolPlatform

/// The machine's processors.
enum Processors {
  /// Those in use when it was first asked.
  static let count = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
}
