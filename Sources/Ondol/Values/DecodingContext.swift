// What all parts of a decoded document share.

/// What decoding knows apart from the value. A class, because every container references it.
final class DecodingContext {
  /// The document that is decoded.
  let document: DocumentReference?
  let keyStrategy: KeyStrategy
  let dateStrategy: DateStrategy
  let userInfo: [CodingUserInfoKey: any Sendable]
  let hints: DecodingHints?

  init(
    document: DocumentReference?, keyStrategy: KeyStrategy, dateStrategy: DateStrategy,
    userInfo: [CodingUserInfoKey: any Sendable], hints: DecodingHints?
  ) {
    self.document = document
    self.keyStrategy = keyStrategy
    self.dateStrategy = dateStrategy
    self.userInfo = userInfo
    self.hints = hints
  }

  /// The same for values whose keys are data.
  var withPlainKeys: DecodingContext {
    DecodingContext(
      document: document, keyStrategy: .unchanged, dateStrategy: dateStrategy,
      userInfo: userInfo, hints: nil)
  }
}
