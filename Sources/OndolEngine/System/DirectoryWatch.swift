// Being told that files were written, by whomever: what a reader beside a writer wakes by. The
// writer does nothing for it and waits for nobody; on Linux the kernel notes its writes (inotify).
// Where it cannot (other systems, file systems that other machines write too) there is no watch,
// and whoever wants to know looks from time to time.

/// Tells that files in a directory may have changed.
package protocol DirectoryWatch: AnyObject, Sendable {
  /// Waits until one may have changed since the watch was made or the last call returned, or
  /// `cancel()` is called. Blocks; one caller at a time.
  func wait()

  /// Ends waiting, now and later, from any thread.
  func cancel()
}

#if os(Linux)
  internal import COndol
  internal import OndolPlatform

  extension DiskDirectory {
    package func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)? {
      withDescriptor { descriptor in
        // What other machines write there the kernel does not see.
        guard ondol_is_local(descriptor) != 0 else { return nil }
        return InotifyWatch(descriptor: descriptor, concerns)
      } ?? nil
    }
  }

  private final class InotifyWatch: DirectoryWatch {
    private static let bufferLength = 16 << 10
    /// Bytes of an event in front of its name.
    private static let headLength = 16

    private let events: CInt
    /// A pipe; a byte in it ends all waiting.
    private let ends: (read: CInt, write: CInt)
    private let concerns: @Sendable (String) -> Bool

    /// Nil where the system has no more watches to give.
    init?(descriptor: CInt, _ concerns: @escaping @Sendable (String) -> Bool) {
      self.concerns = concerns
      events = inotify_init1(CInt(O_NONBLOCK) | CInt(O_CLOEXEC))
      var both: [CInt] = [-1, -1]
      let failure = unsafe pipe(&both)
      ends = (both[0], both[1])
      guard events >= 0, failure == 0 else { return nil }
      for end in both { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      let mask = UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
      // The directory that is open, wherever its path leads by now.
      let added = unsafe inotify_add_watch(events, "/proc/self/fd/\(descriptor)", mask)
      guard added >= 0 else { return nil }
    }

    deinit {
      for descriptor in [events, ends.read, ends.write] where descriptor >= 0 { close(descriptor) }
    }

    func wait() {
      let wanted = CShort(POLLIN)
      while true {
        var polled = [
          pollfd(fd: events, events: wanted, revents: 0),
          pollfd(fd: ends.read, events: wanted, revents: 0),
        ]
        if unsafe poll(&polled, 2, -1) < 0 {
          if errno == EINTR { continue }
          return
        }
        if polled[1].revents != 0 || takeEvents() { return }
      }
    }

    func cancel() {
      var byte: UInt8 = 0
      _ = unsafe write(ends.write, &byte, 1)
    }

    /// Takes what the kernel has noted; whether any of it concerns.
    private func takeEvents() -> Bool {
      var isConcerned = false
      while true {
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.bufferLength) {
          buffer, filled in
          count = unsafe read(events, buffer.baseAddress, buffer.count)
          filled = max(0, count)
        }
        guard count > 0 else { return isConcerned || count < 0 && errno != EAGAIN }
        isConcerned = Self.names(in: bytes).contains { $0.map(concerns) ?? true } || isConcerned
      }
    }

    /// The names of the files that events are about; nil for an event about all.
    private static func names(in bytes: [UInt8]) -> [String?] {
      var names: [String?] = []
      var reader = ByteReader(bytes.bytes)
      do throws(MalformedBytes) {
        while !reader.isAtEnd {
          _ = try reader.take(headLength - 4)
          let length: UInt32 = try reader.littleEndian()
          let name = try reader.take(Int(length)).array.prefix { $0 != 0 }
          names.append(name.isEmpty ? nil : String(decoding: name, as: UTF8.self))
        }
      } catch {
        names.append(nil)
      }
      return names
    }
  }
#endif
