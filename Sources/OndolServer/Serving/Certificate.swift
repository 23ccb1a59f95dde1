// The certificate by which clients know the server, in two files that are read again when they
// change: certificates live for weeks, and servers for longer.

#if Server
  import GRPCNIOTransportHTTP2Posix
  import Logging
  import NIOCertificateReloading
  import Ondol

  extension Server {
    /// The files of a certificate.
    public struct Certificate: Sendable, Hashable {
      /// The file with the certificate and those that sign it, in PEM.
      public var chain: String
      /// The file with its private key, in PEM.
      public var privateKey: String

      /// - Parameters:
      ///   - chain: the file with the certificate and those that sign it, in PEM.
      ///   - privateKey: the file with its private key, in PEM.
      public init(chain: String, privateKey: String) {
        self.chain = chain
        self.privateKey = privateKey
      }

      /// Reads both files.
      ///
      /// Throws `.invalidArgument` when they do not fit.
      func reloader(_ logger: Logger) throws(DatabaseError) -> TimedCertificateReloader {
        let reloader = TimedCertificateReloader(
          refreshInterval: .seconds(60),
          certificateSource: .init(location: .file(path: chain), format: .pem),
          privateKeySource: .init(location: .file(path: privateKey), format: .pem), logger: logger)
        do {
          try reloader.reload()
        } catch {
          throw DatabaseError(.invalidArgument, "the certificate cannot be used: \(error)")
        }
        return reloader
      }
    }
  }
#endif
