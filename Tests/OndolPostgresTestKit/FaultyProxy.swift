// A proxy to a server that behaves as networks do: for a while it passes nothing through, is late,
// cuts connections, closes one direction of them, or passes a byte a second. It listens at a socket
// in a directory of its own, as a server does.

import Foundation
import OndolPlatform
import Synchronization

package final class FaultyProxy: Sendable {
  package enum Mode: Int, Sendable, CaseIterable {
    case pass
    /// Nothing passes through, and no error is reported.
    case stopped
    /// Everything arrives a twentieth of a second late.
    case late
    /// Connections end, and so do new ones.
    case cut
    /// The direction to the server ends; the one from it stays open.
    case halfClosed
    /// A byte a second.
    case slow
    /// Everything arrives except the message that ends the transaction of a commit.
    case unended
    /// The first answers arrive, and no more than `mostChoked` bytes of them.
    case choked

    /// Every mode that every call meets.
    package static let outages: [Mode] = [.stopped, .late, .cut, .halfClosed, .slow]
  }

  /// The directory of its socket, which serves as a host name.
  package let directory: String
  private let server: String
  private let listening: Int32
  private let state = Atomic(Mode.pass.rawValue)
  private let isOver = Atomic(false)

  package var mode: Mode {
    get { Mode(rawValue: state.load(ordering: .acquiring)) ?? .pass }
    set { state.store(newValue.rawValue, ordering: .releasing) }
  }

  /// - Parameter server: the directory of the server's socket.
  package init(to server: String) throws {
    var template = Array("/tmp/ondol-proxy-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw ServerFailure(description: "no directory in /tmp can be made")
    }
    directory = String(
      decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.server = server
    listening = Self.makeSocket()
    let isBound = unsafe Self.withAddress(in: directory) { unsafe bind(listening, $0, $1) == 0 }
    guard isBound, listen(listening, 64) == 0 else {
      throw ServerFailure(description: "no socket can be made in \(directory)")
    }
    Thread.detachNewThread { [self] in acceptAll() }
  }

  package func stop() {
    isOver.store(true, ordering: .releasing)
    #if canImport(Glibc)
      shutdown(listening, Int32(SHUT_RDWR))
    #else
      shutdown(listening, SHUT_RDWR)
    #endif
  }

  private static func makeSocket() -> Int32 {
    #if canImport(Glibc)
      OndolPlatform.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      OndolPlatform.socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
  }

  private static func withAddress<R>(
    in directory: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
  ) -> R {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = Array("\(directory)/.s.PGSQL.5432".utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    return unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe body(address, size)
      }
    }
  }

  // MARK: - Connections

  private func acceptAll() {
    while case let client = accept(listening, nil, nil), client >= 0 {
      if isOver.load(ordering: .acquiring) || mode == .cut {
        close(client)
        continue
      }
      let target = Self.makeSocket()
      guard unsafe Self.withAddress(in: server, { unsafe connect(target, $0, $1) == 0 }) else {
        close(client)
        close(target)
        continue
      }
      let pair = Pair(client, target)
      for isUp in [true, false] {
        Thread.detachNewThread { [self] in pump(pair, isUp: isUp) }
      }
    }
    close(listening)
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// Both ends of a connection, which are closed after both directions have ended.
  private final class Pair: Sendable {
    let client: Int32
    let server: Int32
    let isCut = Atomic(false)

    init(_ client: Int32, _ server: Int32) {
      (self.client, self.server) = (client, server)
    }

    deinit {
      OndolPlatform.close(client)
      OndolPlatform.close(server)
    }
  }

  /// The most bytes that are passed on at once.
  private static let bufferSize = 1 << 16
  /// The most bytes that a choked connection passes on from the server. How many come with one
  /// reading depends on how busy the machine is.
  private static let mostChoked = 1 << 16
  /// The names with which a message begins that binds the parameters of a commit.
  private static let commit = Array("\0commit\0".utf8)
  /// The message that ends a statement's transaction.
  private static let sync = [UInt8(ascii: "S"), 0, 0, 0, 4]

  private func pump(_ pair: Pair, isUp: Bool) {
    let (from, to) = isUp ? (pair.client, pair.server) : (pair.server, pair.client)
    var bytes = [UInt8](repeating: 0, count: Self.bufferSize)
    var entry = pollfd(fd: from, events: Int16(POLLIN), revents: 0)
    var isAlive = true
    var answered = 0
    while isAlive, goesOn(pair) {
      if mode == .halfClosed, isUp {
        Self.endWriting(to)
        break
      }
      guard unsafe poll(&entry, 1, 20) > 0 else { continue }
      let count = unsafe read(from, &bytes, bytes.count)
      guard count > 0 else { break }
      answered = mode == .choked && !isUp ? answered + count : 0
      while mode == .choked, answered > Self.mostChoked, goesOn(pair) { wait(5, for: to) }
      isAlive = deliver(bytes[..<count], to: to, pair, isUp: isUp)
    }
    // The other direction ends with this one, unless it is to continue.
    if mode != .halfClosed { pair.isCut.store(true, ordering: .releasing) }
  }

  private func goesOn(_ pair: Pair) -> Bool {
    mode != .cut && !pair.isCut.load(ordering: .acquiring) && !isOver.load(ordering: .acquiring)
  }

  private func deliver(
    _ bytes: ArraySlice<UInt8>, to descriptor: Int32, _ pair: Pair, isUp: Bool
  ) -> Bool {
    var rest = bytes
    if mode == .late { wait(50, for: descriptor) }
    if isUp, mode == .unended, rest.suffix(Self.sync.count).elementsEqual(Self.sync),
      rest.prefix(Self.commit.count + 5).dropFirst(5).elementsEqual(Self.commit)
    {
      guard deliver(rest.dropLast(Self.sync.count), to: descriptor, pair, isUp: isUp) else {
        return false
      }
      rest = rest.suffix(Self.sync.count)
      while mode == .unended, goesOn(pair) { wait(5, for: descriptor) }
    }
    while !rest.isEmpty {
      while mode == .stopped, goesOn(pair) { wait(5, for: descriptor) }
      guard goesOn(pair) else { return false }
      let isSlow = mode == .slow
      let some = isSlow ? Array(rest.prefix(1)) : Array(rest)
      #if canImport(Glibc)
        let sent = unsafe send(descriptor, some, some.count, Int32(MSG_NOSIGNAL))
      #else
        let sent = unsafe send(descriptor, some, some.count, 0)
      #endif
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
      for _ in 0..<50 where isSlow && mode == .slow && goesOn(pair) {
        wait(20, for: descriptor)
      }
    }
    return true
  }

  /// Waits a number of milliseconds, or until the other side hangs up.
  private func wait(_ milliseconds: Int32, for descriptor: Int32) {
    var polled = pollfd(fd: descriptor, events: 0, revents: 0)
    _ = unsafe poll(&polled, 1, milliseconds)
  }

  private static func endWriting(_ descriptor: Int32) {
    #if canImport(Glibc)
      shutdown(descriptor, Int32(SHUT_WR))
    #else
      shutdown(descriptor, SHUT_WR)
    #endif
  }
}
