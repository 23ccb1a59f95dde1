// The bytes of a call's messages. Services see messages and no bytes, so the serializers count
// them, for the call in whose task they work.

#if Server || Sync
  package import GRPCCore
  import GRPCProtobuf
  package import SwiftProtobuf

  /// Counts the bytes of one call's messages, without gRPC's own.
  package protocol MessageMeter: Sendable {
    func countReceived(_ bytes: Int)
    func countSent(_ bytes: Int)
  }

  /// The meter of the call that the current task answers.
  package enum CurrentMeter {
    @TaskLocal package static var value: (any MessageMeter)?
  }

  /// Serializes messages and counts their bytes.
  package struct MeasuredSerializer<Message: SwiftProtobuf.Message>: MessageSerializer {
    package init() {}

    package func serialize<Bytes: GRPCContiguousBytes>(_ message: Message) throws -> Bytes {
      let bytes: Bytes = try ProtobufSerializer<Message>().serialize(message)
      CurrentMeter.value?.countSent(bytes.count)
      return bytes
    }
  }

  /// Deserializes messages and counts their bytes.
  package struct MeasuredDeserializer<Message: SwiftProtobuf.Message>: MessageDeserializer {
    package init() {}

    package func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Message {
      CurrentMeter.value?.countReceived(bytes.count)
      return try ProtobufDeserializer<Message>().deserialize(bytes)
    }
  }

  extension GRPCContiguousBytes {
    fileprivate var count: Int { withUnsafeBytes { $0.count } }
  }
#endif
