// The files of `ondol new`. They come from Docs/Templates/service, which the C compiler embeds.

import COndolFiles

/// The files of the template by their paths.
enum TemplateFiles {
  static let service: [String: String] = {
    var files: [String: String] = [:]
    var index = 0
    // Path and text are null-terminated and exist as long as the program: COndolFiles.h.
    while let file = unsafe ondol_template_file(index)?.pointee {
      files[unsafe String(cString: file.name)] = unsafe String(cString: file.text)
      index += 1
    }
    return files
  }()
}
