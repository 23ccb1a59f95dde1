// The lines of `ondol sync --lines`: a program in any language has a device that reads and writes
// without a network. Each line asks for one thing and gets one line back.

import Foundation
import Ondol
import OndolJSON

#if Sync
  import OndolSync

  /// Does what lines ask for.
  struct SyncLines {
    let database: Database
    let sync: Sync

    /// Lines of the standard input, each read when the one before was answered. The sequence ends
    /// when its task is cancelled, whatever the other end of the input does.
    private static func lines() -> (lines: AsyncStream<String>, next: DispatchSemaphore) {
      let (lines, sink) = AsyncStream.makeStream(of: String.self)
      // From 0, because one that is released must not be below what it began with.
      let next = DispatchSemaphore(value: 0)
      next.signal()
      Thread.detachNewThread {
        while true {
          next.wait()
          guard let line = readLine() else { break }
          sink.yield(line)
        }
        sink.finish()
      }
      return (lines, next)
    }

    /// Answers until the input ends.
    func run() async throws {
      let (lines, next) = Self.lines()
      for await line in lines {
        let answer = await answer(line)
        try Output.write(Data((JSONWriter.line(.map(answer)) + "\n").utf8))
        next.signal()
      }
    }

    private func answer(_ line: String) async -> [String: Value] {
      do {
        return try await perform(
          JSONReader.readRequest(Array(line.utf8), documents: Self.documents))
      } catch let error as DatabaseError {
        return ["error": .string(error.message), "code": .string("\(error.code)")]
      } catch {
        return ["error": .string("\(error)")]
      }
    }

    /// The names whose values are fields.
    private static let documents: Set = ["set", "merge", "increment"]

    private struct Wrong: Error, CustomStringConvertible {
      let description: String
    }

    private func perform(_ line: [String: Value]) async throws -> [String: Value] {
      if line["settle"] != nil {
        try await sync.settle()
        return [:]
      }
      guard let name = line["path"]?.string else { throw Wrong(description: "there is no path") }
      let path = try DocumentPath(name)
      if line["get"] != nil {
        let document = try await database.document(path).getDocument()
        return ["document": document.exists ? .map(document.data()) : .null]
      }
      if let files = line["write"]?.map {
        for (field, file) in files {
          try await write(path, field, to: file.string ?? "")
        }
        return [:]
      }
      var write: ClientWrite?
      if let fields = line["set"]?.map { write = ClientWrite(path: path, .replace(fields)) }
      if let fields = line["merge"]?.map {
        write = ClientWrite(path: path, .patch(fields, mask: fields.keys.map { [$0] }))
      }
      if let files = line["put"]?.map {
        var fields: [String: Value] = [:]
        for (field, file) in files { fields[field] = try await put(file.string ?? "") }
        write = ClientWrite(path: path, .patch(fields, mask: fields.keys.map { [$0] }))
      }
      if let fields = line["increment"]?.map {
        write = ClientWrite(
          path: path, .patch([:], mask: []),
          transforms: try fields.map { field, value in
            ClientWrite.Transform(path: [field], try Self.increment(value))
          })
      }
      if line["delete"] != nil { write = ClientWrite(path: path, .delete) }
      guard let write else { throw Wrong(description: "the line asks for nothing") }
      _ = try await database.commit([write])
      return [:]
    }

    private static func increment(_ value: Value) throws -> FieldValue {
      switch value {
      case .integer(let number): .increment(number)
      case .double(let number): .increment(number)
      default: throw Wrong(description: "an increment is a number")
      }
    }

    /// Stores a file's bytes for a document.
    private func put(_ file: String) async throws -> Value {
      guard let bytes = FileManager.default.contents(atPath: file) else {
        throw Wrong(description: "\(file) cannot be read")
      }
      return .blob(try await database.storage.put(bytes))
    }

    private func write(_ path: DocumentPath, _ field: String, to file: String) async throws {
      let document = try await database.document(path).getDocument()
      guard case .blob(let blob)? = document.data()[field] else {
        throw DatabaseError(
          .notFound, "the field has no content", path: "\(path)")
      }
      let bytes = try await database.storage.data(of: blob)
      guard FileManager.default.createFile(atPath: file, contents: bytes) else {
        throw Wrong(description: "\(file) cannot be written")
      }
    }
  }
#endif
