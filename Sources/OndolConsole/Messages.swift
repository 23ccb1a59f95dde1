// The requests and responses of the console's handler. They contain no types of any server, so any
// HTTP implementation can carry them, and tests need no socket.

/// A request, as received.
public struct ConsoleRequest: Sendable {
  /// The method, in capitals.
  public var method: String
  /// The path and the part after `?`, percent-encoded as received.
  public var target: String
  /// The header fields. Names have any case.
  public var headers: [(name: String, value: String)]
  /// The body, in pieces.
  public var body: ConsoleBody

  /// Makes a request.
  ///
  /// - Parameters:
  ///   - method: the method, in capitals.
  ///   - target: the path and the part after `?`, percent-encoded.
  ///   - headers: the header fields.
  ///   - body: the body; empty by default.
  public init(
    method: String, target: String, headers: [(name: String, value: String)] = [],
    body: ConsoleBody = ConsoleBody([])
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }

  /// The values of all header fields of a name.
  func values(of name: String) -> [String] {
    headers.filter { $0.name.lowercased() == name }.map(\.value)
  }

  /// The value of a header field that occurs once.
  func value(of name: String) -> String? {
    let values = values(of: name)
    return values.count == 1 ? values[0] : nil
  }
}

/// A response.
public struct ConsoleResponse: Sendable {
  /// The status, such as 200.
  public var status: Int
  /// The header fields, including the body's length if it is known.
  public var headers: [(name: String, value: String)]
  /// The body, in pieces as they are produced.
  public var body: ConsoleBody

  init(_ status: Int, _ headers: [(name: String, value: String)], _ body: ConsoleBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Bytes in pieces. They can be read once.
public struct ConsoleBody: AsyncSequence, Sendable {
  /// A piece.
  public typealias Element = [UInt8]

  /// The whole body, if it is available at once.
  let whole: [UInt8]?
  private let take: @Sendable () async throws -> [UInt8]?

  /// Makes a body of bytes that are available.
  public init(_ bytes: [UInt8]) {
    whole = bytes
    take = { nil }
  }

  /// Makes a body that is produced piece by piece.
  ///
  /// - Parameter next: returns the next piece; nil at the end. It has one caller at a time.
  public init(_ next: @escaping @Sendable () async throws -> [UInt8]?) {
    whole = nil
    take = next
  }

  /// Makes an iterator over the pieces.
  public func makeAsyncIterator() -> Iterator { Iterator(whole: whole, take: take) }

  /// Returns one piece after another.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var whole: [UInt8]?
    fileprivate let take: @Sendable () async throws -> [UInt8]?

    /// Returns the next piece; nil at the end.
    public mutating func next() async throws -> [UInt8]? {
      if let bytes = whole {
        whole = nil
        return bytes.isEmpty ? nil : bytes
      }
      return try await take()
    }
  }

  /// Returns the whole body if it has at most `count` bytes; nil otherwise.
  ///
  /// - Parameter admit: receives the length of each piece before the piece is kept, and throws to
  ///   refuse it.
  func collected(
    atMost limit: Int, admit: (Int) throws -> Void = { _ in }
  ) async throws -> [UInt8]? {
    var bytes: [UInt8] = []
    for try await piece in self {
      guard bytes.count + piece.count <= limit else { return nil }
      try admit(piece.count)
      bytes += piece
    }
    return bytes
  }
}
