// What all fuzz targets share: what a target is, which there are, and how a broken promise is told.
// The same bodies run in two places: under libFuzzer (Fuzz/Entry), which thinks of inputs, and in
// an ordinary test (Fuzz/Replay), which tries the inputs that were kept.

import Foundation
package import OndolEngine

/// One thing that is tried with any bytes.
package protocol FuzzTarget: SendableMetatype {
  /// What it is called on the command line, and the name of its folder in the corpus.
  static var name: String { get }

  /// Tries `input`. Whatever does not hold is told with `demand`.
  static func run(_ input: [UInt8])

  /// Inputs to begin from: sound ones, so that the fuzzer need not invent them. The same ones at
  /// each call.
  static func seeds() -> [[UInt8]]
}

/// All targets.
package enum FuzzTargets {
  package static let all: [any FuzzTarget.Type] = always + served

  private static let always: [any FuzzTarget.Type] = [
    BlockTarget.self, DocumentTarget.self, KeyTarget.self, LogTarget.self, ManifestTarget.self,
    QueryTarget.self, ValueFileTarget.self, LZ4Target.self, PathsTarget.self, TreeTarget.self,
    PackTarget.self, LifeTarget.self, JSONTarget.self, WhereTarget.self, DumpTarget.self,
    RequestTarget.self, WordsTarget.self, SealedTarget.self,
  ]

  /// Those that need the trait Server.
  #if Server
    private static let served: [any FuzzTarget.Type] = [
      FirestoreRequestTarget.self, RulesTarget.self,
    ]
  #else
    private static let served: [any FuzzTarget.Type] = []
  #endif

  package static func named(_ name: String) -> (any FuzzTarget.Type)? {
    all.first { $0.name == name }
  }
}

/// What is being tried, for whoever reads why a process ended.
package let underTrial = Guarded("")

/// Ends the process, which the fuzzer takes for a find, unless `condition` holds.
package func demand(
  _ condition: Bool, _ message: @autoclosure () -> String, file: String = #fileID,
  line: UInt = #line
) {
  guard !condition else { return }
  let place = underTrial.withLock { $0 }
  let text = "\(file):\(line): \(place): \(message())\n"
  FileHandle.standardError.write(Data(text.utf8))
  preconditionFailure("a promise is broken")
}
