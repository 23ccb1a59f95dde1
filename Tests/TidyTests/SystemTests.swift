// The manifest names the oldest of Apple's systems that Ondol supports, and the sources use nothing
// that they lack. The test compares them here, on Linux, where the compiler accepts everything.

import Foundation
import Testing

@Suite(
  .enabled(
    if: SymbolTools.found != nil,
    "needs Linux, Python 3, and a toolchain with swift-symbolgraph-extract and libIndexStore.so"))
struct `The systems that the manifest names` {
  private static let manifest = SourceTree.shared.files.filter { $0.path == "Package.swift" }
    .flatMap(SystemVersion.all).map(\.version)

  @Test(
    .enabled(if: SymbolTools.index != nil, "needs the index that a debug build leaves behind"))
  func `The systems have all that the sources use`() async throws {
    try #require(Self.manifest.count == 5)
    let symbols = try await NewerSymbols(
      index: #require(SymbolTools.index), root: SymbolTools.root, systems: Self.manifest)
    // The fuzzer's own entry is built only with the fuzzer.
    let files = SourceTree.shared.files.filter {
      $0.isSwift && $0.isIn("Sources/", "Tests/", "Fuzz/") && !$0.isIn("Fuzz/Entry/")
    }
    let missed = files.map(\.path).filter { !symbols.files.contains($0) }
    #expect(missed.isEmpty, "not in the index of the build: \(missed)")
    let promise = SystemPromise.kept
    for finding in promise.breaches(in: symbols)
      + (missed.isEmpty ? promise.leftovers(in: symbols) : [])
    {
      let place = SourceLocation(
        fileID: "ondol/\(finding.path)", filePath: finding.path, line: finding.line, column: 1)
      Issue.record("\(finding)", sourceLocation: place)
    }
  }

  @Test func `Missing symbols are found at their uses`() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "ondol-systems-\(UUID().uuidString)").resolvingSymlinksInPath()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let planted = """
      import FoundationEssentials
      func old(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt8 { unsafe bytes.span[0] }
      func new(_ bytes: [UInt8]) -> UInt8 { bytes.span[0] }
      func later(_ random: inout SystemRandomNumberGenerator) -> UUID { .random(using: &random) }
      func unsaid() -> Bool { FileManager.default.fileExists(atPath: "/") }
      """
    let source = folder.appending(path: "Planted.swift")
    try planted.write(to: source, atomically: true, encoding: .utf8)
    let index = folder.appending(path: "index")
    let compiler = try #require(SymbolTools.found).compiler
    let places = [compiler, source, folder.appending(path: "Planted.o"), index]
      .map { $0.path(percentEncoded: false) }
    let (status, output) = try await SymbolTools.run([
      places[0], "-parse-as-library", "-module-name", "Planted", "-c", places[1], "-o", places[2],
      "-index-store-path", places[3],
    ])
    try #require(status == 0, "\(output)")

    let symbols = try await NewerSymbols(index: index, root: folder, systems: Self.manifest)
    #expect(symbols.files == ["Planted.swift"])
    let findings = SystemPromise().breaches(in: symbols).map(\.description)
    #expect(
      Set(findings) == [
        "Planted.swift:3: Array.span asks for macOS 26.0",
        "Planted.swift:4: UUID.random(using:) asks for macOS 15.0 or any later",
        "Planted.swift:5: nothing here says which systems have FileManager: look it up",
        "Planted.swift:5: nothing here says which systems have FileManager.default: look it up",
        "Planted.swift:5: nothing here says which systems have"
          + " FileManager.fileExists(atPath:): look it up",
      ])
  }

  @Test func `Listed symbols are permitted, as long as they are used`() {
    let symbols = NewerSymbols(
      output: """
        file\tSources/A.swift
        newer\tSources/A.swift\t3\tArray.span\tmacOS 26.0
        unstated\tSources/A.swift\t4\tPipe.init()\tPipe
        """)
    var promise = SystemPromise(
      guarded: [.init(path: "Sources/A.swift", symbol: "Array.span", instead: "elements")],
      lookedUp: ["Pipe"])
    #expect(promise.breaches(in: symbols).isEmpty)
    #expect(promise.leftovers(in: symbols).isEmpty)
    promise.guarded.append(
      .init(path: "Sources/B.swift", symbol: "Array.span", instead: "elements"))
    promise.lookedUp.insert("Thread")
    #expect(
      promise.leftovers(in: symbols).map(\.description) == [
        "Sources/B.swift:1: Array.span is used no more: take it off the list",
        "\(SystemPromise.path):1: Thread is used no more: take it off the list",
      ])
  }
}

@Suite struct `The pages and the systems` {
  @Test func `Guarded uses are listed with the older systems' way`() {
    for guarded in SystemPromise.kept.guarded {
      let code = SourceTree.shared.files.first { $0.path == guarded.path }?.code ?? []
      let name = guarded.instead.prefix { $0 != ":" && $0 != "_" }
      #expect(code.contains { $0.contains("#available(macOS 26") }, "\(guarded)")
      #expect(code.contains { $0.contains(name) }, "\(guarded)")
    }
  }

  @Test func `The pages name the manifest's systems`() throws {
    let files = SourceTree.shared.files
    let manifest = try #require(files.first { $0.path == "Package.swift" })
    let systems = Set(SystemVersion.all(in: manifest).map(\.version))
    #expect(systems.count == 5)
    // Decisions also describe the past.
    let pages = files.filter { $0.isIn("README.md", "Sources/Ondol/Ondol.docc/", "Scripts/") }
    #expect(pages.contains { !SystemVersion.all(in: $0).isEmpty })
    for file in pages {
      for (line, version) in SystemVersion.all(in: file) where !systems.contains(version) {
        Issue.record("\(file.finding(line: line, "the manifest does not name \(version)"))")
      }
    }
    let start = try #require(files.first { $0.name == "GettingStarted.md" })
    let text = start.lines.joined(separator: " ")
    for version in systems {
      #expect(text.contains("\(version)"), "GettingStarted.md does not name \(version)")
    }
  }
}
