// The body of a request that is never in memory whole. A face says what is done with a piece, and
// gets the next one when that is done. So the client cannot be faster than the device.

#if Server
  /// The bytes of a request, piece by piece.
  package struct HTTPBody: Sendable {
    /// What is done with a piece.
    package typealias Take = (_ piece: [UInt8]) async throws -> Void

    private let pass: @Sendable (_ take: Take) async throws -> Void

    /// - Parameter pass: calls `take` with each piece, and throws what it throws.
    package init(_ pass: @escaping @Sendable (_ take: Take) async throws -> Void) {
      self.pass = pass
    }

    /// Takes all pieces in their order. Works once.
    package func forEach(_ take: Take) async throws {
      try await pass(take)
    }
  }
#endif
