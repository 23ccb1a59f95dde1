// One database, two kinds of programs. Google's client for Python writes through the server in this
// process, and a Swift listener in the same process receives it at once. The client's own listener
// receives what Swift writes.

import ArgumentParser
import Foundation
import Ondol

#if Server
  import Logging
  import OndolServer
#endif

struct Clients: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Google's Firestore client for Python and a listener in Swift on one database.")

  @OptionGroup var options: DemoOptions

  @Option(help: "A Python with google-cloud-firestore.")
  var python = "python3"

  #if Server
    func run() async throws {
      let place = try options.database(of: "clients")
      Story.chapter("Google's client and Swift on one database", in: place)
      let database = try await Database.open(at: place)
      for item in try await database.collection("items").getDocuments().documents {
        try await item.reference.delete()
      }
      var serving = Server.Options()
      serving.firestorePort = 0
      serving.logger.logLevel = .critical
      let server = Server(database, options: serving)
      try await withThrowingTaskGroup(of: Void.self) { group in
        let (addresses, listens) = AsyncStream.makeStream(of: String.self)
        group.addTask { try await server.run { listens.yield($0.firestore) } }
        group.addTask {
          for await address in addresses {
            try await talk(database, at: address)
            break
          }
          server.shutDown()
        }
        try await group.waitForAll()
      }
      try await database.close()
    }

    /// Lets the client write, and answers it.
    private func talk(_ database: Database, at address: String) async throws {
      Story.say("export FIRESTORE_EMULATOR_HOST=\(address), and Google's client writes two items:")
      let client = try start(at: address)
      var isAnswered = false
      for try await snapshot in database.collection("items").snapshots {
        for change in snapshot.documentChanges {
          Story.show("Swift sees \(change.type) \(change.document)")
        }
        if snapshot.documents.contains(where: { $0.documentID == "vase" }) { break }
        guard snapshot.documents.count == 2, !isAnswered else { continue }
        isAnswered = true
        Story.say("Swift writes one, and the client's listener sees it:")
        try await database.document("items/vase").setData(["name": "화병", "price": 25])
      }
      client.waitUntilExit()
      guard client.terminationStatus == 0 else {
        throw ValidationError(
          "\(python) has no google-cloud-firestore; Scripts/demo clients installs it")
      }
    }

    private func start(at address: String) throws -> Process {
      let client = Process()
      client.executableURL = URL(filePath: "/usr/bin/env")
      client.arguments = [python, "-c", Self.program]
      client.environment = ProcessInfo.processInfo.environment.merging(
        ["FIRESTORE_EMULATOR_HOST": address]) { $1 }
      try client.run()
      return client
    }

    /// The client's program. Its output appears beside Swift's.
    private static let program = """
      import threading
      from google.auth.credentials import AnonymousCredentials
      from google.cloud import firestore

      client = firestore.Client(project="demo", credentials=AnonymousCredentials())
      items = client.collection("items")
      is_answered = threading.Event()

      def heard(documents, changes, time):
          for change in changes:
              print("     Python sees", change.type.name.lower(), change.document.id,
                    change.document.to_dict(), flush=True)
              if change.document.id == "vase":
                  is_answered.set()

      watch = items.on_snapshot(heard)
      items.document("lamp").set({"name": "라탄 조명", "price": 39})
      items.document("chair").set({"name": "원목 의자", "price": 82})
      is_answered.wait(30)
      watch.unsubscribe()
      """
  #else
    func run() async throws {
      throw ValidationError("this build has no server; Scripts/demo clients builds one with it")
    }
  #endif
}
