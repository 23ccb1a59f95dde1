// The text files that programs contain. The compiler reads them from their sources with `#embed`,
// so there is no second copy of them and nothing that writes one.

#ifndef CONDOLFILES_H
#define CONDOLFILES_H

#include <stddef.h>

#pragma clang assume_nonnull begin

/// A file in the program's memory, which lives as long as the program.
struct ondol_file {
  const char *name;
  /// UTF-8, with a zero at its end.
  const unsigned char *text;
};

/// A page of the console, from Sources/OndolConsole/Web; null for an index past the last.
const struct ondol_file *_Nullable ondol_console_page(size_t index);

/// A file that `ondol new` writes, from Docs/Templates/service, under its path there; null for an
/// index past the last.
const struct ondol_file *_Nullable ondol_template_file(size_t index);

#pragma clang assume_nonnull end

#endif
