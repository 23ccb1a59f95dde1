// Bytes for a storage path, in the commit of a batch.

internal import OndolEngine

/// Bytes that a batch puts.
struct StoragePut: Sendable {
  var document: DocumentPath
  var bytes: [UInt8]
  var metadata: StorageMetadata
  var condition: StorageCondition

  /// Writes the bytes, and returns what the commit must do with them.
  func stage(
    in database: Database
  ) async throws(DatabaseError) -> (content: StagedContent, write: DocumentWrite) {
    let staged = try await database.contents.stage(bytes)
    let head = Array(bytes.prefix(ContentSniffer.length))
    return (staged, try metadata.put(staged, head: head, at: document, condition))
  }
}
