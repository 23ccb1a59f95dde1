// Says when the network may be back, so that a device need not wait out a pause. The system tells:
// on Linux by messages of its routing socket, on Apple's systems by a path monitor. A wrong alarm
// costs one attempt, so messages are not read closely, and alarms have a pause between them.

#if Sync
  @unsafe @preconcurrency import Dispatch
  import OndolEngine

  #if canImport(Network)
    import Network
  #elseif os(Linux)
    import OndolPlatform
  #endif

  /// Calls a handler when the system's network has changed.
  final class NetworkMonitor: Sendable {
    /// The pause after an alarm, in milliseconds. What happens in it is one alarm at its end.
    private static let pauseMilliseconds = 250

    private struct State: Sendable {
      var isWaiting = false
      var isOver = false
      var ends: [@Sendable () -> Void] = []
    }

    private let state = Guarded(State())
    private let queue = DispatchQueue(label: "ondol.network")
    private let handler: @Sendable () -> Void

    /// Begins. Where the system does not say when its network changes, the handler is never called.
    init(_ handler: @escaping @Sendable () -> Void) {
      self.handler = handler
      watchSystem()
    }

    /// Ends: the handler is not called any more.
    func cancel() {
      let ends = state.withLock { state in
        state.isOver = true
        defer { state.ends = [] }
        return state.ends
      }
      for end in ends { end() }
    }

    private func keep(_ end: @escaping @Sendable () -> Void) {
      let isOver = state.withLock { state in
        if !state.isOver { state.ends.append(end) }
        return state.isOver
      }
      if isOver { end() }
    }

    /// The network has changed.
    private func note() {
      let isFirst = state.withLock { state in
        guard !state.isWaiting, !state.isOver else { return false }
        state.isWaiting = true
        return true
      }
      guard isFirst else { return }
      queue.asyncAfter(deadline: .now() + .milliseconds(Self.pauseMilliseconds)) { [weak self] in
        guard let self else { return }
        let isOver = state.withLock { state in
          state.isWaiting = false
          return state.isOver
        }
        if !isOver { handler() }
      }
    }

    #if canImport(Network)
      private func watchSystem() {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { [weak self] path in
          if path.status == .satisfied { self?.note() }
        }
        monitor.start(queue: queue)
        keep { monitor.cancel() }
      }
    #elseif os(Linux)
      private func watchSystem() {
        if let socket = Self.routingSocket() { watch(socket) }
      }

      /// Watches a descriptor and closes it in the end: each message on it is a change.
      func watch(_ descriptor: Int32) {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in
          self?.note()
          // A descriptor at its end would report for ever.
          if !Self.empty(descriptor) { self?.cancel() }
        }
        source.setCancelHandler { _ = close(descriptor) }
        source.resume()
        keep { source.cancel() }
      }

      /// Reads what there is, without waiting. Returns false when there will be nothing more.
      private static func empty(_ descriptor: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 8 << 10)
        // Bounded, so that a flood of messages cannot hold the thread. The source comes again.
        for _ in 0..<64 {
          let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe recv(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
          }
          if count == 0 { return false }
          // More messages than the socket holds are a change as well.
          if count < 0 { return [EAGAIN, EINTR, ENOBUFS].contains(errno) }
        }
        return true
      }

      /// A socket on which the kernel reports changes of devices, addresses and routes; nil where
      /// it may not be opened.
      private static func routingSocket() -> Int32? {
        // The numbers of linux/netlink.h and linux/rtnetlink.h, which the C library's module lacks.
        let (family, protocolNumber): (UInt16, Int32) = (16, 0)
        let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
        let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(Int32(family), kind, protocolNumber)
        guard descriptor >= 0 else { return nil }
        // The family, padding, the process as the kernel names it, and the groups.
        var address = sockaddr_netlink(family: family, padding: 0, process: 0, groups: groups)
        let size = socklen_t(MemoryLayout<sockaddr_netlink>.size)
        let result = unsafe withUnsafePointer(to: &address) { pointer in
          unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            unsafe bind(descriptor, address, size)
          }
        }
        guard result == 0 else {
          _ = close(descriptor)
          return nil
        }
        return descriptor
      }

      private struct sockaddr_netlink {
        var family: UInt16
        var padding: UInt16
        var process: UInt32
        var groups: UInt32
      }
    #else
      private func watchSystem() {}
    #endif
  }
#endif
