// Waiting for a socket, for a while, or for both; and a pipe by which one thread wakes another that
// waits so.

internal import OndolEngine
internal import OndolPlatform

/// Waits for what happens outside.
enum Waiting {
  /// Waits until a descriptor is readable, or writable when that is asked for; false when the time
  /// is over first.
  static func wait(
    for descriptor: Int32, toWrite: Bool, until deadline: ContinuousClock.Instant
  ) -> Bool {
    var entry = pollfd(
      fd: descriptor, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0)
    while true {
      let count = unsafe poll(&entry, 1, milliseconds(until: deadline))
      if count > 0 { return true }
      // A signal, or a wait in pieces.
      if deadline <= .now { return false }
    }
  }

  /// Looks whether a descriptor is readable, again and again until `deadline`, and lets others have
  /// the processor in between. Quicker than to sleep where an answer takes less time than it takes
  /// to wake a processor; does nothing where there is but one, which others need.
  static func watch(_ descriptor: Int32, until deadline: ContinuousClock.Instant) {
    guard Processors.count > 1 else { return }
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while unsafe poll(&entry, 1, 0) == 0, .now < deadline { sched_yield() }
  }

  /// Waits until one of two descriptors is readable, the first of which may be absent, or the time
  /// is over.
  static func wait(
    for first: Int32?, or second: Int32, until deadline: ContinuousClock.Instant
  ) {
    var entries = [
      pollfd(fd: second, events: Int16(POLLIN), revents: 0),
      // One below zero is passed over.
      pollfd(fd: first ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    _ = unsafe poll(&entries, 2, milliseconds(until: deadline))
  }

  /// Keeps the thread from going on for so long.
  static func pause(_ time: Duration) {
    var entry = pollfd(fd: -1, events: 0, revents: 0)
    _ = unsafe poll(&entry, 1, milliseconds(until: .now + time))
  }

  /// Rounded up, so that nobody turns around for the rest of a millisecond.
  private static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
    let left = deadline - .now
    guard left > .zero else { return 0 }
    let whole = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
    return Int32(min(whole + 1, 3_600_000))
  }
}

/// A pipe that is readable once somebody has called.
final class WakePipe: Sendable {
  /// Readable when somebody has called since `clear`. Without one, where the system has none to
  /// give, whoever waits goes on when its time is over.
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
    // A pipe that is full wakes as well.
    _ = unsafe write(writing, &byte, 1)
  }

  func clear() {
    var bytes = [UInt8](repeating: 0, count: 64)
    while unsafe read(reading, &bytes, bytes.count) > 0 {}
  }
}
