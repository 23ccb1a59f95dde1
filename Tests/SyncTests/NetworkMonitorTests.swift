// What makes a device try again before its pause is over: a system that says its network has
// changed.

#if Server && Sync
  import Foundation
  import Ondol
  import OndolEngine
  import OndolPlatform
  import Testing

  @testable import OndolSync

  @Suite struct NetworkMonitorTests {
    #if os(Linux)
      private final class Alarms: Sendable {
        private let state = Guarded(0)
        let bell = Bell()

        var count: Int { state.withLock { $0 } }

        func note() {
          state.withLock { $0 += 1 }
          bell.ring()
        }
      }

      private func pair() -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue)
        #expect(unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        return (ends[0], ends[1])
      }

      @Test func `Many messages of the system are one alarm, and later ones another`() async {
        let alarms = Alarms()
        let monitor = NetworkMonitor { alarms.note() }
        let (watched, far) = pair()
        monitor.watch(watched)
        for round in 1...3 {
          for _ in 0..<200 {
            _ = unsafe send(far, [1, 2, 3], 3, Int32(MSG_NOSIGNAL))
          }
          while alarms.count < round { await alarms.bell.wait() }
        }
        // Each alarm is followed by a pause, so messages cannot be more alarms than rounds and
        // rests.
        #expect(alarms.count <= 6)
        monitor.cancel()
        _ = close(far)
      }

      @Test func `A monitor that has ended closes its descriptors and says nothing`() async {
        let alarms = Alarms()
        let (watched, far) = pair()
        do {
          let monitor = NetworkMonitor { alarms.note() }
          monitor.cancel()
          monitor.watch(watched)
        }
        // The other end is closed, some time after.
        while unsafe send(far, [1], 1, Int32(MSG_NOSIGNAL)) >= 0 || errno == EAGAIN {
          await Task.yield()
        }
        #expect(alarms.count == 0)
        _ = close(far)
      }
    #endif
  }
#endif
