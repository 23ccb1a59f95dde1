// Objects as both protocols show them, and metadata as clients send it. Numbers of 64 bits are
// texts there, as everywhere in Google's JSON.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  extension ContentChecksums {
    /// In Base64, as both protocols have it.
    var crc32cText: String { Data(crc32cBytes).base64EncodedString() }
    var md5Text: String { Data(md5).base64EncodedString() }
  }

  extension StorageMetadata {
    /// The name of the custom metadata that has the download tokens, with commas between them. It
    /// is Firebase's, so that administrators can set it by Google Cloud Storage's interface.
    static let tokensName = "firebaseStorageDownloadTokens"

    /// The type of an object that nobody gave one.
    static let usualType = "application/octet-stream"

    /// A client that has one of these may download the object.
    var downloadTokens: [String] {
      get { customMetadata[Self.tokensName]?.split(separator: ",").map(String.init) ?? [] }
      set {
        customMetadata[Self.tokensName] = newValue.isEmpty ? nil : newValue.joined(separator: ",")
      }
    }

    /// Clears all properties.
    mutating func clear() {
      contentType = nil
      cacheControl = nil
      contentDisposition = nil
      contentEncoding = nil
      contentLanguage = nil
      customMetadata = [:]
    }

    /// The custom metadata without what Firebase's clients do not see there.
    var appMetadata: [String: String] { customMetadata.filter { $0.key != Self.tokensName } }

    var crc32cText: String? { checksums?.crc32cText }
    var md5Text: String? { checksums?.md5Text }

    /// The object as Google Cloud Storage shows it.
    ///
    /// - Parameter origin: how the client reaches the server, such as `http://127.0.0.1:9199`.
    func googleResource(in bucket: String, at origin: String) -> Value {
      let path = "b/\(bucket)/o/\(Self.encoded(path))"
      var fields: [String: Value] = [
        "kind": "storage#object", "id": .string("\(bucket)/\(self.path)/\(generation)"),
        "selfLink": .string("\(origin)/storage/v1/\(path)"),
        "mediaLink": .string(
          "\(origin)/download/storage/v1/\(path)?generation=\(generation)&alt=media"),
        "name": .string(self.path), "bucket": .string(bucket),
        "generation": .string("\(generation)"), "metageneration": .string("\(metageneration)"),
        "contentType": .string(contentType ?? Self.usualType), "storageClass": "STANDARD",
        "size": .string("\(size)"), "etag": .string(tag),
      ]
      addFacts(to: &fields)
      if let created { fields["timeStorageClassUpdated"] = .string(Moment.text(created)) }
      if !customMetadata.isEmpty {
        fields["metadata"] = .map(customMetadata.mapValues(Value.string))
      }
      return .map(fields)
    }

    /// The object as Firebase shows it.
    func firebaseResource(in bucket: String) -> Value {
      var fields: [String: Value] = [
        "name": .string(path), "bucket": .string(bucket),
        "generation": .string("\(generation)"), "metageneration": .string("\(metageneration)"),
        "contentType": .string(contentType ?? Self.usualType), "storageClass": "STANDARD",
        "size": .string("\(size)"), "etag": .string(tag),
        "downloadTokens": .string(downloadTokens.joined(separator: ",")),
      ]
      addFacts(to: &fields)
      fields["contentDisposition"] = .string(contentDisposition ?? "inline")
      fields["contentEncoding"] = .string(contentEncoding ?? "identity")
      if !appMetadata.isEmpty { fields["metadata"] = .map(appMetadata.mapValues(Value.string)) }
      return .map(fields)
    }

    private func addFacts(to fields: inout [String: Value]) {
      fields["crc32c"] = crc32cText.map(Value.string)
      fields["md5Hash"] = md5Text.map(Value.string)
      fields["cacheControl"] = cacheControl.map(Value.string)
      fields["contentDisposition"] = contentDisposition.map(Value.string)
      fields["contentEncoding"] = contentEncoding.map(Value.string)
      fields["contentLanguage"] = contentLanguage.map(Value.string)
      fields["timeCreated"] = created.map { .string(Moment.text($0)) }
      fields["updated"] = updated.map { .string(Moment.text($0)) }
    }

    /// A name as a segment of a path.
    static func encoded(_ name: String) -> String {
      PercentCoding.encoded(name) { _, byte in byte == UInt8(ascii: ".") }
    }
  }

  /// Metadata as a client sends it.
  struct SentMetadata: Sendable {
    private let fields: [String: Value]

    static let none = SentMetadata([:])

    init(_ fields: [String: Value]) {
      self.fields = fields
    }

    /// - Throws: for what is no object of JSON.
    init(_ json: [UInt8]) throws(StorageFailure) {
      if json.allSatisfy({ [0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
        self = .none
        return
      }
      guard let value = try? JSONReader.read(json, .plain, numbers: .double), let fields = value.map
      else { throw .invalid("The body is not an object of JSON.") }
      self.fields = fields
    }

    var isEmpty: Bool { fields.isEmpty }

    subscript(name: String) -> Value? { fields[name] }

    /// The name that an upload is for.
    var name: String? { fields["name"]?.string }

    /// The checksums that the bytes must have.
    var expected: ExpectedChecksums {
      ExpectedChecksums(crc32c: fields["crc32c"]?.string, md5: fields["md5Hash"]?.string)
    }

    /// Changes the properties that the client sent, and no others.
    ///
    /// - Parameter isFirebase: whether the client does not see the download tokens, so that they
    ///   stay as they are.
    func apply(
      to metadata: inout StorageMetadata, isFirebase: Bool
    ) throws(StorageFailure) {
      try set(&metadata.contentType, "contentType")
      try set(&metadata.cacheControl, "cacheControl")
      try set(&metadata.contentDisposition, "contentDisposition")
      try set(&metadata.contentEncoding, "contentEncoding")
      try set(&metadata.contentLanguage, "contentLanguage")
      guard let sent = fields["metadata"] else { return }
      var custom = metadata.customMetadata
      if sent.isNull {
        custom = isFirebase ? custom.filter { $0.key == StorageMetadata.tokensName } : [:]
      } else if let entries = sent.map {
        for (name, value) in entries where !(isFirebase && name == StorageMetadata.tokensName) {
          guard value.isNull || value.string != nil else {
            throw .invalid("metadata.\(name) is not a text")
          }
          custom[name] = value.string
        }
      } else {
        throw .invalid("metadata is not a map")
      }
      metadata.customMetadata = custom
    }

    private func set(_ property: inout String?, _ name: String) throws(StorageFailure) {
      guard let value = fields[name] else { return }
      guard value.isNull || value.string != nil else { throw .invalid("\(name) is not a text") }
      property = value.string.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  /// Checksums that came with an upload.
  struct ExpectedChecksums: Sendable, Hashable {
    /// In Base64.
    var crc32c: String?
    var md5: String?

    init(crc32c: String? = nil, md5: String? = nil) {
      self.crc32c = crc32c
      self.md5 = md5
    }

    /// These, and those of headers.
    func adding(_ headers: [String: String]) -> ExpectedChecksums {
      var all = self
      for part in (headers["x-goog-hash"] ?? "").split(separator: ",") {
        let part = part.drop { $0 == " " }
        if part.hasPrefix("crc32c=") { all.crc32c = String(part.dropFirst("crc32c=".count)) }
        if part.hasPrefix("md5=") { all.md5 = String(part.dropFirst("md5=".count)) }
      }
      all.md5 = headers["content-md5"] ?? all.md5
      return all
    }

    func check(_ content: ObjectContent) throws(StorageFailure) {
      guard let found = content.checksums else { return }
      if let crc32c, Data(base64Encoded: crc32c).map(Array.init) != found.crc32cBytes {
        throw .wrongChecksum
      }
      if let md5, Data(base64Encoded: md5).map(Array.init) != found.md5 { throw .wrongChecksum }
    }
  }
#endif
