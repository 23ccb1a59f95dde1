// What the tests of storage's protocols share: a device that keeps a database, a clock that tests
// move, and a face that is called without a socket, by callers whose tokens nobody signed.

#if Server
  import Foundation
  import OndolJSON
  import OndolTestKit

  @testable import Ondol
  @testable import OndolServer

  struct StorageStage: Sendable {
    static let bucket = "app.appspot.com"

    let clock: ManualClock
    let device: SimulatedDevice
    let database: Database
    let served: ServedDatabase
    let face: StorageFace

    init(
      seed: UInt64 = 1, _ change: (inout Server.Options) -> Void = { _ in }
    ) async throws {
      let clock = ManualClock()
      try await self.init(clock, SimulatedDevice(seed: seed, clock: clock), change)
    }

    /// Another server on the same device.
    init(
      _ clock: ManualClock, _ device: SimulatedDevice,
      _ change: (inout Server.Options) -> Void = { _ in }
    ) async throws {
      (self.clock, self.device) = (clock, device)
      database = try await Database.open(
        at: "app.ondol", options: Database.Options(durability: .power), on: device)
      served = ServedDatabase(database)
      var options = Server.Options()
      options.acceptsUnsignedTokens = true
      change(&options)
      let directory = SingleDatabase(served)
      let admission = Admission(options)
      var policy = AccessPolicy { (header, project) throws(DatabaseError) in
        try await admission.principal(ofBearer: header, project: project, in: directory)
      }
      policy.isLocal = options.isLocal
      policy.isOpen = options.isOpen
      face = StorageFace(
        directory: directory, admission: admission, policy: policy)
    }

    func deploy(_ rules: String) async throws {
      let text = """
        rules_version = '2';
        service firebase.storage { match /b/{bucket}/o { \(rules) } }
        """
      _ = try await ServerRules.deploy(RulesTexts(storage: text), to: database)
      // Deployments are followed in the background.
      while try await served.rules.current() == nil { await Task.yield() }
    }

    /// The header of a person, or of administrators.
    static func bearer(_ name: String) -> [String: String] {
      if name == "owner" { return ["authorization": "Bearer owner"] }
      let claims = "{\"sub\":\"\(name)\"}"
      return [
        "authorization":
          "Bearer \(Base64URL.encode("{\"alg\":\"none\"}".utf8)).\(Base64URL.encode(claims.utf8))."
      ]
    }

    struct Answer: Sendable {
      let status: Int
      let headers: [String: String]
      let bytes: [UInt8]

      /// The body as JSON; null when it is none.
      var body: Value { (try? JSONReader.read(bytes, .plain)) ?? .null }
      subscript(name: String) -> Value? { body[name] }
      func text(_ name: String) -> String { body[name]?.string ?? "" }
    }

    /// Calls a path.
    ///
    /// - Parameters:
    ///   - pieces: the sizes of the pieces in which the body comes.
    ///   - user: `owner` for administrators; nil for nobody.
    func call(
      _ method: String, _ target: String, _ body: [UInt8] = [], as user: String? = nil,
      headers: [String: String] = [:], pieces: [Int] = [], length: Bool = true
    ) async throws -> Answer {
      var headers = headers.merging(user.map(Self.bearer) ?? [:]) { $1 }
      headers["host"] = headers["host"] ?? "127.0.0.1:9199"
      if length, !body.isEmpty { headers["content-length"] = "\(body.count)" }
      guard var call = HTTPCall(method, target, headers: headers) else {
        throw DatabaseError(.invalidArgument, "no target: \(target)")
      }
      if face.takesStream(call) {
        call.stream = HTTPBody { take in
          var (rest, sizes) = (body[...], pieces[...])
          while !rest.isEmpty {
            let size = min(rest.count, sizes.popFirst() ?? rest.count)
            try await take(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
          }
        }
      } else {
        call.body = body
      }
      return try await Self.answer(await face.answer(call))
    }

    static func answer(_ answer: HTTPAnswer) async throws -> Answer {
      var bytes = answer.body
      if let stream = answer.stream { for try await piece in stream.bytes { bytes += piece } }
      if let length = answer.stream?.length, length != bytes.count {
        throw DatabaseError(.internal, "\(length) bytes were announced, \(bytes.count) came")
      }
      return Answer(
        status: answer.status,
        headers: Dictionary(answer.headers.map { ($0.name, $0.value) }) { $1 }, bytes: bytes)
    }

    // MARK: - Words

    static func path(_ name: String) -> String {
      "/storage/v1/b/\(bucket)/o/\(StorageMetadata.encoded(name))"
    }

    static func json(_ value: Value) -> [UInt8] { Array(JSONWriter.line(value, .plain).utf8) }

    /// Puts an object by one plain request.
    @discardableResult
    func put(
      _ name: String, _ bytes: [UInt8], type: String = "text/plain", query: String = "",
      as user: String? = nil
    ) async throws -> Answer {
      try await call(
        "POST",
        "/upload/storage/v1/b/\(Self.bucket)/o?uploadType=media&name="
          + "\(StorageMetadata.encoded(name))\(query)", bytes, as: user,
        headers: ["content-type": type])
    }

    func get(_ name: String, as user: String? = nil) async throws -> Answer {
      try await call("GET", Self.path(name), as: user)
    }

    func download(
      _ name: String, as user: String? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
      try await call("GET", "\(Self.path(name))?alt=media", as: user, headers: headers)
    }

    /// Begins an upload of several requests; returns its address.
    func begin(
      _ name: String, _ metadata: Value = [:], total: Int? = nil, query: String = "",
      as user: String? = nil
    ) async throws -> String {
      var headers = ["x-upload-content-type": "text/plain"]
      if let total { headers["x-upload-content-length"] = "\(total)" }
      let answer = try await call(
        "POST",
        "/upload/storage/v1/b/\(Self.bucket)/o?uploadType=resumable&name="
          + "\(StorageMetadata.encoded(name))\(query)", Self.json(metadata), as: user,
        headers: headers)
      guard answer.status == 200, let location = answer.headers["location"] else {
        throw DatabaseError(.internal, "no upload: \(answer.status) \(answer.body)")
      }
      return String(location.dropFirst("http://127.0.0.1:9199".count))
    }
  }

  /// Bytes that are the same for the same seed.
  func someBytes(_ count: Int, _ seed: UInt64 = 1) -> [UInt8] {
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }
#endif
