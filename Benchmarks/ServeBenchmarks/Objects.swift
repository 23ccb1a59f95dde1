// Contents of 100 MB over Storage's port, beside a server of plain files on the same HTTP library:
// both stream, both have the bytes on the device when an upload is acknowledged. One client, which
// knows as much of HTTP as it needs, asks both in turns.

#if Server
  import BenchmarkKit
  import Foundation
  import HTTPTypes
  import HummingbirdCore
  import Logging
  import NIOCore
  import NIOPosix
  import Ondol
  import OndolPlatform
  import OndolServer

  /// The measurements of storage.
  struct ObjectsTrial: Sendable {
    private static let bytes = 100_000_000

    let turns: Int
    let directory: String

    func run(_ result: inout SuiteResult) async throws {
      let database = try await Database.open(at: directory + "/objects")
      var options = Server.Options()
      (options.firestorePort, options.storagePort) = (0, 0)
      options.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let ready = AsyncStream.makeStream(of: Server.Addresses.self)
      let running = Task { try await server.run { _ = ready.continuation.yield($0) } }
      var addresses = ready.stream.makeAsyncIterator()
      guard let storage = await addresses.next()?.storage,
        let port = storage.split(separator: ":").last.flatMap({ Int($0) })
      else { return }
      let files = directory + "/files"
      try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
      let ports = AsyncStream.makeStream(of: Int.self)
      let plain = FileServer.make(in: files) { ports.continuation.yield($0) }
      let serving = Task { try await plain.run() }
      var listening = ports.stream.makeAsyncIterator()
      guard let plainPort = await listening.next() else { return }
      try await measure(port, plainPort, &result)
      try await plain.shutdownGracefully()
      server.shutDown()
      try await serving.value
      try await running.value
      try await database.close()
    }

    private func measure(_ port: Int, _ plain: Int, _ result: inout SuiteResult) async throws {
      var times: [Workload: [Double]] = [:]
      var peaks: [Workload: Double] = [:]
      func time(_ workload: Workload, _ body: @escaping @Sendable () throws -> Void) async throws {
        ProcessMemory.restartPeak()
        let before = ProcessMemory.current()?.residentBytes ?? 0
        times[workload, default: []].append(
          try await microseconds { try await NIOThreadPool.singleton.runIfActive(body) })
        let peak = (ProcessMemory.current()?.peakBytes ?? 0) - before
        peaks[workload] = max(peaks[workload] ?? 0, Double(peak) / 1_048_576)
      }
      for turn in 0..<max(3, turns / 8) {
        let name = "film-\(turn)"
        try await time(.plainUpload) {
          try Transfer.upload(Self.bytes, seed: turn, to: "/\(name)", "PUT", port: plain)
        }
        try await time(.upload) {
          let path = "/upload/storage/v1/b/bench.bucket/o?uploadType=media&name=\(name)"
          try Transfer.upload(Self.bytes, seed: turn, to: path, "POST", port: port)
        }
        try await time(.plainDownload) {
          try Transfer.download(Self.bytes, seed: turn, from: "/\(name)", port: plain)
        }
        try await time(.download) {
          let path = "/download/storage/v1/b/bench.bucket/o/\(name)?alt=media"
          try Transfer.download(Self.bytes, seed: turn, from: path, port: port)
        }
      }
      func rate(_ workload: Workload) -> Double {
        Double(Self.bytes) / (times[workload].map { median($0) } ?? .nan)
      }
      for workload in [Workload.plainUpload, .upload, .plainDownload, .download] {
        result.note(workload, rate(workload))
      }
      result.note(Workload.uploadByPlain, rate(.plainUpload) / rate(.upload))
      result.note(Workload.downloadByPlain, rate(.plainDownload) / rate(.download))
      result.note(Workload.uploadMemory, peaks[.upload] ?? .nan)
      result.note(Workload.downloadMemory, peaks[.download] ?? .nan)
    }
  }

  /// A server of a folder's files, which streams as the library's users would.
  private enum FileServer {
    static func make(
      in directory: String, whenReady: @escaping @Sendable (Int) -> Void
    ) -> HummingbirdCore.Server<HTTP1Channel> {
      HummingbirdCore.Server(
        childChannelSetup: HTTP1Channel(
          responder: { request, writer, _ in
            let path = directory + (request.head.path ?? "/none")
            if request.method == .put {
              try await take(request.body, to: path)
              try await writer.writeResponse(HTTPResponse(status: .ok))
            } else {
              try await give(path, writer)
            }
          }, configuration: HTTP1Channel.Configuration()),
        configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { whenReady($0.localAddress?.port ?? 0) },
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
    }

    private static let piece = 128 << 10

    /// Runs what blocks on a thread that may.
    private static func blocking<R: Sendable>(
      _ body: @escaping @Sendable () throws -> R
    ) async throws -> R {
      try await NIOThreadPool.singleton.runIfActive(body)
    }

    private static func take(_ body: RequestBody, to path: String) async throws {
      let file = try await blocking { unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600) }
      defer { close(file) }
      for try await piece in body {
        try await blocking {
          let count = unsafe piece.withUnsafeReadableBytes {
            unsafe write(file, $0.baseAddress, $0.count)
          }
          guard count == piece.readableBytes else { throw ChildFailure(description: "no write") }
        }
      }
      try await blocking {
        guard fsync(file) == 0 else { throw ChildFailure(description: "no sync") }
      }
    }

    @concurrent private static func give(
      _ path: String, _ writer: consuming ResponseWriter
    ) async throws {
      let (file, size) = try await blocking {
        let file = unsafe open(path, O_RDONLY)
        return (file, Int(lseek(file, 0, SEEK_END)))
      }
      defer { close(file) }
      var out = try await writer.writeHead(
        HTTPResponse(status: .ok, headerFields: [.contentLength: String(size)]))
      for start in stride(from: 0, to: size, by: piece) {
        let bytes = try await blocking {
          let count = min(piece, size - start)
          var bytes = ByteBufferAllocator().buffer(capacity: count)
          let read = unsafe bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: count) {
            unsafe max(0, pread(file, $0.baseAddress, count, off_t(start)))
          }
          guard read == count else { throw ChildFailure(description: "no read") }
          return bytes
        }
        try await out.write(bytes)
      }
      try await out.finish(nil)
    }
  }

  /// Requests of one connection each, made by a thread that may block.
  private enum Transfer {
    private static let pieceSize = 256 << 10

    /// A piece of a content. No two of a content are equal.
    private static func piece(_ number: Int, seed: Int) -> [UInt8] {
      var state = UInt64(truncatingIfNeeded: seed << 32 | number) &* 0x9E37_79B9_7F4A_7C15 | 1
      var bytes: [UInt8] = []
      bytes.reserveCapacity(pieceSize)
      while bytes.count < pieceSize {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        unsafe withUnsafeBytes(of: state) { unsafe bytes.append(contentsOf: $0) }
      }
      return bytes
    }

    private static func connect(port: Int) throws -> Int32 {
      #if canImport(Glibc)
        let socket = OndolPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      #else
        let socket = OndolPlatform.socket(AF_INET, SOCK_STREAM, 0)
      #endif
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      let status = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe OndolPlatform.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard status == 0 else { throw ChildFailure(description: "nobody listens on \(port)") }
      return socket
    }

    private static func send(_ bytes: [UInt8], on socket: Int32) throws {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe write(socket, $0.baseAddress, $0.count) }
        guard count > 0 else { throw ChildFailure(description: "a connection ended") }
        rest = rest.dropFirst(count)
      }
    }

    /// Reads a response's head. Returns what followed it.
    private static func readHead(on socket: Int32) throws -> [UInt8] {
      var head: [UInt8] = []
      let end = Array("\r\n\r\n".utf8)
      while head.count < 65_536 {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(socket, &bytes, bytes.count)
        guard count > 0 else { break }
        head += bytes[..<count]
        let text = String(decoding: head, as: UTF8.self)
        guard let place = head.firstRange(of: end) else { continue }
        guard text.hasPrefix("HTTP/1.1 200") else { break }
        return Array(head[place.upperBound...])
      }
      throw ChildFailure(
        description: "a request was refused: \(String(decoding: head.prefix(200), as: UTF8.self))")
    }

    static func upload(
      _ count: Int, seed: Int, to path: String, _ method: String, port: Int
    ) throws {
      let socket = try connect(port: port)
      defer { close(socket) }
      let head =
        "\(method) \(path) HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\ncontent-length: \(count)\r\n"
        + "content-type: video/mp4\r\nconnection: close\r\n\r\n"
      try send(Array(head.utf8), on: socket)
      for start in stride(from: 0, to: count, by: pieceSize) {
        let bytes = piece(start / pieceSize, seed: seed)
        try send(Array(bytes.prefix(count - start)), on: socket)
      }
      _ = try readHead(on: socket)
    }

    /// Reads a content, and compares it with what was sent.
    static func download(_ count: Int, seed: Int, from path: String, port: Int) throws {
      let socket = try connect(port: port)
      defer { close(socket) }
      let head =
        "GET \(path) HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\nconnection: close\r\n\r\n"
      try send(Array(head.utf8), on: socket)
      var rest = try readHead(on: socket)
      for start in stride(from: 0, to: count, by: pieceSize) {
        let wanted = min(pieceSize, count - start)
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        while rest.count < wanted {
          let some = unsafe read(socket, &bytes, bytes.count)
          guard some > 0 else { throw ChildFailure(description: "a content ended at \(start)") }
          rest += bytes[..<some]
        }
        guard rest.prefix(wanted).elementsEqual(piece(start / pieceSize, seed: seed).prefix(wanted))
        else { throw ChildFailure(description: "other bytes came at \(start)") }
        rest.removeFirst(wanted)
      }
    }
  }
#endif
