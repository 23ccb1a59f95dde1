// `ondol export --firebase`: everything in the form of Firebase's emulators, which OndolServer has.

import Foundation
import Ondol
import OndolJSON
import OndolServer
import OndolTerminal

enum FirebaseExport {
  /// Writes an export, and says what it has.
  static func write(
    _ database: Database, of project: String, to path: String, _ globals: GlobalOptions
  ) async throws {
    #if Server
      do {
        let writer = try EmulatorExportWriter(project: project)
        let counts = try await globals.showing(.things("documents")) { bar in
          try await writer.write(database, to: path) { counts in
            try Interruption.check()
            bar.show(counts.documents, note: counted(counts.objects, "object"))
          }
        }
        globals.say("exported: \(counts.summary)")
        if counts.passwords > 0 {
          globals.say(
            "Passwords of \(counted(counts.passwords, "account")) are left out: no emulator can "
              + "check them.")
        }
      } catch let error as DumpError {
        throw CommandFailure(.failed, "\(error)")
      }
    #else
      throw CommandFailure(
        .failed, "this build of ondol has no --firebase; build it with --traits Server")
    #endif
  }
}

#if Server
  extension ExportCounts {
    /// What there is, for a person.
    var summary: String {
      let parts = [
        counted(documents, "document"), counted(accounts, "account"), counted(objects, "object"),
      ]
      return (parts + (hasTree ? ["the tree"] : [])).joined(separator: ", ")
    }
  }
#endif
