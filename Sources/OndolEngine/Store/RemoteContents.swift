// The bytes of large contents on a store, in parts beside its rows, so that only processes that ask
// receive them. Bytes come before the commit that refers to them. They are put only while a row
// records the upload, see `LooseParts`: code that removes them removes that row first. A store that
// loses its newest commits may also lose the parts that were put after the last remaining one, and
// no others.

/// A store that keeps contents in parts.
///
/// Calls throw `.unreachable` when there is no answer, and may be repeated.
package protocol RemoteContents: Sendable {
  /// Puts a part of a content, unless it exists. Its bytes survive a power cut with any later
  /// commit that does.
  ///
  /// - Parameter row: the key of a row that must exist as of the newest commit, or nothing is put.
  /// - Returns: whether the part exists now.
  func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool

  /// The number of parts of a content.
  func countContent(_ id: [UInt8]) async throws(EngineError) -> Int

  /// Bytes of a content; fewer when parts are missing. Blocks.
  func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8]

  /// Removes all parts of a content, including those being put at that moment. The row that allowed
  /// them must be gone already.
  func removeContent(_ id: [UInt8]) async throws(EngineError)

  /// The store's clock, the source of commit times, in microseconds since 1970.
  func clock() async throws(EngineError) -> Int64
}

/// How a content is split on a store.
package enum ContentPart {
  /// Bytes of each part except the last.
  package static let length = 256 << 10
  /// Bytes of a content's id, which is chosen for each upload, because its digest is known only at
  /// the end.
  package static let idLength = 16
}
