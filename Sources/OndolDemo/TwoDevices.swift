// Two devices and a server, and a line that is cut and mended: both devices write while it is away,
// and end equal.

import ArgumentParser
import Foundation
import Ondol

#if Server && Sync
  import Logging
  import OndolServer
  import OndolSync
#endif

struct TwoDevices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "Two devices and a server; the line between them is cut and mended.")

  @Option(name: .customLong("at"), help: "The folder for the databases.")
  var folder = DemoOptions.folder

  #if Server && Sync
    private struct Device: Sendable {
      let name: String
      let database: Database
      let sync: Sync

      var lamp: DocumentReference { database.document("stock/lamp") }

      func tell() async throws {
        let fields = try await lamp.getDocument().data()
        let count = fields["count"]?.integer ?? 0
        let label = fields["label"]?.string ?? "none"
        let photo = fields["photo"]?.isNull == false ? ", with its photo" : ""
        let waiting = sync.currentState.waitingWrites
        Story.show(
          "\(name): \(count) lamps, label \(label)\(photo)"
            + (waiting > 0 ? ", \(Story.count(waiting, "commit")) waiting" : ""))
      }
    }

    func run() async throws {
      let place = { (name: String) in try DemoOptions.database(of: name, in: folder) }
      let served = try await Database.open(at: try place("devices-server"))
      Story.chapter("Two devices and a server", in: try place("devices-server"))
      for item in try await served.collection("stock").getDocuments().documents {
        try await item.reference.delete()
      }
      try await served.document("stock/lamp").setData(["count": 10, "label": "oak"])
      var ports: (documents: Int, storage: Int)?
      var devices: [Device] = []
      ports = try await serving(served, ports) { ports in
        for name in ["phone", "tablet"] {
          devices.append(try await device(name, at: try place("devices-\(name)"), ports))
        }
        Story.say("Each device follows the server's stock, and has it:")
        for device in devices { try await device.tell() }
        Story.say("The phone sells one, and the tablet sees it:")
        try await devices[0].lamp.updateData(["count": FieldValue.increment(-1)])
        for try await lamp in devices[1].lamp.snapshots where lamp["count"] as Int? == 9 { break }
        try await devices[1].tell()
      }
      Story.say("The line is cut. Both go on selling, and the tablet changes the label:")
      try await devices[0].lamp.updateData(["count": FieldValue.increment(-2)])
      let photo = try await devices[0].database.storage.put([UInt8](repeating: 7, count: 20_000))
      try await devices[0].lamp.updateData(["photo": photo])
      try await devices[1].lamp.updateData(["count": FieldValue.increment(-3), "label": "walnut"])
      for device in devices { try await device.tell() }
      _ = try await serving(served, ports) { _ in
        Story.say("The line is mended. Nothing is lost, and nothing counts twice:")
        for device in devices {
          await device.sync.reconnect()
          try await device.sync.settle()
        }
        for device in devices {
          for try await lamp in device.lamp.snapshots
          where lamp["count"] as Int? == 4 && lamp["photo"] as BlobReference? != nil {
            break
          }
          try await device.tell()
        }
        let bytes = try await devices[1].database.storage.data(of: photo)
        Story.say(
          "The tablet reads the photo, which comes from the server: \(Story.bytes(bytes.count)).")
      }
      Story.elsewhere(
        "a cache without indexes, a queue of requests, and a table of conflicts to resolve.")
      for device in devices {
        await device.sync.stop()
        try await device.database.close()
      }
      try await served.close()
    }

    private func device(
      _ name: String, at place: String, _ ports: (documents: Int, storage: Int)
    ) async throws -> Device {
      let database = try await Database.open(at: place)
      let server = try SyncServer.ondol(
        "http://127.0.0.1:\(ports.documents)", project: "demo",
        storage: "http://127.0.0.1:\(ports.storage)")
      let sync = try await Sync(database, with: server)
      try await sync.follow(database.collection("stock"), existing: .replace)
      try await sync.settle()
      return Device(name: name, database: database, sync: sync)
    }

    /// Serves while `body` runs, on the ports of the last time if there were any.
    private func serving(
      _ database: Database, _ ports: (documents: Int, storage: Int)?,
      _ body: ((documents: Int, storage: Int)) async throws -> Void
    ) async throws -> (documents: Int, storage: Int) {
      var options = Server.Options()
      (options.firestorePort, options.storagePort) = (ports?.documents ?? 0, ports?.storage ?? 0)
      options.grace = .milliseconds(100)
      options.logger = Logger(label: "demo") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let (addresses, listens) = AsyncStream.makeStream(of: Server.Addresses.self)
      let running = Task { try await server.run { listens.yield($0) } }
      defer { server.shutDown() }
      var iterator = addresses.makeAsyncIterator()
      func port(_ address: String?) -> Int? {
        address?.split(separator: ":").last.flatMap { Int($0) }
      }
      guard let found = await iterator.next(), let documents = port(found.firestore),
        let storage = port(found.storage)
      else { throw ValidationError("the server does not listen") }
      try await body((documents, storage))
      server.shutDown()
      try await running.value
      return (documents, storage)
    }
  #else
    func run() async throws {
      throw ValidationError(
        "this build has no server or no devices; Scripts/demo devices builds them")
    }
  #endif
}
