// Being told that files were written, by whomever: what a reader beside a writer wakes by. The
// writer does nothing for it and waits for nobody; on Linux the kernel notes its writes (inotify).
// Where it cannot (other systems, file systems that other machines write too) there is no watch,
// and whoever wants to know looks from time to time.
//
// All watches of the process have one descriptor and one thread, which sleeps until the kernel has
// something to say.

/// Tells that files in a directory may have changed.
package protocol DirectoryWatch: AnyObject, Sendable {
  /// Waits until one may have changed since the watch was made or the last call returned, or
  /// `cancel()` is called. One caller at a time.
  func wait() async

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

    /// What the kernel calls the directory.
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

    /// Something happened to the file of this name, or to all when nil.
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

  /// The one who listens to the kernel.
  private final class WatchThread: Sendable {
    /// Nil where the system gives no descriptor for it.
    static let process = WatchThread()

    private struct Entry: Sendable {
      weak var watch: InotifyWatch?
    }

    private struct State: Sendable {
      /// By the kernel's number of the directory, which several watches of it share.
      var entries: [CInt: [Entry]] = [:]
      var isListening = false
    }

    private static let bufferLength = 16 << 10
    /// Bytes of an event in front of its name.
    private static let headLength = 16

    private let events: CInt
    private let state = Guarded(State())
    private let thread = IOThread(named: "ondol-watch")

    private init?() {
      events = inotify_init1(CInt(IN_CLOEXEC))
      guard events >= 0 else { return nil }
    }

    /// Nil where the system has no more watches to give.
    func watch(
      _ descriptor: CInt, _ concerns: @escaping @Sendable (String) -> Bool
    ) -> (any DirectoryWatch)? {
      let mask = UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
      let (watch, isFirst) = state.withLock { state -> (InotifyWatch?, Bool) in
        // The directory that is open, wherever its path leads by now.
        let added = unsafe inotify_add_watch(events, "/proc/self/fd/\(descriptor)", mask)
        guard added >= 0 else { return (nil, false) }
        let watch = InotifyWatch(added, on: self, concerns)
        state.entries[added, default: []].append(Entry(watch: watch))
        defer { state.isListening = true }
        return (watch, !state.isListening)
      }
      // From the first watch on it listens for as long as the process lives.
      if isFirst { thread.enqueue { self.listen() } }
      return watch
    }

    /// A watch of the directory is gone.
    func forget(_ number: CInt) {
      state.withLock { state in
        state.entries[number]?.removeAll { $0.watch == nil }
        guard state.entries[number]?.isEmpty ?? false else { return }
        state.entries[number] = nil
        _ = inotify_rm_watch(events, number)
      }
    }

    /// Passes on what the kernel notes.
    private func listen() {
      while true {
        let noted = read()
        // Whoever has the last hold of a watch here lets go of it outside the lock.
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

    /// What happened, to the file of a name in a directory; to all of the directory where there is
    /// no name, and to all directories where the number is negative.
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
        // It has nothing else to fail with. All look, and not too often.
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
