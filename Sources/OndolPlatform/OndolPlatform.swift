// The C library, which every platform has under another name, as one module: who calls the system
// imports this, and the names stand here alone.

#if canImport(Glibc)
  @_exported public import Glibc
#elseif canImport(Musl)
  @_exported public import Musl
#else
  @_exported public import Darwin
#endif
