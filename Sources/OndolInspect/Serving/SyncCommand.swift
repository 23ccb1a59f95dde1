// `ondol sync`: keeps a database equal to a server's until it is interrupted, and reports events.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolSync
import OndolTerminal

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Keeps collections of the database equal to a server's.",
    discussion: """
      The server is another `ondol serve`:
        ondol serve server.ondol
        ondol sync one.ondol --with http://127.0.0.1:8080 --follow items --console
      A follow stays after the command has ended; the next one continues. With --console the \
      database can be changed in a browser meanwhile. Prints what the server refuses.
      """)

  @OptionGroup var database: DatabaseArgument

  @Option(name: .customLong("with"), help: "The server's address, such as https://shop.example.")
  var server: String

  @Option(help: "The project, which the server's accounts and rules know.")
  var project = "demo"

  @Option(help: "A collection to keep equal; may be repeated.")
  var follow: [String] = []

  @Option(help: "A collection to keep equal no longer; may be repeated.")
  var unfollow: [String] = []

  @Option(
    help: "What happens to documents that only this database has: refuse, upload or replace.")
  var existing = Existing.refuse

  @Option(help: "A file with the token of the user, which is read again when it has ended.")
  var tokenFile: String?

  @Flag(help: "End once everything is exchanged.")
  var once = false

  @Flag(help: "Serve the console, and print its address.")
  var console = false

  @OptionGroup var globals: GlobalOptions

  enum Existing: String, ExpressibleByArgument, CaseIterable {
    case refuse, upload, replace
  }

  #if Sync
    func run() async throws {
      try await Interruption.whileWriting {
        do {
          if database.isOnServer {
            throw CommandFailure(.failed, "a device's database is in a directory")
          }
          let server = try SyncServer.ondol(server, project: project)
          let opened = try await Database.open(
            at: database.place, options: Database.Options(encryption: try DatabaseKey.current()))
          do {
            try await synchronise(opened, with: server)
          } catch {
            try? await Self.finish { try await opened.close() }
            throw error
          }
          try await Self.finish { try await opened.close() }
        } catch let error as DatabaseError {
          throw CommandFailure(error)
        }
      }
    }

    private func synchronise(_ opened: Database, with server: SyncServer) async throws {
      let session = tokenFile.map { TokenFile(path: $0) }
      let sync = try await Sync(opened, with: server, as: session)
      for path in unfollow { try await sync.unfollow(opened.collection(path)) }
      for path in follow {
        try await sync.follow(opened.collection(path), existing: existing.meaning)
      }
      let page = console ? try await startConsole(opened) : nil
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await report(sync) }
        group.addTask { await reportRejections(sync) }
        await group.next()
        group.cancelAll()
      }
      await page?.stop()
      await sync.stop()
    }

    private func startConsole(_ opened: Database) async throws -> OndolConsole.Console {
      let console = try await OndolConsole.Console.start(opened, access: .edit)
      try Output.write(Data((console.url + "\n").utf8))
      return console
    }

    /// Says each new state, until all is exchanged if that is the end.
    private func report(_ sync: Sync) async {
      var last = ""
      for await state in sync.states {
        let line = Self.line(state)
        if line != last { globals.say(line) }
        last = line
        if once, state.isSettled { return }
      }
    }

    private func reportRejections(_ sync: Sync) async {
      do {
        for try await rejection in sync.rejections {
          let paths = rejection.documents.map { $0.path.segments.joined(separator: "/") }
          let reason =
            switch rejection.reason {
            case .server(let code, let message): "\(code): \(message)"
            case .relied(let other): "it relies on \(other), which was refused"
            case .copiedDatabase: "this database is a copy, and the other one may have sent it"
            }
          globals.say("refused: \(paths.joined(separator: ", ")): \(reason)")
        }
      } catch {
        globals.say("rejections cannot be followed: \(error)")
      }
    }

    private static func line(_ state: SyncState) -> String {
      var parts = [state.isOnline ? "online" : "offline"]
      if state.waitingWrites > 0 { parts.append("\(state.waitingWrites) waiting") }
      for follow in state.follows {
        var part = "\(follow.collection) \(follow.documentCount)"
        if !follow.isComplete { part += " so far" }
        if let problem = follow.problem { part += " (\(problem.message))" }
        parts.append(part)
      }
      if let problem = state.problem { parts.append(problem.message) }
      return parts.joined(separator: ", ")
    }

    /// Performs the final work even though the command was interrupted.
    private static func finish(
      _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
      try await Task { try await body() }.value
    }
  #else
    func run() async throws {
      throw CommandFailure(
        .failed, "this build of ondol does not synchronise; build it with --traits Sync")
    }
  #endif
}

#if Sync
  extension SyncCommand.Existing {
    fileprivate var meaning: ExistingDocuments {
      switch self {
      case .refuse: .refuse
      case .upload: .upload
      case .replace: .replace
      }
    }
  }

  /// A token in a file, which another program replaces.
  private struct TokenFile: SyncSession {
    let path: String

    func token(isRefused: Bool) async throws -> String? {
      guard let data = FileManager.default.contents(atPath: path),
        let text = String(data: data, encoding: .utf8)
      else { throw CommandFailure(.notFound, "\(path) cannot be read") }
      return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }
#endif
