// MD5, because Firebase Storage provides it and apps compare it. It is computed on request. Ondol
// itself relies on SHA-256.

internal import Crypto
internal import OndolFoundation

extension StorageReference {
  /// The MD5 of the bytes here, in Base64, as Firebase Storage has it in its metadata. It detects
  /// accidents, not forgeries. `StorageMetadata.sha256` detects both, and costs nothing.
  ///
  /// - Throws: `.notFound` when there is no object; otherwise as `data(maxSize:)`.
  /// - Complexity: O(bytes), a megabyte of them in memory.
  public func md5Hash() async throws(DatabaseError) -> String {
    let reader = try await open()
    var hash = Insecure.MD5()
    var offset = 0
    while offset < reader.length {
      try refuseWhenCancelled()
      let piece = offset..<min(reader.length, offset + ContentReader.pieceLength)
      hash.update(data: try await reader.read(piece))
      offset = piece.upperBound
    }
    return Data(hash.finalize()).base64EncodedString()
  }
}
