// The metadata of a stored object: properties from the app and facts from the database, with
// Firebase Storage's names. A value that remembers its assigned properties, because an update
// changes only these.

/// The metadata of an object in storage.
///
/// Metadata that you create describes a future object; metadata from the database also has the
/// facts about the existing one. As in Firebase Storage, `updateMetadata(_:)` changes the
/// properties that were assigned: an assigned nil clears the property.
public struct StorageMetadata: Sendable, Hashable {
  /// The properties that an app sets, by the names of their fields.
  private(set) var texts: [String: String] = [:]
  private var custom: [String: String] = [:]
  /// The fields that were assigned.
  private(set) var assigned: Set<String> = []

  /// The checksums of the bytes; nil when nobody computed them while the bytes were put.
  package private(set) var checksums: ContentChecksums?

  /// The path of the object; empty in metadata that you create.
  public let path: String
  /// The number of bytes; 0 in metadata that you create.
  public let size: Int
  /// The SHA-256 of the bytes; nil in metadata that you create.
  public let sha256: BlobDigest?
  /// The number of this content at this path, with which puts compare `ifGeneration`. Every put
  /// gives a higher one, whether the bytes differ or not: the commit's time, in microseconds since
  /// 1970. 0 in metadata that you create.
  public let generation: Int64
  /// The number of this metadata within the generation, from 1; 0 in metadata that you create.
  public let metageneration: Int64
  /// When these bytes were put; nil in metadata that you create.
  public let created: Timestamp?
  /// When the bytes were put or the metadata last changed; nil in metadata that you create.
  public let updated: Timestamp?

  /// Describes an object; the database determines properties that are nil.
  ///
  /// - Parameters:
  ///   - contentType: the type of the bytes, as in `image/png`: 1 to 255 bytes of UTF-8.
  ///   - cacheControl: for servers that deliver the object, like the next three.
  ///   - contentDisposition: how to show it.
  ///   - contentEncoding: how it is encoded.
  ///   - contentLanguage: its language.
  ///   - customMetadata: anything that the app stores with the object. All of it together may have
  ///     8 KiB.
  public init(
    contentType: String? = nil, cacheControl: String? = nil, contentDisposition: String? = nil,
    contentEncoding: String? = nil, contentLanguage: String? = nil,
    customMetadata: [String: String]? = nil
  ) {
    path = ""
    size = 0
    sha256 = nil
    generation = 0
    metageneration = 0
    created = nil
    updated = nil
    if let contentType { self.contentType = contentType }
    if let cacheControl { self.cacheControl = cacheControl }
    if let contentDisposition { self.contentDisposition = contentDisposition }
    if let contentEncoding { self.contentEncoding = contentEncoding }
    if let contentLanguage { self.contentLanguage = contentLanguage }
    if let customMetadata { self.customMetadata = customMetadata }
  }

  /// The last name of the path.
  public var name: String { StoragePath.name(of: path) }

  /// The type of the bytes, as in `image/png`. Detected from the first bytes when a put does not
  /// give it.
  public var contentType: String? {
    get { texts[StorageRows.ObjectField.contentType] }
    set { set(StorageRows.ObjectField.contentType, newValue) }
  }

  /// For servers that deliver the object; Ondol only stores it.
  public var cacheControl: String? {
    get { texts[StorageRows.ObjectField.cacheControl] }
    set { set(StorageRows.ObjectField.cacheControl, newValue) }
  }

  /// For servers that deliver the object; Ondol only stores it.
  public var contentDisposition: String? {
    get { texts[StorageRows.ObjectField.contentDisposition] }
    set { set(StorageRows.ObjectField.contentDisposition, newValue) }
  }

  /// For servers that deliver the object; Ondol only stores it.
  public var contentEncoding: String? {
    get { texts[StorageRows.ObjectField.contentEncoding] }
    set { set(StorageRows.ObjectField.contentEncoding, newValue) }
  }

  /// For servers that deliver the object; Ondol only stores it.
  public var contentLanguage: String? {
    get { texts[StorageRows.ObjectField.contentLanguage] }
    set { set(StorageRows.ObjectField.contentLanguage, newValue) }
  }

  /// Anything that the app stores with the object. Assigning replaces all of it.
  public var customMetadata: [String: String] {
    get { custom }
    set {
      custom = newValue
      assigned.insert(StorageRows.ObjectField.custom)
    }
  }

  private mutating func set(_ field: String, _ text: String?) {
    texts[field] = text
    assigned.insert(field)
  }

  /// The bytes as a value for a document's field, which then also holds them; nil in metadata that
  /// you create.
  public var blob: BlobReference? {
    sha256.flatMap {
      try? BlobReference(digest: $0, length: size, contentType: contentType, path: path)
    }
  }

  /// Whether both have the same contents, whatever was assigned.
  public static func == (left: StorageMetadata, right: StorageMetadata) -> Bool {
    left.path == right.path && left.sha256 == right.sha256
      && left.generation == right.generation && left.metageneration == right.metageneration
      && left.texts == right.texts && left.custom == right.custom
  }

  /// Hashes the path and both generations.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(generation)
    hasher.combine(metageneration)
  }
}

