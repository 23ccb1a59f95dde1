// Waits for a socket, for a time, or for both. Also a pipe with which one thread wakes another that
// waits this way.

internal import OndolEngine
internal import OndolPlatform

/// Waits for external events.
enum Waiting {
  /// Waits until a descriptor is readable, or writable if requested. Returns false if the time
  /// expires first.
  static func wait(
    for descriptor: Int32, toWrite: Bool, until deadline: ContinuousClock.Instant
  ) -> Bool {
    var entry = pollfd(
      fd: descriptor, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0)
    while true {
      let count = unsafe poll(&entry, 1, milliseconds(until: deadline))
      if count > 0 { return true }
      // After a signal, or between the pieces of a long wait.
      if deadline <= .now { return false }
    }
  }

  /// Polls until a descriptor is readable or until `deadline`, and yields the processor in between.
  /// This is faster than sleeping if an answer arrives sooner than a processor wakes up. It does
  /// nothing on a machine with a single processor, which others need.
  static func watch(_ descriptor: Int32, until deadline: ContinuousClock.Instant) {
    guard Processors.count > 1 else { return }
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while unsafe poll(&entry, 1, 0) == 0, .now < deadline { sched_yield() }
  }

  /// Waits until one of two descriptors is readable, or the time expires. The first one may be
  /// absent.
  static func wait(
    for first: Int32?, or second: Int32, until deadline: ContinuousClock.Instant
  ) {
    var entries = [
      pollfd(fd: second, events: Int16(POLLIN), revents: 0),
      // A negative descriptor is ignored.
      pollfd(fd: first ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    _ = unsafe poll(&entries, 2, milliseconds(until: deadline))
  }

  /// Pauses the thread for this long.
  static func pause(_ time: Duration) {
    var entry = pollfd(fd: -1, events: 0, revents: 0)
    _ = unsafe poll(&entry, 1, milliseconds(until: .now + time))
  }

  /// Rounded up, to avoid spinning for the rest of a millisecond.
  private static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
    let left = deadline - .now
    guard left > .zero else { return 0 }
    let whole = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
    return Int32(min(whole + 1, 3_600_000))
  }
}

/// A pipe that is readable after a call.
final class WakePipe: Sendable {
  /// Readable if there was a call since `clear`. If the system cannot provide a pipe, a waiting
  /// thread continues when its time expires.
  let reading: Int32
  private let writing: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    if unsafe pipe(&ends) != 0 { ends = [-1, -1] }
    for end in ends where end >= 0 {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    reading = ends[0]
    writing = ends[1]
  }

  deinit {
    if reading >= 0 { close(reading) }
    if writing >= 0 { close(writing) }
  }

  func wake() {
    var byte: UInt8 = 1
    // A full pipe wakes the thread as well.
    _ = unsafe write(writing, &byte, 1)
  }

  func clear() {
    var bytes = [UInt8](repeating: 0, count: 64)
    while unsafe read(reading, &bytes, bytes.count) > 0 {}
  }
}
