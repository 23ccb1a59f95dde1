// One port of a server: where it listens, how its connections are protected, how many there may be,
// and the gate that each of its calls goes through. Every face gets one, so that no port is reached
// with less than the others.

#if Server
  import HummingbirdCore
  import Logging
  import NIOCertificateReloading
  import NIOCore
  import Ondol
  import Synchronization

  /// A port, and what is done for everything that comes through it.
  struct ServedPort: Sendable {
    let host: String
    /// 0 for a free one.
    let number: Int
    /// Has the certificate that encrypts connections; nil for none.
    let reloader: TimedCertificateReloader?
    /// Counts, logs and limits calls; nil for a port of this machine's that has none of it.
    let gate: CallGate?
    /// The largest body of a request or message of a stream, in bytes.
    let requestLimit: Int
    let connections: ConnectionLimit
  }

  /// Counts the connections of one port, and closes those beyond its limits.
  final class ConnectionLimit: Sendable {
    private struct State: Sendable {
      var count = 0
      var countOfAddress: [NetworkAddress: Int] = [:]
    }

    private let most: Int?
    private let mostOfAddress: Int?
    private let state = Mutex(State())

    /// - Parameter isBehindProxy: whether all connections are of one address.
    init(_ limits: ServerLimits, isBehindProxy: Bool) {
      most = limits.connections
      mostOfAddress = isBehindProxy ? nil : limits.connectionsOfAddress
    }

    /// Counts a new connection until it is closed. Closes it when there are too many.
    ///
    /// - Returns: fails for a closed one.
    func admit(_ channel: any Channel) -> EventLoopFuture<Void> {
      let address = channel.remoteAddress?.ipAddress.flatMap { NetworkAddress($0) }
      guard begin(address) else {
        channel.close(mode: .all, promise: nil)
        return channel.eventLoop.makeFailedFuture(TooManyConnections())
      }
      channel.closeFuture.whenComplete { [self] _ in end(address) }
      return channel.eventLoop.makeSucceededVoidFuture()
    }

    /// Counts a connection; returns false for one too many.
    func begin(_ address: NetworkAddress?) -> Bool {
      state.withLock { state in
        let ofAddress = address.map { state.countOfAddress[$0, default: 0] } ?? 0
        guard most.map({ state.count < $0 }) ?? true,
          mostOfAddress.map({ ofAddress < $0 }) ?? true
        else { return false }
        state.count += 1
        if let address { state.countOfAddress[address] = ofAddress + 1 }
        return true
      }
    }

    func end(_ address: NetworkAddress?) {
      state.withLock { state in
        state.count -= 1
        guard let address else { return }
        let rest = state.countOfAddress[address, default: 1] - 1
        state.countOfAddress[address] = rest > 0 ? rest : nil
      }
    }

    private struct TooManyConnections: Error {}
  }

  /// Connections of Hummingbird's that count.
  struct GatedChannel<Base: ServerChildChannel>: ServerChildChannel {
    private let base: Base
    private let connections: ConnectionLimit

    init(_ base: Base, _ connections: ConnectionLimit) {
      self.base = base
      self.connections = connections
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
      connections.admit(channel).flatMap { base.setup(channel: channel, logger: logger) }
    }

    func handle(value: Base.Value, logger: Logger) async {
      await base.handle(value: value, logger: logger)
    }
  }
#endif