// MARK: - As fields

extension StorageMetadata {
  private static let textFields = [
    StorageRows.ObjectField.contentType, StorageRows.ObjectField.cacheControl,
    StorageRows.ObjectField.contentDisposition, StorageRows.ObjectField.contentEncoding,
    StorageRows.ObjectField.contentLanguage,
  ]

  /// The most bytes of UTF-8 in an app's properties of an object, the same limit as Google Cloud
  /// Storage's for custom metadata.
  private static let maximumLength = 8 << 10

  /// The metadata in the fields of a path's document; nil when they are not a path's.
  init?(path: String, _ fields: [String: Value], updated: Timestamp) {
    guard let content = fields[StorageRows.ObjectField.content]?.blob,
      let created = fields[StorageRows.ObjectField.created]?.timestamp,
      let metageneration = fields[StorageRows.ObjectField.metageneration]?.integer
    else { return nil }
    self.path = path
    size = content.length
    sha256 = content.digest
    self.created = created
    generation = created.microsecondsSince1970
    self.metageneration = metageneration
    self.updated = updated
    for field in Self.textFields { texts[field] = fields[field]?.string }
    custom = fields[StorageRows.ObjectField.custom]?.map?.compactMapValues(\.string) ?? [:]
    checksums = fields[StorageRows.ObjectField.checksums]?.bytes
      .flatMap { ContentChecksums(bytes: $0) }
  }

  /// The fields of the document of a path with this content and this metadata.
  ///
  /// - Parameter checksums: those of the content; nil when nobody computed them.
  func fields(
    for content: BlobReference, _ checksums: ContentChecksums? = nil
  ) -> [String: Value] {
    var fields: [String: Value] = texts.mapValues { .string($0) }
    if !custom.isEmpty {
      fields[StorageRows.ObjectField.custom] = .map(custom.mapValues { .string($0) })
    }
    fields[StorageRows.ObjectField.content] = .blob(content)
    fields[StorageRows.ObjectField.checksums] = checksums.map { .bytes($0.bytes) }
    fields[StorageRows.ObjectField.created] = .timestamp(.pending)
    fields[StorageRows.ObjectField.metageneration] = 1
    return fields
  }

  /// The write that changes the assigned properties.
  func update(_ condition: StorageCondition) -> WriteIntent {
    var fields: [String: Value] = [:]
    for field in assigned { fields[field] = texts[field].map { .string($0) } }
    if !custom.isEmpty {
      fields[StorageRows.ObjectField.custom] = .map(custom.mapValues { .string($0) })
    }
    let mask = assigned.sorted().map { [$0] }
    let increment = FieldTransform(
      path: [StorageRows.ObjectField.metageneration], operation: .increment(1))
    return WriteIntent(
      change: .patch(fields: fields, mask: mask), transforms: [increment],
      precondition: .object(condition))
  }

  /// Throws `.invalidArgument` when a property is invalid.
  func check() throws(DatabaseError) {
    if let contentType, let problem = BlobReference.problem(withContentType: contentType) {
      throw DatabaseError(.invalidArgument, "\"\(contentType)\" is not a content type: \(problem)")
    }
    var length = texts.values.reduce(0) { $0 + $1.utf8.count }
    for (name, text) in custom {
      if let problem = ResourceName.problem(withField: name) {
        throw DatabaseError(.invalidArgument, "\"\(name)\" cannot name metadata: \(problem)")
      }
      length += name.utf8.count + text.utf8.count
    }
    guard length <= Self.maximumLength else {
      throw DatabaseError(
        .invalidArgument,
        "the metadata has \(length) bytes, and may have \(Self.maximumLength); put a document"
          + " beside the object")
    }
  }
}

extension StorageCondition {
  /// Throws unless the condition holds for the object's fields, nil when there is none.
  ///
  /// `.notFound` when there must be an object and is none, `.alreadyExists` when there must be none
  /// and is one, `.aborted` when it has changed meanwhile.
  func check(_ fields: [String: Value]?, at path: String) throws(DatabaseError) {
    guard let fields, let found = StorageMetadata(path: path, fields, updated: .pending) else {
      if exists == true { throw Self.missing(path) }
      if let generation, generation != 0 {
        throw DatabaseError(
          .aborted, "the object has been deleted, and generation \(generation) was wanted",
          path: path)
      }
      return
    }
    if exists == false || generation == 0 {
      throw DatabaseError(.alreadyExists, "the object exists already", path: path)
    }
    if let generation, generation != found.generation {
      throw DatabaseError(
        .aborted,
        "the object has generation \(found.generation) and not \(generation): another put came"
          + " first", path: path)
    }
    if let metageneration, metageneration != found.metageneration {
      throw DatabaseError(
        .aborted,
        "the object has metageneration \(found.metageneration) and not \(metageneration): another"
          + " update came first", path: path)
    }
  }
}

extension DocumentPath {
  /// Whether the document is a storage path's, and its fields are not an object's.
  func lacksObject(_ fields: [String: Value]) -> Bool {
    guard let path = storagePath else { return false }
    return StorageMetadata(path: path, fields, updated: .pending) == nil
  }
}
