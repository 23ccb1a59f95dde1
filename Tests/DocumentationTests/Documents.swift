// The places of the project's pages and of its build, found from this file's place and from the
// test program's own, so that the tests work from any directory and in any checkout.

import Foundation
import Testing

/// The pages that people read, and their contents.
struct Documents {
  /// The package's root: three above this file.
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The paths of all pages, relative to the root: those at the root, in Docs and in the catalogs
  /// of the documentation compiler.
  static func pages() throws -> [String] {
    let top = try FileManager.default.contentsOfDirectory(atPath: root.path(percentEncoded: false))
      .filter { $0.hasSuffix(".md") }
    let below = ["Docs", "Sources", "Tests"].flatMap { folder -> [String] in
      let place = root.appending(path: folder).path(percentEncoded: false)
      let names = FileManager.default.enumerator(atPath: place)?.allObjects as? [String] ?? []
      return names.filter { $0.hasSuffix(".md") }
        .filter { folder == "Docs" || $0.contains(".docc/") }
        .map { "\(folder)/\($0)" }
    }
    return (top + below).sorted()
  }

  static func text(ofPage page: String) throws -> String {
    try String(contentsOf: root.appending(path: page), encoding: .utf8)
  }

  /// All Swift code of all pages.
  static func scripts() throws -> [PageScript] {
    try pages().flatMap { PageScript.scripts(ofPage: $0, text: try text(ofPage: $0)) }
  }
}

/// The folder into which the package was built, with the modules a page may import.
struct BuildFolder {
  let url: URL

  init() throws {
    let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
    let runner = try #require(Bundle.main.executableURL)
    var place: URL?
    for start in bundles + [runner] {
      var folder = start
      for _ in 0..<5 where place == nil {
        folder.deleteLastPathComponent()
        let module = folder.appending(path: "Modules/Ondol.swiftmodule")
        if FileManager.default.fileExists(atPath: module.path(percentEncoded: false)) {
          place = folder
        }
      }
    }
    url = try #require(place, "no build folder with the module Ondol is above the tests")
  }

  /// The compiler's options for finding the modules, including C modules that the modules import.
  func searchArguments() -> [String] {
    let modules = url.appending(path: "Modules").path(percentEncoded: false)
    return ["-I", modules]
      + moduleMaps().flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
      + Self.headers().flatMap { ["-Xcc", "-I\($0)"] }
  }

  /// The folders of libpq's headers, which are not among the others.
  private static func headers() -> [String] {
    [
      "/usr/include/postgresql", "/opt/homebrew/opt/libpq/include",
      "/usr/local/opt/libpq/include",
    ].filter { FileManager.default.fileExists(atPath: $0) }
  }

  private func moduleMaps() -> [String] {
    let files = FileManager.default
    // The maps of C targets: some have one of their own, and the package manager makes the others.
    let targets = (try? files.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)) ?? []
    // These targets are second builds for a build tool.
    let made = targets.filter {
      $0.pathExtension == "build" && !$0.lastPathComponent.hasSuffix("-tool.build")
    }
    .map { $0.appending(path: "module.modulemap") }
    let written = ["CLZ4", "CLibPQ"].map {
      Documents.root.appending(path: "Sources/\($0)/module.modulemap")
    }
    // The build folder is two levels below the one for all platforms, which has the checkouts.
    let crypto = url.deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "checkouts/swift-crypto/Sources")
    let libraries =
      (try? files.contentsOfDirectory(at: crypto, includingPropertiesForKeys: nil)) ?? []
    let included = libraries.map { $0.appending(path: "include/module.modulemap") }
    return (made + written + included).map { $0.path(percentEncoded: false) }
      .filter { files.fileExists(atPath: $0) }.sorted()
  }
}
