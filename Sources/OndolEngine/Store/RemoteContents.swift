// The bytes of large contents on a store, in parts beside its rows, so that nobody hears of them
// who does not ask. Bytes come before the commit that names them, and are put only while a row says
// that somebody uploads them, see `LooseParts`: whoever would remove them takes that row away
// first. A store that loses its newest commits may lose the parts that were put behind the last one
// that is left, and no others.

/// A store that keeps contents in parts.
///
/// Calls throw `.unreachable` when there is no answer, and may be made again.
package protocol RemoteContents: Sendable {
  /// Puts a part of a content, unless it is there. Its bytes survive a power cut with any later
  /// commit that does.
  ///
  /// - Parameter row: the key of a row that is there by the newest commit, or nothing is put.
  /// - Returns: whether the part is there now.
  func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool

  /// How many parts of a content there are.
  func countContent(_ id: [UInt8]) async throws(EngineError) -> Int

  /// Bytes of a content; fewer where parts are missing. Blocks.
  func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8]

  /// Removes all parts of a content, those too that are being put at that moment. The row that
  /// allowed them is gone already.
  func removeContent(_ id: [UInt8]) async throws(EngineError)

  /// The store's clock, which commits' times are from, in microseconds since 1970.
  func clock() async throws(EngineError) -> Int64
}

/// How a content is cut on a store.
package enum ContentPart {
  /// Bytes of each part but the last.
  package static let length = 256 << 10
  /// Bytes of a content's id, which is made up for each upload: its digest is known at the end.
  package static let idLength = 16
}
