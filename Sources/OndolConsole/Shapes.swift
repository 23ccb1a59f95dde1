// The shapes of answers: documents, objects, changes, plans and conditions as the page reads them.

import Ondol
import OndolJSON

extension JSON {
  static func document(_ document: DocumentSnapshot) -> JSON {
    guard document.exists else { return .null }
    return [
      "path": .text(document.reference.path), "id": .text(document.documentID),
      "version": .digits(document.version.rawValue),
      "created": document.createTime.map { .time($0) },
      "updated": document.updateTime.map { .time($0) }, "fields": .fields(document.data()),
    ]
  }

  static func object(_ metadata: StorageMetadata) -> JSON {
    [
      "path": .text(metadata.path), "size": .number(metadata.size),
      "sha256": metadata.sha256.map { .text($0.hex) },
      "generation": .digits(metadata.generation),
      "metageneration": .digits(metadata.metageneration),
      "created": metadata.created.map { .time($0) }, "updated": metadata.updated.map { .time($0) },
      "contentType": metadata.contentType.map { .text($0) },
      "cacheControl": metadata.cacheControl.map { .text($0) },
      "contentDisposition": metadata.contentDisposition.map { .text($0) },
      "contentEncoding": metadata.contentEncoding.map { .text($0) },
      "contentLanguage": metadata.contentLanguage.map { .text($0) },
      "custom": .object(
        metadata.customMetadata.sorted { $0.key < $1.key }
          .map { (name: $0.key, value: .text($0.value)) }),
    ]
  }

  static func collection(_ collection: CollectionInformation) -> JSON {
    [
      "id": .text(collection.reference.collectionID), "path": .text(collection.reference.path),
      "count": .number(collection.count), "exact": .boolean(collection.isExact),
    ]
  }

  static func plan(_ plan: QueryExplanation) -> JSON {
    [
      "query": .text(plan.query), "access": access(plan.access), "sorts": .boolean(plan.sorts),
      "needsNoDocuments": .boolean(plan.needsNoDocuments),
      "suggestedIndex": plan.suggestedIndex.map { .texts($0) },
      "buildingIndexes": .texts(plan.buildingIndexes),
      "isPlanCutShort": .boolean(plan.isPlanCutShort), "unknownFields": .texts(plan.unknownFields),
      "entriesVisited": plan.entriesVisited.map { .number($0) },
      "documentsExamined": plan.documentsExamined.map { .number($0) },
      "documentsReturned": plan.documentsReturned.map { .number($0) },
      "duration": plan.duration.map { .seconds($0) },
    ]
  }

  private static func access(_ access: QueryExplanation.Access) -> JSON {
    switch access {
    case .nothing: ["way": "nothing"]
    case .lookups(let count): ["way": "lookups", "count": .number(count)]
    case .scan: ["way": "scan"]
    case .idRange: ["way": "idRange"]
    case .index(let name, let ranges):
      ["way": "index", "name": .text(name), "ranges": .number(ranges)]
    case .intersection(let names): ["way": "intersection", "names": .texts(names)]
    case .end(let of): ["way": "end", "of": self.access(of)]
    case .union(let ways): ["way": "union", "ways": .list(ways.map { self.access($0) })]
    }
  }

  /// A condition. Operands of one "and" or one "or" are in one list.
  static func condition(_ expression: WhereExpression) -> JSON {
    switch expression {
    case .field(let field, let comparison, let operand):
      ["field": .text("\(field)"), "op": .text(comparison.rawValue), "value": .value(operand)]
    case .compared(let field, let texts, let comparison, let operand):
      [
        "field": .text("\(field)~\(texts)"), "op": .text(comparison.rawValue),
        "value": .value(operand),
      ]
    case .and: ["and": .list(conjuncts(expression).map { condition($0) })]
    case .or: ["or": .list(disjuncts(expression).map { condition($0) })]
    }
  }

  private static func conjuncts(_ expression: WhereExpression) -> [WhereExpression] {
    guard case .and(let left, let right) = expression else { return [expression] }
    return conjuncts(left) + conjuncts(right)
  }

  private static func disjuncts(_ expression: WhereExpression) -> [WhereExpression] {
    guard case .or(let left, let right) = expression else { return [expression] }
    return disjuncts(left) + disjuncts(right)
  }

