// Where a server's signing keys are. They are documents, so they are encrypted, checked, backed up
// and replicated like all others. A reader of such a key can sign in as anybody, so their
// collection has a name that no app and no client can use.
//
//   __tokenkeys__/ID
//     key        bytes: the secret number of an ECDSA key on P-256, high byte first
//     createdAt  timestamp
//     retiredAt  timestamp: when another key replaced it; missing in the one that signs

/// How signing keys are documents.
enum TokenKeyRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__tokenkeys__"
}

extension Database {
  /// The collection of the keys that sign tokens. No path that a caller gives leads to it.
  package var tokenKeys: CollectionReference {
    let path = CollectionPath(unchecked: [TokenKeyRows.root])
    return CollectionReference(database: self, place: .success(path))
  }
}
