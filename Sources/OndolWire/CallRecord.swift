// What the log says of a call and only its work can tell: the bytes of its messages, and who makes
// it. Services see messages and no bytes, so the serializers count them, for the call in whose task
// they work.

#if Server
  package import GRPCCore
  import GRPCProtobuf
  package import SwiftProtobuf
  import Synchronization

  /// What is known of one call.
  package final class CallRecord: Sendable {
    private struct State: Sendable {
      var received = 0
      var sent = 0
      var caller: String?
    }

    /// The call that the current task answers.
    @TaskLocal package static var current: CallRecord?

    private let state = Mutex(State())

    package init() {}

    /// Bytes of messages, without gRPC's own.
    package var received: Int { state.withLock(\.received) }
    package var sent: Int { state.withLock(\.sent) }

    /// `admin`, `nobody`, or a person's uid; nil if the call ended before that was known.
    package var caller: String? { state.withLock(\.caller) }

    package func note(caller: String) { state.withLock { $0.caller = caller } }

    fileprivate func receive(_ count: Int) { state.withLock { $0.received += count } }

    fileprivate func send(_ count: Int) { state.withLock { $0.sent += count } }
  }

  /// Serializes messages and counts their bytes.
  package struct MeasuredSerializer<Message: SwiftProtobuf.Message>: MessageSerializer {
    package init() {}

    package func serialize<Bytes: GRPCContiguousBytes>(_ message: Message) throws -> Bytes {
      let bytes: Bytes = try ProtobufSerializer<Message>().serialize(message)
      CallRecord.current?.send(bytes.count)
      return bytes
    }
  }

  /// Deserializes messages and counts their bytes.
  package struct MeasuredDeserializer<Message: SwiftProtobuf.Message>: MessageDeserializer {
    package init() {}

    package func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Message {
      CallRecord.current?.receive(bytes.count)
      return try ProtobufDeserializer<Message>().deserialize(bytes)
    }
  }

  extension GRPCContiguousBytes {
    fileprivate var count: Int { withUnsafeBytes { $0.count } }
  }
#endif
