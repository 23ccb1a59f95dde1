// What the change feed delivers for one commit.

internal import OndolEngine

/// The changes of one commit.
public struct DatabaseChange: Sendable, Hashable {
  /// A document before and after the commit.
  public struct Document: Sendable, Hashable {
    /// The document before the commit; a snapshot that does not `exist` when there was none.
    public let before: DocumentSnapshot
    /// The document after the commit; a snapshot that does not `exist` when it was deleted.
    public let after: DocumentSnapshot

    /// Where the document is.
    public var reference: DocumentReference { after.reference }

    /// What happened to it.
    public var type: DocumentChange.Kind {
      if !before.exists { return .added }
      return after.exists ? .modified : .removed
    }
  }

  /// An object in storage before and after the commit.
  public struct Object: Sendable, Hashable {
    /// Where the object is.
    public let reference: StorageReference
    /// The object before the commit; nil when there was none.
    public let before: StorageMetadata?
    /// The object after the commit; nil when it was deleted.
    public let after: StorageMetadata?
  }

  /// A renamed collection. For one below documents, the paths have its collection ids without
  /// documents' ids: all such collections were renamed.
  public struct RenamedCollection: Sendable, Hashable {
    /// The old name, as `users/posts`.
    public let from: String
    /// The new name.
    public let to: String
  }

  /// The commit, from which a feed can continue later.
  public let token: ChangeToken
  /// The time of the commit.
  public let time: Timestamp
  /// The documents that it changed, in the order in which they were first written.
  public let documents: [Document]
  /// The objects in storage that it changed.
  public let objects: [Object]
  /// The root collection that the commit dropped with everything below it, if it did. Its documents
  /// are not among `documents`.
  public let droppedCollection: String?
  /// The collection that the commit renamed with everything below it, if it did. Its documents are
  /// not among `documents`, and keep their versions.
  public let renamedCollection: RenamedCollection?
  /// Who made the commit: `.server` when synchronisation brought it.
  public let origin: ChangeOrigin

  init(
    token: ChangeToken, time: Timestamp, documents: [Document], objects: [Object],
    droppedCollection: String?, renamedCollection: RenamedCollection?,
    origin: ChangeOrigin = .local
  ) {
    self.token = token
    self.time = time
    self.documents = documents
    self.objects = objects
    self.droppedCollection = droppedCollection
    self.renamedCollection = renamedCollection
    self.origin = origin
  }

  /// The version that the commit gave to its documents.
  public var version: Version { Version(rawValue: token.point.sequence.rawValue) }
}

extension DatabaseChange {
  /// Reads a commit's records in the log; nil when it changed no document, or only documents that
  /// are unreadable because the keys of their collections are gone.
  init?(_ commit: LoggedCommit, in database: Database) throws(DatabaseError) {
    guard let content = try Self.content(of: commit, in: database) else { return nil }
    let token = ChangeToken(identity: database.engine.identity, point: commit.point)
    let time = Timestamp(unchecked: commit.point.time)
    switch content {
    case .documents(let placed):
      let documents = placed.map(\.document)
      guard !documents.allSatisfy(\.isRecord) else { return nil }
      self.init(
        token: token, time: time,
        documents: documents.filter { $0.storagePath == nil && !$0.isRecord },
        objects: documents.compactMap { Object($0, in: database) }, droppedCollection: nil,
        renamedCollection: nil, origin: ChangeOrigin(documents))
    case .dropped(let root):
      self.init(
        token: token, time: time, documents: [], objects: [], droppedCollection: root,
        renamedCollection: nil)
    case .renamed(let renaming):
      self.init(
        token: token, time: time, documents: [], objects: [], droppedCollection: nil,
        renamedCollection: RenamedCollection(renaming))
    }
  }
}

extension ChangeOrigin {
  /// Who made a commit with these documents.
  fileprivate init(_ documents: [DatabaseChange.Document]) {
    var authorship = SyncRows.Authorship()
    for document in documents {
      guard let root = try? document.reference.place.get().segments[0], SyncRows.isRoot(root)
      else { continue }
      authorship.note(rowIn: root, isNew: !document.before.exists)
    }
    self = authorship.origin
  }
}

extension DatabaseChange {
  /// The contents of all records of a commit; nil when it has none.
  private static func content(
    of commit: LoggedCommit, in database: Database
  ) throws(DatabaseError) -> ChangeRecord.Content? {
    var documents: [(place: Int, document: Document)] = []
    for annotation in commit.annotations {
      do throws(MalformedBytes) {
        let content = try ChangeRecord.read(annotation, in: database)
        guard case .documents(let more) = content else { return content }
        documents += more
      } catch {
        let number = commit.point.sequence.rawValue
        if error.isOfNewerVersion {
          throw DatabaseError(
            .unimplemented,
            "a newer version wrote what commit \(number) changed: \(error.reason); follow the"
              + " database with that version")
        }
        throw DatabaseError(
          .dataLoss,
          "what commit \(number) changed is damaged in the log at \(error.offset):"
            + " \(error.reason); read everything again and continue from there")
      }
    }
    if commit.annotations.isEmpty { return nil }
    return .documents(documents.sorted { $0.place < $1.place })
  }
}

extension DatabaseChange.RenamedCollection {
  init(_ renaming: CollectionRenaming) {
    from = "\(renaming.pattern)"
    to = "\(renaming.target)"
  }
}

extension DatabaseChange.Document {
  /// Whether it is a record of the database's own work, and not the app's.
  var isRecord: Bool {
    (try? reference.place.get()).map { HiddenRows.isRecord($0) } ?? false
  }

  /// The document's storage path; nil for a document of the app.
  var storagePath: String? { (try? reference.place.get())?.storagePath }
}

extension DatabaseChange.Object {
  /// Returns nil for a document of the app.
  init?(_ document: DatabaseChange.Document, in database: Database) {
    guard let path = document.storagePath else { return nil }
    reference = StorageReference(database: database, path: path)
    before = StorageMetadata(document.before)
    after = StorageMetadata(document.after)
  }
}
