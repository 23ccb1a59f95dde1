// Programs of this package that run beside a test, and that the test may kill.

import Foundation
import Testing
import OndolPlatform

/// A program of this package that runs beside the test.
struct Child {
  private let process = Process()
  private let output = Pipe()

  init(_ name: String, _ arguments: [String]) throws {
    process.executableURL = try Self.product(name)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// Programs are in the directory of the test's own.
  static func product(_ name: String) throws -> URL {
    var directory = try #require(Bundle.main.executableURL)
    for _ in 0..<5 {
      directory.deleteLastPathComponent()
      let url = directory.appendingPathComponent(name)
      if FileManager.default.isExecutableFile(atPath: url.path) { return url }
    }
    throw MissingProduct(name: name)
  }

  struct MissingProduct: Error {
    var name: String
  }

  struct NotKilled: Error {
    var status: Int32
    var output: String
  }

  /// Reads until `count` lines have arrived that `acknowledgement` understands, kills the process,
  /// and returns the last one. Throws if the process ended by itself, in another way than by a
  /// signal.
  func kill(
    after count: Int, _ acknowledgement: (Substring) -> Int?
  ) throws -> Int? {
    var text = ""
    var isKilled = false
    func acknowledgements() -> [Int] {
      text[..<(text.lastIndex(of: "\n") ?? text.startIndex)].split(separator: "\n")
        .compactMap(acknowledgement)
    }
    repeat {
      if !isKilled, acknowledgements().count >= count {
        _ = Foundation.kill(process.processIdentifier, SIGKILL)
        isKilled = true
      }
      // Output before the end is read as well, because it was promised.
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { break }
      text += String(decoding: data, as: UTF8.self)
    } while true
    process.waitUntilExit()
    guard process.terminationReason == .uncaughtSignal, process.terminationStatus == SIGKILL else {
      throw NotKilled(status: process.terminationStatus, output: text)
    }
    return acknowledgements().last
  }
}

/// Gives the test a directory of its own, and removes it afterwards.
func withTemporaryDirectory(_ body: (URL) async throws -> Void) async throws {
  let directory = FileManager.default.temporaryDirectory
    .appendingPathComponent("ondol-kill-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }
  try await body(directory)
}