  static func index(_ index: Declarations.DeclaredIndex) -> JSON {
    let information = index.information
    return [
      "collection": .text(index.collection), "group": .boolean(index.isOfGroup),
      "name": .text(information.name), "fields": .texts(information.fields),
      "unique": .boolean(information.isUnique),
      "nullsDistinct": information.isUnique ? .boolean(information.nullsDistinct) : nil,
      "elements": .boolean(index.isOfElements),
      "where": index.condition.map { .text($0) },
      "state": information.state == .ready ? "ready" : "building",
      "progress": information.progress.map {
        ["documents": .number($0.documents), "total": .number($0.total)]
      },
      "entries": .number(information.entries), "bytes": .number(information.sizeBytes),
      "uses": .number(index.uses),
    ]
  }

  static func declarations(_ declarations: Declarations) -> JSON {
    [
      "indexes": .list(declarations.indexes.map { .index($0) }),
      "timeToLive": .list(
        declarations.timeToLive.map {
          ["collection": .text($0.collection), "field": .text($0.field)]
        }),
      "links": .list(
        declarations.links.map {
          [
            "collection": .text($0.collection), "field": .text($0.field),
            "folder": .text($0.folder),
          ]
        }),
    ]
  }

  static func finding(_ finding: Finding) -> JSON {
    [
      "severity": .text(finding.severity.rawValue), "kind": .text(finding.kind.rawValue),
      "message": .text(finding.message), "file": finding.file.map { .text($0) },
      "offset": finding.offset.map { .number(Int(clamping: $0)) },
      "collection": finding.collection.map { .text($0) }, "id": finding.id.map { .text($0) },
      "storagePath": finding.storagePath.map { .text($0) },
      "hint": finding.hint.map { .text($0) },
    ]
  }
}

// MARK: - Changes

extension JSON {
  /// The largest number of reported documents and objects of one commit.
  static let changesOfCommit = 100
  /// Fields of a document beyond this many bytes are left out.
  private static let longFields = 64 << 10

  /// A commit; nil if it changed nothing at or below the path.
  static func change(_ change: DatabaseChange, below path: String?, isCut: Bool) -> JSON? {
    var isCut = isCut
    func isBelow(_ other: String) -> Bool {
      path.map { $0.isEmpty || other == $0 || other.hasPrefix($0 + "/") } ?? true
    }
    let documents = change.documents.filter { isBelow($0.reference.path) }
    let objects = path == nil ? change.objects : []
    let dropped = change.droppedCollection.flatMap { isBelow($0) ? $0 : nil }
    let renamed = change.renamedCollection.flatMap {
      isBelow($0.from) || isBelow($0.to) ? $0 : nil
    }
    guard !documents.isEmpty || !objects.isEmpty || dropped != nil || renamed != nil else {
      return nil
    }
    if documents.count > changesOfCommit { isCut = true }
    let told = documents.prefix(changesOfCommit).map { document($0, &isCut) }
    return [
      "token": .text("\(change.token)"), "version": .digits(change.version.rawValue),
      "time": .time(change.time), "dropped": dropped.map { .text($0) },
      "renamed": renamed.map { ["from": .text($0.from), "to": .text($0.to)] },
      "cut": .boolean(isCut), "documents": .list(told),
      "objects": .list(
        objects.prefix(changesOfCommit).map { object in
          [
            "path": .text(object.reference.fullPath),
            "kind": object.before == nil ? "added" : object.after == nil ? "removed" : "modified",
            "before": object.before.map { .object($0) } ?? .null,
            "after": object.after.map { .object($0) } ?? .null,
          ]
        }),
    ]
  }

  private static func document(_ document: DatabaseChange.Document, _ isCut: inout Bool) -> JSON {
    func fields(_ snapshot: DocumentSnapshot) -> JSON {
      guard snapshot.exists else { return .null }
      let bytes = JSON.fields(snapshot.data()).bytes
      guard bytes.count <= longFields else {
        isCut = true
        return .null
      }
      return .written(bytes)
    }
    let before = fields(document.before)
    let after = fields(document.after)
    let kind =
      switch document.type {
      case .added: "added"
      case .modified: "modified"
      case .removed: "removed"
      }
    return [
      "path": .text(document.reference.path), "kind": .text(kind),
      "fields": .texts(differences(document.before.data(), document.after.data(), [])),
      "before": before, "after": after,
    ]
  }

  /// The paths of fields that differ, including those inside maps that both have.
  private static func differences(
    _ before: [String: Ondol.Value], _ after: [String: Ondol.Value], _ names: [String]
  ) -> [String] {
    var paths: [String] = []
    for name in Set(before.keys).union(after.keys).sorted() {
      guard before[name] != after[name] else { continue }
      let path = names + [name]
      if path.count < 20, let old = before[name]?.map, let new = after[name]?.map {
        paths += differences(old, new, path)
      } else {
        paths.append("\(FieldPath(path))")
      }
    }
    return Array(paths.prefix(1_000))
  }
}
