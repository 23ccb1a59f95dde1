// The measured stores, with one protocol: Ondol's storage through its public interface, and the
// peers.

import Foundation
import Ondol
import Peers

/// A store of named bytes.
protocol BlobStore: SendableMetatype {
  static var name: String { get }
  static func open(in directory: String) async throws -> any BlobStore

  /// Returns when the bytes survive a power cut.
  func put(_ bytes: [UInt8], _ name: String) async throws
  /// Returns the number of bytes.
  func get(_ name: String) async throws -> Int
  /// Puts chunks and gets them back piece by piece. Returns the number of bytes; nil if the store
  /// only puts and gets whole contents.
  func stream(_ chunks: NoiseChunks, _ name: String) async throws -> Int?
  func close() async throws
}

extension BlobStore {
  func stream(_ chunks: NoiseChunks, _ name: String) async throws -> Int? { nil }
}

let engines: [any BlobStore.Type] = {
  var engines: [any BlobStore.Type] = [OndolBlobs.self, PlainFiles.self]
  #if PEER_SQLITE
    engines.append(SQLiteRows.self)
  #endif
  return engines
}()

struct OndolBlobs: BlobStore {
  static let name = "Ondol"
  let database: Database

  static func open(in directory: String) async throws -> any BlobStore {
    OndolBlobs(database: try await Database.open(at: directory + "/blobs.ondol"))
  }

  func put(_ bytes: [UInt8], _ name: String) async throws {
    try await database.storage.reference(withPath: name).putData(bytes)
  }

  func get(_ name: String) async throws -> Int {
    try await database.storage.reference(withPath: name).data(maxSize: .max).count
  }

  func stream(_ chunks: NoiseChunks, _ name: String) async throws -> Int? {
    let object = database.storage.reference(withPath: name)
    try await object.put(chunks)
    var count = 0
    for try await piece in object.bytes() { count += piece.count }
    return count
  }

  func close() async throws { try await database.close() }
}

struct PlainFiles: BlobStore {
  static let name = "plain files"
  let files: FileBlobs

  static func open(in directory: String) async throws -> any BlobStore {
    PlainFiles(files: try FileBlobs(directory))
  }

  func put(_ bytes: [UInt8], _ name: String) async throws { try files.put(bytes, name) }
  func get(_ name: String) async throws -> Int { try files.get(name).count }
  func close() async throws {}
}

#if PEER_SQLITE
  struct SQLiteRows: BlobStore {
    static let name = "SQLite"
    let rows: SQLiteBlobs

    static func open(in directory: String) async throws -> any BlobStore {
      SQLiteRows(rows: try SQLiteBlobs(directory))
    }

    func put(_ bytes: [UInt8], _ name: String) async throws { try rows.put(bytes, name) }
    func get(_ name: String) async throws -> Int { try rows.get(name).count }
    func close() async throws {}
  }
#endif
