// `ondol new`: the files have the new name, nothing is overwritten, and the command asks for what
// it cannot know. Scripts/test --template checks that the package builds and passes its tests.

import Foundation
import Testing

@Suite struct `ondol new` {
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
  }

  private func text(_ path: String) throws -> String {
    try String(contentsOfFile: scratch.path("corner shop/\(path)"), encoding: .utf8)
  }

  @Test func `A package is written under its directory's name`() async throws {
    let result = try await scratch.ondol("new", scratch.path("corner shop"))
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.lines.count > 8)
    let manifest = try text("Package.swift")
    #expect(manifest.contains("name: \"corner shop\""))
    // The clone that the tool was built in.
    let place = try #require(manifest.firstMatch(of: /name: "ondol", path: "([^"]+)"/))
    let engine = "\(place.output.1)/Sources/OndolEngine"
    #expect(FileManager.default.fileExists(atPath: engine))
    #expect(try text(".gitignore").contains(".ondol/"))
    #expect(try text("Sources/App/App.swift").contains("@main"))
    #expect(try text("Tests/AppTests/LiveTests.swift").contains("OndolTestKit"))
  }

  @Test func `A URL stands in the manifest as it is`() async throws {
    let url = "https://example.com/a \"b\"/ondol"
    let result = try await scratch.ondol("new", scratch.path("corner shop"), "--ondol", url)
    #expect(result.status == 0, "\(result.messages)")
    let literal = #".package(url: "https://example.com/a \"b\"/ondol", from: "0.1.0")"#
    #expect(try text("Package.swift").contains(literal))
  }

  @Test func `Nothing is written over, or without a repository`() async throws {
    let place = scratch.path("corner shop")
    let wrong = try await scratch.ondol("new", place, "--ondol", scratch.path("nowhere"))
    #expect(wrong.status == 3)
    #expect(!FileManager.default.fileExists(atPath: place))
    #expect(try await scratch.ondol("new", place).status == 0)
    let before = try text("Package.swift")
    let again = try await scratch.ondol("new", place)
    #expect(again.status == 1)
    #expect(again.messages.contains("is not empty"))
    #expect(try text("Package.swift") == before)
  }
}
