// What the console's handler takes and gives: a request and its response without any server's
// types, so that whatever speaks HTTP can carry them, and tests need no socket.

/// A request, as it came.
public struct ConsoleRequest: Sendable {
  /// The method, in capitals.
  public var method: String
  /// The path and what is behind `?`, percent-encoded as they came.
  public var target: String
  /// The header fields; names in any case.
  public var headers: [(name: String, value: String)]
  /// The body, in pieces.
  public var body: ConsoleBody

  /// Makes a request.
  ///
  /// - Parameters:
  ///   - method: the method, in capitals.
  ///   - target: the path and what is behind `?`, percent-encoded.
  ///   - headers: the header fields.
  ///   - body: the body; nothing unless given.
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

  /// The value of a header field that stands once.
  func value(of name: String) -> String? {
    let values = values(of: name)
    return values.count == 1 ? values[0] : nil
  }
}

/// A response.
public struct ConsoleResponse: Sendable {
  /// The status, such as 200.
  public var status: Int
  /// The header fields, with the length of the body where it is known.
  public var headers: [(name: String, value: String)]
  /// The body, in pieces as they come to be.
  public var body: ConsoleBody

  init(_ status: Int, _ headers: [(name: String, value: String)], _ body: ConsoleBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Bytes in pieces. They can be taken once.
public struct ConsoleBody: AsyncSequence, Sendable {
  /// A piece.
  public typealias Element = [UInt8]

  /// All of it, where it is there at once.
  let whole: [UInt8]?
  private let take: @Sendable () async throws -> [UInt8]?

  /// A body that is there already.
  public init(_ bytes: [UInt8]) {
    whole = bytes
    take = { nil }
  }

  /// A body that comes to be.
  ///
  /// - Parameter next: gives the next piece; nil at the end. Asked by one caller at a time.
  public init(_ next: @escaping @Sendable () async throws -> [UInt8]?) {
    whole = nil
    take = next
  }

  /// Takes the pieces.
  public func makeAsyncIterator() -> Iterator { Iterator(whole: whole, take: take) }

  /// Takes one piece after the other.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var whole: [UInt8]?
    fileprivate let take: @Sendable () async throws -> [UInt8]?

    /// The next piece; nil at the end.
    public mutating func next() async throws -> [UInt8]? {
      if let bytes = whole {
        whole = nil
        return bytes.isEmpty ? nil : bytes
      }
      return try await take()
    }
  }

  /// All of it, if it has at most so many bytes; nil otherwise.
  ///
  /// - Parameter admit: told how many bytes each piece has before it is kept; throws to refuse.
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
