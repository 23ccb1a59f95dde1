// What `Ondol` needs of Foundation, `Data` and `Date` above all, as one module: the small half of
// Foundation where a platform has it apart, and all of it elsewhere.

#if canImport(FoundationEssentials)
  @_exported public import FoundationEssentials
#else
  @_exported public import Foundation
#endif
