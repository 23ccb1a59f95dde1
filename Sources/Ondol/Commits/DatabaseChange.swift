// What the change feed tells of one commit.

internal import OndolEngine

/// What one commit changed.
public struct DatabaseChange: Sendable, Hashable {
  /// A document before and after the commit.
  public struct Document: Sendable, Hashable {
    /// The document as the commit found it; a snapshot that does not `exist` when there was none.
    public let before: DocumentSnapshot
    /// The document as the commit left it; a snapshot that does not `exist` when it is gone.
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
    /// The object as the commit found it; nil when there was none.
    public let before: StorageMetadata?
    /// The object as the commit left it; nil when it is gone.
    public let after: StorageMetadata?
  }

  /// A collection that has another name. For one below documents its collection ids are told
  /// without documents' ids: all of those were renamed.
  public struct RenamedCollection: Sendable, Hashable {
    /// What it was called, as `users/posts`.
    public let from: String
    /// What it is called now.
    public let to: String
  }

  /// The commit, to go on behind it later.
  public let token: ChangeToken
  /// The moment of the commit.
  public let time: Timestamp
  /// The documents that it changed, in the order in which they were first written.
  public let documents: [Document]
  /// The objects in storage that it changed.
  public let objects: [Object]
  /// The collection at the top that was dropped, with everything below it, in a commit that did
  /// that. Its documents are not among `documents`.
  public let droppedCollection: String?
  /// The collection that got another name, with everything below it, in a commit that did that. Its
  /// documents are not among `documents`, and keep their versions.
  public let renamedCollection: RenamedCollection?

  /// The version that the commit gave to what it wrote.
  public var version: Version { Version(rawValue: token.point.sequence.rawValue) }
}

extension DatabaseChange {
  /// What a commit said in the log; nil when it changed no document, or only such as nobody can
  /// read any more because the keys of their collections are gone.
  init?(_ commit: LoggedCommit, in database: Database) throws(DatabaseError) {
    guard let content = try Self.content(of: commit, in: database) else { return nil }
    token = ChangeToken(identity: database.engine.identity, point: commit.point)
    time = Timestamp(unchecked: commit.point.time)
    switch content {
    case .documents(let placed):
      let documents = placed.map(\.document)
      guard !documents.allSatisfy(\.isRecord) else { return nil }
      self.documents = documents.filter { $0.storagePath == nil && !$0.isRecord }
      objects = documents.compactMap { Object($0, in: database) }
      droppedCollection = nil
      renamedCollection = nil
    case .dropped(let root):
      documents = []
      objects = []
      droppedCollection = root
      renamedCollection = nil
    case .renamed(let renaming):
      documents = []
      objects = []
      droppedCollection = nil
      renamedCollection = RenamedCollection(renaming)
    }
  }
}

extension DatabaseChange {
  /// All that the records of a commit say; nil when there is none.
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
            + " \(error.reason); read everything anew and go on from there")
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

  /// The storage path that the document is; nil for a document of the app.
  var storagePath: String? { (try? reference.place.get())?.storagePath }
}

extension DatabaseChange.Object {
  /// Nil for a document of the app.
  init?(_ document: DatabaseChange.Document, in database: Database) {
    guard let path = document.storagePath else { return nil }
    reference = StorageReference(database: database, path: path)
    before = StorageMetadata(document.before)
    after = StorageMetadata(document.after)
  }
}
