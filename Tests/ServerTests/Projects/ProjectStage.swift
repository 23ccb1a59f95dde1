// What the tests of projects and exports share: folders that are removed with the test, and
// databases that two exports are compared by.

#if Server
  import Foundation
  import OndolAccounts
  import OndolJSON
  import OndolTestKit

  @testable import Ondol
  @testable import OndolServer

  /// A folder of files for one test.
  final class TestFolder: Sendable {
    let path: String

    init() throws {
      path = FileManager.default.temporaryDirectory
        .appending(path: "ondol-project-\(UUID().uuidString)").path(percentEncoded: false)
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ text: String) throws { try write(name, bytes: Array(text.utf8)) }

    func write(_ name: String, bytes: [UInt8]) throws {
      let place = URL(filePath: "\(path)/\(name)")
      try FileManager.default.createDirectory(
        at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(bytes).write(to: place)
    }

    func bytes(_ name: String) throws -> [UInt8] {
      Array(try Data(contentsOf: URL(filePath: "\(path)/\(name)")))
    }
  }

  extension Database {
    /// A new database on a device of its own.
    static func onDevice(seed: UInt64 = 1) async throws -> Database {
      let clock = ManualClock()
      return try await Database.open(
        at: "app.ondol", on: SimulatedDevice(seed: seed, clock: clock))
    }

    /// Everything that an export keeps, as lines of text.
    func exported() async throws -> [String] {
      var lines: [String] = []
      let reader = try DumpReader(self)
      for collection in try await reader.collections() where collection.isOfApp {
        for document in try await reader.documents(of: collection, after: nil, limit: .max)
          .documents
        {
          lines.append(JSONWriter.line(id: document.name, document.fields, .canonical))
        }
      }
      lines.append(JSONWriter.line(try await tree.getData().exportedValue, .canonical))
      for object in try await storage.page(of: ObjectListing()).items {
        let bytes = try await storage.reference(withPath: object.path).data(maxSize: 1 << 20)
        lines.append(
          "\(object.path) \(object.contentType ?? "") \(object.cacheControl ?? "")"
            + " \(object.customMetadata.sorted { $0.key < $1.key }) \(Array(bytes))")
      }
      for account in try await Account.page(of: self, after: nil, limit: 1_000) {
        lines.append(
          "\(account.uid) \(account.email ?? "") \(account.isEmailVerified) \(account.isDisabled)"
            + " \(account.displayName ?? "") \(account.phoneNumber ?? "") \(account.identities)"
            + " \(account.customClaims.json) \(account.creationTime)")
      }
      return lines
    }
  }
#endif
