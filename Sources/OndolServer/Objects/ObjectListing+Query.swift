// What a call for a list asks for, and the tokens of its pages. A token is the last entry that was
// listed, in Base64 without the characters that an address would encode. A client that changes one
// only asks for another part of the list.

#if Server
  import Foundation
  import Ondol

  extension ObjectListing {
    /// - Parameters:
    ///   - query: the parameters of a call, whose names are the same in both protocols.
    ///   - most: the most results of a page; more are not refused.
    init(_ query: [String: String], mostResults most: Int) throws(StorageFailure) {
      self.init()
      prefix = query["prefix"] ?? ""
      delimiter = query["delimiter"] ?? ""
      start = query["startOffset"] ?? ""
      end = query["endOffset"].flatMap { $0.isEmpty ? nil : $0 }
      limit = most
      if let text = query["maxResults"] {
        guard let wanted = byteCount(text) else { throw .invalid("maxResults is not a number.") }
        // No results are as many as there may be, as in Google Cloud Storage.
        if wanted > 0 { limit = min(most, wanted) }
      }
      if query["matchGlob"] != nil || query["softDeleted"] == "true" { throw .unimplemented }
      if let token = query["pageToken"], !token.isEmpty {
        guard let bytes = Base64URL.decode(token.utf8),
          let last = String(validating: bytes, as: UTF8.self), !last.isEmpty,
          !last.utf8.contains(0)
        else { throw .invalid("The page token is not one of a list.") }
        self.last = last
      }
    }

    static func token(after last: String) -> String { Base64URL.encode(last.utf8) }
  }
#endif
