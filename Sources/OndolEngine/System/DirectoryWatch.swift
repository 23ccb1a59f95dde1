// Notifies a reader that another process has written files. The writer does nothing for it and does
// not wait. On Linux the kernel reports its writes (inotify). If that is impossible (on other
// systems, or on file systems that other machines also write to), there is no watch, and a reader
// checks from time to time.
//
// All watches of the process share one descriptor and one thread, which sleeps until the kernel
// reports an event.

/// Reports that files in a directory may have changed.
package protocol DirectoryWatch: AnyObject, Sendable {
  /// Waits until a file may have changed since the watch was created or the previous call returned,
  /// or until `cancel()` is called. It serves one caller at a time.
  func wait() async

  /// Ends current and future waits. It may be called from any thread.
  func cancel()
}

#if os(Linux)
  internal import COndol
  internal import OndolPlatform

  extension DiskDirectory {
    package func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)? {
      withDescriptor { descriptor in
        // The kernel does not see writes by other machines.
        guard ondol_is_local(descriptor) != 0 else { return nil }
        return WatchThread.process?.watch(descriptor, concerns)
      } ?? nil
    }
  }

  private final class InotifyWatch: DirectoryWatch {
    private struct State: Sendable {
      var hasChanged = false
      var isCancelled = false
      var waiter: CheckedContinuation<Void, Never>?
    }

    /// The kernel's number for the directory.
    let number: CInt
    private let thread: WatchThread
    private let concerns: @Sendable (String) -> Bool
    private let state = Guarded(State())

    init(_ number: CInt, on thread: WatchThread, _ concerns: @escaping @Sendable (String) -> Bool) {
      self.number = number
      self.thread = thread
      self.concerns = concerns
    }

    deinit {
      thread.forget(number)
    }

    func wait() async {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.hasChanged || state.isCancelled {
            state.hasChanged = false
            return true
          }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    }

    func cancel() {
      wake { $0.isCancelled = true }
    }

    /// Records an event for the file with this name, or for all files if nil.
    func note(_ name: String?) {
      guard name.map(concerns) ?? true else { return }
      wake { $0.hasChanged = $0.waiter == nil }
    }

    private func wake(_ change: (inout State) -> Void) {
      let waiter = state.withLock { state in
        change(&state)
        return state.waiter.take()
      }
      waiter?.resume()
    }
  }

  /// The thread that listens to the kernel.
  private final class WatchThread: Sendable {
    /// Nil if the system provides no descriptor for it.
    static let process = WatchThread()

    private struct Entry: Sendable {
      weak var watch: InotifyWatch?
    }

    private struct State: Sendable {
      /// By the kernel's number for the directory, which several watches of it share.
      var entries: [CInt: [Entry]] = [:]
      var isListening = false
    }

    private static let bufferLength = 16 << 10
    /// The length of an event before its name.
    private static let headLength = 16

    private let events: CInt
    private let state = Guarded(State())
    private let thread = IOThread(named: "ondol-watch")

    private init?() {
      events = inotify_init1(CInt(IN_CLOEXEC))
      guard events >= 0 else { return nil }
    }

    /// Nil if the system provides no more watches.
    func watch(
      _ descriptor: CInt, _ concerns: @escaping @Sendable (String) -> Bool
    ) -> (any DirectoryWatch)? {
      let mask = UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
      let (watch, isFirst) = state.withLock { state -> (InotifyWatch?, Bool) in
        // Refers to the open directory, wherever its path leads by now.
        let added = unsafe inotify_add_watch(events, "/proc/self/fd/\(descriptor)", mask)
        guard added >= 0 else { return (nil, false) }
        let watch = InotifyWatch(added, on: self, concerns)
        state.entries[added, default: []].append(Entry(watch: watch))
        defer { state.isListening = true }
        return (watch, !state.isListening)
      }
      // From the first watch on, the thread listens for the lifetime of the process.
      if isFirst { thread.enqueue { self.listen() } }
      return watch
    }

    /// Called when a watch of the directory is gone.
    func forget(_ number: CInt) {
      state.withLock { state in
        state.entries[number]?.removeAll { $0.watch == nil }
        guard state.entries[number]?.isEmpty ?? false else { return }
        state.entries[number] = nil
        _ = inotify_rm_watch(events, number)
      }
    }

    /// Passes on the kernel's events.
    private func listen() {
      while true {
        let noted = read()
        // The last reference to a watch must be released outside the lock.
        let told = state.withLock { state in
          noted.flatMap { event in
            (event.number < 0
              ? state.entries.values.flatMap(\.self) : state.entries[event.number] ?? [])
              .compactMap { entry in entry.watch.map { ($0, event.name) } }
          }
        }
        for (watch, name) in told { watch.note(name) }
      }
    }

    /// An event for a named file in a directory. Without a name it concerns the whole directory,
    /// and with a negative number all directories.
    private typealias Event = (number: CInt, name: String?)

    /// Waits for events.
    private func read() -> [Event] {
      while true {
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.bufferLength) {
          buffer, filled in
          count = unsafe OndolPlatform.read(events, buffer.baseAddress, buffer.count)
          filled = max(0, count)
        }
        if count > 0 { return Self.events(in: bytes) }
        if errno == EINTR { continue }
        // No other failure is possible. All watches wake up, but not too often.
        thread.pause(microseconds: 25_000)
        return [(-1, nil)]
      }
    }

    private static func events(in bytes: [UInt8]) -> [Event] {
      var found: [Event] = []
      var reader = ByteReader(bytes.bytes)
      do throws(MalformedBytes) {
        while !reader.isAtEnd {
          let number: UInt32 = try reader.littleEndian()
          _ = try reader.take(headLength - 8)
          let length: UInt32 = try reader.littleEndian()
          let name = try reader.take(Int(length)).array.prefix { $0 != 0 }
          found.append(
            (CInt(bitPattern: number), name.isEmpty ? nil : String(decoding: name, as: UTF8.self)))
        }
      } catch {
        found.append((-1, nil))
      }
      return found
    }
  }
#endif
