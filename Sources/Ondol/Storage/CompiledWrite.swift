// A write of a document that is compiled before its transaction begins. A caller that writes on
// behalf of others checks the contents that the write refers to, and which documents hold them,
// before anything is written. A write without such references is scanned once and needs no check.

internal import OndolEngine

/// A write of one document, ready to be applied in a transaction.
package struct CompiledWrite: Sendable {
  /// A reference to a content in the written data.
  package struct Reference: Sendable {
    /// Its field path; elements of arrays have their index in brackets.
    package var field: String
    package var blob: BlobReference
  }

  private let path: DocumentPath
  private let intent: WriteIntent

  /// As `Transaction.deleteDocument(_:recursive:ifVersion:)`.
  package static func delete(
    _ document: DocumentReference
  ) throws(DatabaseError) -> CompiledWrite {
    try CompiledWrite(document) { () throws(DatabaseError) in WriteCompiler.delete() }
  }

  /// As `Transaction.setData(_:forDocument:merge:ifVersion:)`.
  package static func set(
    _ data: [String: (any FieldContent)?], merge: Bool, _ document: DocumentReference
  ) throws(DatabaseError) -> CompiledWrite {
    try CompiledWrite(document) { () throws(DatabaseError) in
      let fields = try FieldInput.fields(data)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
  }

  /// As `Transaction.setData(from:forDocument:merge:ifVersion:encoder:)`.
  package static func set<Content: Encodable>(
    from content: Content, _ document: DocumentReference
  ) throws(DatabaseError) -> CompiledWrite {
    try CompiledWrite(document) { () throws(DatabaseError) in
      try WriteCompiler.set(DocumentEncoder().input(of: content))
    }
  }

  /// As `Transaction.updateData(_:forDocument:ifVersion:)`.
  package static func update(
    _ data: [String: (any FieldContent)?], _ document: DocumentReference
  ) throws(DatabaseError) -> CompiledWrite {
    try CompiledWrite(document) { () throws(DatabaseError) in
      try WriteCompiler.update(FieldInput.inputs(data.map { (FieldPath($0.key), $0.value) }))
    }
  }

  private init(
    _ document: DocumentReference, _ compile: () throws(DatabaseError) -> WriteIntent
  ) throws(DatabaseError) {
    path = try document.place.get()
    do throws(DatabaseError) {
      intent = try compile()
    } catch {
      throw error.at(path: "\(path)")
    }
  }

  /// The references to contents that it writes, at any depth, in the order of their fields.
  ///
  /// - Complexity: O(values), without an allocation when there are none.
  package var references: [Reference] {
    var found: [Reference] = []
    switch intent.change {
    case .replace(let fields), .patch(let fields, _): Self.collect(fields, "", &found)
    case .put(let encoded): Self.collect(encoded.row.fields, "", &found)
    case .delete, .keep: break
    }
    for transform in intent.transforms {
      guard case .arrayUnion(let elements) = transform.operation else { continue }
      let place = WriteCompiler.describe(transform.path)
      for (index, element) in elements.enumerated() where element.refersToContents {
        Self.collect(element, "\(place)[\(index)]", &found)
      }
    }
    return found.sorted { ValueOrder.compare($0.field, $1.field) < 0 }
  }

  private static func collect(
    _ fields: [String: Value], _ outer: String, _ found: inout [Reference]
  ) {
    for (name, value) in fields where value.refersToContents {
      let name = FieldPath.quoted(name)
      collect(value, outer.isEmpty ? name : "\(outer).\(name)", &found)
    }
  }

  private static func collect(_ value: Value, _ place: String, _ found: inout [Reference]) {
    switch value {
    case .blob(let blob): found.append(Reference(field: place, blob: blob))
    case .map(let fields): collect(fields, place, &found)
    case .array(let elements):
      for (index, element) in elements.enumerated() where element.refersToContents {
        collect(element, "\(place)[\(index)]", &found)
      }
    default: break
    }
  }

  fileprivate func apply(in transaction: Transaction) throws(DatabaseError) {
    try transaction.add(DocumentWrite(path: path, intent: intent))
  }
}

extension Value {
  /// Whether the value has a reference to a content, at any depth.
  fileprivate var refersToContents: Bool { hasLeaf { $0.blob != nil } }
}

extension Transaction {
  /// Applies a compiled write.
  ///
  /// - Throws: as the call it was compiled from.
  package func apply(_ write: CompiledWrite) throws(DatabaseError) {
    try check(database, "")
    try write.apply(in: self)
  }

  /// Whether a document below `root`, at any depth, refers to the content. Documents of collections
  /// with keys of their own are not included, because the database does not store the names of
  /// these holders.
  ///
  /// - Throws: as `getDocument(_:)`.
  /// - Complexity: one lookup for each collection that was ever written below documents like this.
  package func holds(
    _ digest: BlobDigest, below root: DocumentReference
  ) throws(DatabaseError) -> Bool {
    let path = try check(root)
    let holder: DocumentPath?
    do throws(DatabaseError) {
      holder = try currentRows().holder(of: digest, below: path)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        if let holder = try rows.holder(of: digest, below: path) { try rows.warm(holder) }
      }
    }
    guard let holder else { return false }
    // Recorded as read: if it changes before the commit, the body runs again.
    let reference = DocumentReference(database: database, place: .success(holder))
    return try getDocument(reference).exists
  }
}

extension Rows {
  /// A document below `path` that holds the content; nil when there is none.
  fileprivate func holder(
    of digest: BlobDigest, below path: DocumentPath
  ) throws(DatabaseError) -> DocumentPath? {
    for collection in try collections(below: path) {
      guard Keyspace(of: collection.range.lower)?.keyedGroup == nil else { continue }
      var walk = RangeWalk(self, [ContentKey.holders(of: digest, in: collection.range)])
      while try walk.next() {
        let row = ContentKey.holdingRow(in: walk.cursor.key)
        let holder = try collection.pattern.document(ofRow: row)
        if try isThere(holder) { return holder }
      }
    }
    return nil
  }

  /// Whether reads would show the document: it has not expired, and the current schema admits it.
  private func isThere(_ path: DocumentPath) throws(DatabaseError) -> Bool {
    do throws(DatabaseError) {
      return try DocumentReader(rows: self).contents(of: path) != nil
    } catch {
      guard error.isUnreadable else { throw error }
      return false
    }
  }
}

extension CollectionPattern {
  /// The document whose row has the key.
  fileprivate func document(ofRow key: [UInt8]) throws(DatabaseError) -> DocumentPath {
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: ancestorCount)
    return DocumentPath(unchecked: zip(collectionIDs, ids).flatMap { [$0, $1] })
  }
}
