// The shared parts of all fuzz targets: the protocol of a target, the list of targets, and the
// report of a broken promise. The same bodies run in two places: under libFuzzer (Fuzz/Entry),
// which invents inputs, and in an ordinary test (Fuzz/Replay), which replays the kept inputs.

import Foundation
package import OndolEngine

/// A test that takes any bytes.
package protocol FuzzTarget: SendableMetatype {
  /// The name on the command line, and of the folder in the corpus.
  static var name: String { get }

  /// Tries `input`. Reports a broken promise with `demand`.
  static func run(_ input: [UInt8])

  /// The first inputs: sound ones, so that the fuzzer need not invent them. They are the same at
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

  /// The targets that need the trait Server.
  #if Server
    private static let served: [any FuzzTarget.Type] = [
      FirestoreRequestTarget.self, RulesTarget.self, StorageRequestTarget.self, TokenTarget.self,
      WebSocketTarget.self,
    ]
  #else
    private static let served: [any FuzzTarget.Type] = []
  #endif

  package static func named(_ name: String) -> (any FuzzTarget.Type)? {
    all.first { $0.name == name }
  }
}

/// The running test, to explain why a process ended.
package let underTrial = Guarded("")

/// Ends the process unless `condition` holds. The fuzzer takes that end for a find.
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
