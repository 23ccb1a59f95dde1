// What a transaction on a device has read by a query, in few bytes: the query, how many documents
// it found, and a digest of their names. The server runs the query again within the commit. It need
// not compare the documents: the device names the update time of each that it has found.
//
// Beside a group of writes, footprints are one text, with commas between them. Each is the query's
// message in base 64, a point, the count, a point, and the digest in hexadecimal.

#if Server || Sync
  import Crypto
  import Foundation
  package import Ondol
  package import OndolWire
  import SwiftProtobuf

  /// The result of a query, to be recognised.
  package struct QueryFootprint: Sendable, Hashable {
    /// Queries that one transaction may read.
    package static let mostQueries = 64
    /// Documents that one of these queries may find.
    package static let mostDocuments = 10_000
    /// The longest text of all footprints of a transaction, in bytes.
    package static let longestText = 1 << 20
    private static let digestLength = 16

    /// The query, with the names of one database.
    package var target: WireTarget.QueryTarget
    /// The number of documents.
    package let count: Int
    private let digest: [UInt8]

    package init(_ target: WireTarget.QueryTarget, found: [DocumentPath]) {
      self.target = target
      count = found.count
      digest = Self.digest(of: found)
    }

    /// Whether these are the documents that the query has found.
    package func isMet(by found: [DocumentPath]) -> Bool {
      found.count == count && Self.digest(of: found) == digest
    }

    /// Names are compared as bytes, whatever Unicode holds of them.
    private static func digest(of found: [DocumentPath]) -> [UInt8] {
      var hash = SHA256()
      for path in found.sorted() {
        for segment in path.segments {
          hash.update(data: Array(segment.utf8))
          // No segment has it.
          hash.update(data: [UInt8(ascii: "/")])
        }
      }
      return Array(hash.finalize().prefix(digestLength))
    }

    // MARK: - As text

    private var text: String? {
      guard let bytes: [UInt8] = try? target.serializedBytes() else { return nil }
      return "\(Data(bytes).base64EncodedString()).\(count).\(digest.hexadecimal)"
    }

    /// The footprints as one text.
    ///
    /// Throws `.resourceExhausted` when they are more, or longer, than a server takes.
    package static func text(of footprints: [QueryFootprint]) throws(DatabaseError) -> String {
      let text = footprints.compactMap(\.text).joined(separator: ",")
      guard footprints.count <= mostQueries, text.utf8.count <= longestText else {
        throw DatabaseError(
          .resourceExhausted,
          "the transaction reads \(footprints.count) queries of followed collections, and"
            + " \(mostQueries) of altogether \(longestText) bytes can be sent with it")
      }
      return text
    }

    /// The footprints of a text.
    ///
    /// Throws `.invalidArgument` for a text of another form, and for more than can be asked for.
    package static func footprints(in text: String) throws(DatabaseError) -> [QueryFootprint] {
      guard text.utf8.count <= longestText else { throw wrong("more than \(longestText) bytes") }
      let parts = text.split(separator: ",", omittingEmptySubsequences: false)
      guard parts.count <= mostQueries else { throw wrong("more than \(mostQueries) queries") }
      var footprints: [QueryFootprint] = []
      for part in parts { footprints.append(try QueryFootprint(part)) }
      return footprints
    }

    private init(_ text: Substring) throws(DatabaseError) {
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 3, let bytes = Data(base64Encoded: String(parts[0])),
        let target = try? WireTarget.QueryTarget(serializedBytes: bytes),
        let count = Int(parts[1]), count >= 0
      else { throw Self.wrong("a text of another form") }
      guard count <= Self.mostDocuments else {
        throw Self.wrong("a query that has found more than \(Self.mostDocuments) documents")
      }
      guard let digest = [UInt8](hexadecimal: String(parts[2])),
        digest.count == Self.digestLength
      else { throw Self.wrong("a text of another form") }
      (self.target, self.count, self.digest) = (target, count, digest)
    }

    private static func wrong(_ what: String) -> DatabaseError {
      DatabaseError(.invalidArgument, "the footprint of a transaction's queries is \(what)")
    }
  }
#endif
