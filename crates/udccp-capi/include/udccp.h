/* libudccp: congestion-controlled datagrams (DCCP, RFC 4340) for C and C++.
 *
 * Made by cargo test -p udccp-capi --test header from crates/udccp-capi/src: do not edit.
 *
 * Rules that hold for every call:
 *
 * - Calls give 0, a count or a length, or a negative error: UDCCP_EOF, or an errno (-EAGAIN).
 *   udccp_strerror() has its general meaning; udccp_last_error() and udccp_last_advice() say what
 *   happened just now, with names and numbers, for the thread that asks. errno is not touched.
 * - timeout_ms is that of poll(2): negative waits for ever, 0 not at all. What is not done in that
 *   time gives -EAGAIN. A call that waits goes on when a signal was handled; to end it by a signal,
 *   wait on the descriptor with poll(2) and call with 0.
 * - A handle that is NULL gives -EBADF, any other pointer that may not be NULL -EFAULT, a value that
 *   cannot be used -EINVAL. A length of 0 needs no pointer. Texts are UTF-8 and end with a zero byte.
 * - Every handle is freed once, by the _free function of its type, while no other call uses it.
 *   Threads may share sockets, listeners and endpoints.
 * - A defect of the library gives -ENOTRECOVERABLE. It never unwinds into C.
 * - Sockets belong to the process that opened them: in a forked child calls give -EBADF and nothing
 *   is sent; the child frees its copies, or leaves them.
 * - exit() and the return of main() close what is open in order, and wait for it within its time to
 *   linger. _exit() and signals do not. On Windows no end does: call udccp_close_all() before.
 * - Windows has no descriptors to wait on: wait in threads, or call with a time of 0.
 */


#ifndef UDCCP_H
#define UDCCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(_MSC_VER) && !defined(_SSIZE_T_DEFINED)
#define _SSIZE_T_DEFINED
typedef intptr_t ssize_t;
#endif

/* Version of this header; udccp_version() is that of the library. */
#define UDCCP_VERSION "0.1.0"
#define UDCCP_VERSION_MAJOR 0
#define UDCCP_VERSION_MINOR 1
#define UDCCP_VERSION_PATCH 0


/**
 * The connection was closed in order and everything was read. No error, but not a length either:
 * an empty message has the length 0.
 */
#define UDCCP_EOF -4095

/**
 * A full send queue makes `udccp_send` wait (the default).
 */
#define UDCCP_QUEUE_REFUSE 0

/**
 * A full send queue drops the newest message of the lowest priority for one of a higher priority.
 * `udccp_send` waits only where all that wait are as important as the new message.
 */
#define UDCCP_QUEUE_DROP_LOWEST 1

/**
 * Where a connection stands (RFC 4340 section 4.3).
 */
#define UDCCP_CLOSED 0

/**
 * Client: Request sent.
 */
#define UDCCP_REQUEST 1

/**
 * Server: Response sent.
 */
#define UDCCP_RESPOND 2

/**
 * Client: data can flow, though the server may not know it yet.
 */
#define UDCCP_PARTOPEN 3

/**
 * Data flows.
 */
#define UDCCP_OPEN 4

/**
 * Server: waiting for the client's Close.
 */
#define UDCCP_CLOSEREQ 5

/**
 * Close sent.
 */
#define UDCCP_CLOSING 6

/**
 * Over.
 */
#define UDCCP_TIMEWAIT 7

/**
 * Bytes that every message fits in.
 */
#define UDCCP_MAX_MESSAGE 65535

/**
 * A number that is not known, or that the CCID does not have.
 */
#define UDCCP_UNKNOWN UINT64_MAX

/**
 * A message that was accepted will not be delivered; `amount` has its bytes.
 */
#define UDCCP_EVENT_MESSAGE_DROPPED 1

/**
 * What became of the message with this `token`. Each message with a token that was queued has
 * exactly one such event, which is kept until it is read.
 */
#define UDCCP_EVENT_MESSAGE_FATE 2

/**
 * The peer received data, and its application did not have it as it should; `amount` has the
 * messages, and `reason` the Drop Code (RFC 4340 section 11.7).
 */
#define UDCCP_EVENT_PEER_DROPPED 3

/**
 * The peer can hardly keep up: do not send more than now.
 */
#define UDCCP_EVENT_PEER_SLOW 4

/**
 * The largest message that fits in one packet has changed; `amount` has its bytes.
 */
#define UDCCP_EVENT_MAX_MESSAGE_SIZE 5

/**
 * The peer's application reads no more: nothing more can be sent.
 */
#define UDCCP_EVENT_PEER_SHUTDOWN_READ 6

/**
 * The peer's host received it.
 */
#define UDCCP_FATE_ACKNOWLEDGED 1

/**
 * The peer's host received it, and its application did not have it as it should; `amount` has the
 * Drop Code.
 */
#define UDCCP_FATE_PEER_DROPPED 2

/**
 * Congestion control took it for lost. It may have arrived all the same.
 */
#define UDCCP_FATE_LOST 3

/**
 * It never left; `amount` has one of `UDCCP_DROP_EXPIRED` to `UDCCP_DROP_TOO_LARGE`.
 */
#define UDCCP_FATE_DROPPED 4

/**
 * It left, and nothing reported it.
 */
#define UDCCP_FATE_UNKNOWN 5

/**
 * Its lifetime was over.
 */
#define UDCCP_DROP_EXPIRED 1

/**
 * A message of higher priority took its place.
 */
#define UDCCP_DROP_DISPLACED 2

/**
 * The connection ended first.
 */
#define UDCCP_DROP_ENDED 3

/**
 * The peer's application reads no more.
 */
#define UDCCP_DROP_PEER_SHUTDOWN_READ 4

/**
 * The path's packets became too small for it.
 */
#define UDCCP_DROP_TOO_LARGE 5

/**
 * A UDP or raw socket that carries any number of connections: clients that share one port, or a
 * server that connects to others, too. Most programs need none: `udccp_connect` and `udccp_listen`
 * make their own.
 */
typedef struct udccp_endpoint udccp_endpoint;

/**
 * Serves one or more service codes on a port. Threads may share it, as they may a socket.
 */
typedef struct udccp_listener udccp_listener;

/**
 * Settings of connections, and of the UDP or raw socket below. One object may serve any number of
 * calls, which copy what they need; NULL stands for the defaults. To be changed by one thread at a
 * time.
 */
typedef struct udccp_options udccp_options;

/**
 * One connection. Threads may share it: calls of several at once are safe, but for
 * `udccp_socket_free`, which has to be the last one.
 */
typedef struct udccp_socket udccp_socket;

/**
 * A message to send, and how much it matters. A member that is 0 asks for nothing, so that
 * `{ .data = d, .len = n }` is a plain message.
 */
typedef struct udccp_message {
    /**
     * The data, which is copied.
     */
    const void *data;
    /**
     * Its length in bytes.
     */
    size_t len;
    /**
     * Dropped, and counted, if it has not left after this time in microseconds; 0: never.
     */
    uint64_t lifetime_us;
    /**
     * Other than 0: a `udccp_event` with this number says what became of the message.
     */
    uint64_t token;
    /**
     * Larger leaves first; equal priorities keep their order.
     */
    uint32_t priority;
    /**
     * 0; for later versions.
     */
    uint32_t reserved;
} udccp_message;

/**
 * Room for a message, and what was put there.
 */
typedef struct udccp_buffer {
    /**
     * Where the data goes. Set by the caller.
     */
    void *data;
    /**
     * Bytes that have room there. Set by the caller.
     */
    size_t capacity;
    /**
     * Bytes that were written.
     */
    size_t len;
    /**
     * Bytes that the message had. Where that is more than `len`, the rest is lost.
     */
    size_t message_len;
    /**
     * Its checksum says that it was damaged on the way (`udccp_options_set_data_checksum`).
     */
    bool is_corrupt;
} udccp_buffer;

/**
 * A connection in numbers. Counters count from the start. A number that is not known is
 * `UDCCP_UNKNOWN`; `loss_event_rate` is NaN then. Later versions add members at the end.
 */
typedef struct udccp_stats {
    /**
     * CCID of the data that we send.
     */
    uint64_t tx_ccid;
    /**
     * CCID of the data that we receive.
     */
    uint64_t rx_ccid;
    /**
     * Congestion window in packets (CCID 2).
     */
    uint64_t cwnd_packets;
    /**
     * Slow start threshold in packets (CCID 2); unknown while it is arbitrarily high.
     */
    uint64_t ssthresh_packets;
    /**
     * Packets believed to be in the network (CCID 2).
     */
    uint64_t pipe_packets;
    /**
     * Allowed sending rate in bytes per second (CCIDs 3 and 4).
     */
    uint64_t x_bytes_per_sec;
    /**
     * Rate that the peer last reported to receive, in bytes per second (CCIDs 3 and 4).
     */
    uint64_t x_recv_bytes_per_sec;
    /**
     * Loss event rate, 0 to 1 (CCIDs 3 and 4).
     */
    double loss_event_rate;
    /**
     * Smoothed round-trip time in nanoseconds.
     */
    uint64_t srtt_ns;
    /**
     * Variation of the round-trip time in nanoseconds.
     */
    uint64_t rttvar_ns;
    /**
     * Smallest round-trip time seen, in nanoseconds.
     */
    uint64_t min_rtt_ns;
    /**
     * Retransmission (or nofeedback) timeout in nanoseconds.
     */
    uint64_t rto_ns;
    /**
     * Congestion events that cut the window or rate.
     */
    uint64_t congestion_events;
    /**
     * Retransmission (or nofeedback) timeouts.
     */
    uint64_t timeouts;
    /**
     * The largest message in bytes that fits in one packet now.
     */
    uint64_t max_message_size;
    /**
     * Messages that wait to be sent.
     */
    uint64_t send_queue_messages;
    /**
     * Their bytes.
     */
    uint64_t send_queue_bytes;
    /**
     * Messages that wait to be read.
     */
    uint64_t recv_queue_messages;
    /**
     * Their bytes.
     */
    uint64_t recv_queue_bytes;
    /**
     * Packets sent, of every type.
     */
    uint64_t packets_sent;
    /**
     * Valid packets received, of every type.
     */
    uint64_t packets_received;
    /**
     * Messages sent.
     */
    uint64_t messages_sent;
    /**
     * Messages received.
     */
    uint64_t messages_received;
    /**
     * Bytes of messages sent.
     */
    uint64_t bytes_sent;
    /**
     * Bytes of messages received.
     */
    uint64_t bytes_received;
    /**
     * Messages that the peer reported received.
     */
    uint64_t messages_acked;
    /**
     * Messages judged lost on the way.
     */
    uint64_t messages_lost;
    /**
     * Packets received with a congestion mark.
     */
    uint64_t ecn_ce_received;
    /**
     * Messages dropped here because their lifetime was over.
     */
    uint64_t dropped_expired;
    /**
     * Messages dropped here for others of higher priority.
     */
    uint64_t dropped_displaced;
    /**
     * Messages dropped here because the connection ended first.
     */
    uint64_t dropped_unfinished;
    /**
     * Messages dropped here because the path's packets became too small for them.
     */
    uint64_t dropped_too_large;
    /**
     * Messages received and dropped because nobody read them in time.
     */
    uint64_t dropped_recv_queue_full;
    /**
     * Messages received and dropped because they were damaged.
     */
    uint64_t dropped_corrupt;
} udccp_stats;

/**
 * Something that happened to a connection. All but the fate of single messages is in the
 * statistics, too, as a count.
 */
typedef struct udccp_event {
    /**
     * One of `UDCCP_EVENT_...`. Later versions may add some: skip those that you do not know.
     */
    int kind;
    /**
     * `UDCCP_EVENT_MESSAGE_FATE`: one of `UDCCP_FATE_...`. `UDCCP_EVENT_MESSAGE_DROPPED`: one of
     * `UDCCP_DROP_...`. `UDCCP_EVENT_PEER_DROPPED`: the Drop Code. Else 0.
     */
    int reason;
    /**
     * `UDCCP_EVENT_MESSAGE_FATE`: the message.
     */
    uint64_t token;
    /**
     * As the kind says; else 0.
     */
    uint64_t amount;
} udccp_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What the last call of this thread that failed has to say, in words: names and numbers included.
 * Valid until another call of this thread fails. An empty text if none has failed; never NULL.
 */
const char *udccp_last_error(void);

/**
 * What to do about it, as one sentence for a person. Valid as long as `udccp_last_error`.
 */
const char *udccp_last_advice(void);

/**
 * What an error number of this library means, in general. Takes it as the calls give it,
 * negative, or positive as in `errno`. Never NULL, and valid for ever.
 */
const char *udccp_strerror(int error);

/**
 * Version of the library that runs, for example "0.1.0". `UDCCP_VERSION` is that of the header.
 */
const char *udccp_version(void);

/**
 * Reads a service code (RFC 4340 section 8.1.2) in one of its text forms: `SC:echo` (one to four
 * characters), `SC=1717858426` or `SC=x6664707A`.
 *
 * Errors: `-EINVAL`: the text is none of these.
 */
int udccp_service_code(const char *text,
                       uint32_t *code);

/**
 * Writes a service code as text, `SC:echo` where that is possible. Returns its length without the
 * zero byte at its end, as `snprintf` does: where that is `size` or more, the text was cut.
 */
ssize_t udccp_service_text(uint32_t code,
                           char *buffer,
                           size_t size);

/**
 * New settings with the default values; NULL only where memory is exhausted.
 */
struct udccp_options *udccp_options_new(void);

/**
 * Frees settings; connections made with them keep theirs. NULL is allowed.
 */
void udccp_options_free(struct udccp_options *options);

/**
 * One CCID and no other, both ways (default: 2, or 3 or 4 if the peer asks for it alone). Whether
 * the library has it shows when it is used: `-EOPNOTSUPP`.
 */
int udccp_options_set_ccid(struct udccp_options *options,
                           uint8_t ccid);

/**
 * CCIDs for the data that we send, best first (default 2, 3, 4). The listener's order counts.
 *
 * Errors: `-EINVAL`: the list is empty.
 */
int udccp_options_set_tx_ccids(struct udccp_options *options,
                               const uint8_t *first,
                               size_t n);

/**
 * CCIDs for the data that we receive, best first (default 2, 3, 4).
 *
 * Errors: `-EINVAL`: the list is empty.
 */
int udccp_options_set_rx_ccids(struct udccp_options *options,
                               const uint8_t *first,
                               size_t n);

/**
 * Checksum coverage of the data that we send, and the least that we accept, 0 to 15 (default 0:
 * everything; RFC 4340 section 9.2).
 *
 * Errors: `-EINVAL`: above 15.
 */
int udccp_options_set_coverage(struct udccp_options *options,
                               uint8_t send,
                               uint8_t least);

/**
 * What may wait to be sent (default 1 MiB, 512 messages).
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_options_set_send_queue(struct udccp_options *options,
                                 size_t bytes,
                                 size_t messages);

/**
 * What may wait to be read (default 1 MiB, 1024 messages). The peer is slowed down as the queue
 * fills.
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_options_set_recv_queue(struct udccp_options *options,
                                 size_t bytes,
                                 size_t messages);

/**
 * What a full send queue does: `UDCCP_QUEUE_REFUSE` or `UDCCP_QUEUE_DROP_LOWEST`.
 *
 * Errors: `-EINVAL`: neither.
 */
int udccp_options_set_queue_policy(struct udccp_options *options, int number);

/**
 * How long a close may take to deliver what is queued, in milliseconds (default 5000), and how
 * long the end of the process waits for it. 0: a close resets the connection at once.
 */
int udccp_options_set_linger_ms(struct udccp_options *options,
                                uint32_t ms);

/**
 * Silence of the peer after which it is probed, in milliseconds (default 25,000); 0: never. Has to
 * be shorter than the idle limit.
 */
int udccp_options_set_keep_alive_ms(struct udccp_options *options,
                                    uint32_t ms);

/**
 * Silence of the peer after which it is gone, in milliseconds (default 120,000); 0: never.
 */
int udccp_options_set_idle_limit_ms(struct udccp_options *options,
                                    uint32_t ms);

/**
 * Requests sent again before a connect fails (default 6), and the time before the first of them in
 * milliseconds (default 1000, doubling).
 *
 * Errors: `-EINVAL`: the time is 0.
 */
int udccp_options_set_request_retries(struct udccp_options *options,
                                      uint32_t retries,
                                      uint32_t first_after_ms);

/**
 * Use ECN (default true).
 */
int udccp_options_set_ecn(struct udccp_options *options, bool ecn);

/**
 * Carry a CRC-32c of the data (default false), and deliver data that it shows to be corrupt with a
 * mark instead of dropping it (default false).
 */
int udccp_options_set_data_checksum(struct udccp_options *options,
                                    bool checksum,
                                    bool deliver_corrupt);

/**
 * Path MTU in bytes, IP header included, at most (default 1500).
 */
int udccp_options_set_path_mtu(struct udccp_options *options, uint16_t bytes);

/**
 * Hold TIMEWAIT at the server when it closes (default false: the client holds it).
 */
int udccp_options_set_server_timewait(struct udccp_options *options, bool holds);

/**
 * Listeners: connections that may be in handshake or wait for `udccp_accept` (default 128).
 *
 * Errors: `-EINVAL`: 0.
 */
int udccp_options_set_backlog(struct udccp_options *options,
                              size_t n);

/**
 * Clients: our DCCP port (default: an ephemeral one).
 *
 * Errors: `-EINVAL`: 0.
 */
int udccp_options_set_local_port(struct udccp_options *options, uint16_t port);

/**
 * Clients: data that goes with the Request and so arrives a round-trip time earlier (default:
 * none). It is copied.
 *
 * Errors: `-EMSGSIZE`: longer than any message.
 */
int udccp_options_set_request_data(struct udccp_options *options,
                                   const void *data,
                                   size_t len);

/**
 * Time to live, or hop limit, of packets, 1 to 255 (default: the system's, mostly 64).
 *
 * Errors: `-EINVAL`: 0.
 */
int udccp_options_set_ttl(struct udccp_options *options, uint8_t ttl);

/**
 * Differentiated services code point of packets, 0 to 63 (RFC 2474; default 0). 46 is expedited
 * forwarding, as for voice. UDP packets then leave without segmentation offload.
 *
 * Errors: `-EINVAL`: above 63.
 */
int udccp_options_set_dscp(struct udccp_options *options,
                           uint8_t code_point);

/**
 * Firewall mark of packets, for rules of routing and filtering (Linux; needs CAP_NET_ADMIN;
 * default: none).
 */
int udccp_options_set_mark(struct udccp_options *options,
                           uint32_t mark);

/**
 * Send and receive by this network interface alone, for example "eth0" (Linux; default: by what
 * routing says).
 */
int udccp_options_set_device(struct udccp_options *options,
                             const char *name);

/**
 * Share the UDP port with other sockets that do the same (default false). The kernel spreads
 * clients among them by their addresses.
 */
int udccp_options_set_reuse_port(struct udccp_options *options,
                                 bool reuse);

/**
 * Buffers of the kernel in bytes (default 4 MiB to receive, and the system's to send, which 0
 * stands for).
 *
 * Errors: `-EINVAL`: nothing could be received.
 */
int udccp_options_set_kernel_buffers(struct udccp_options *options,
                                     size_t recv_bytes,
                                     size_t send_bytes);

/**
 * Whether the end of the process closes what is still open and waits for it (default true).
 * Without, connections are cut off and their peers hear nothing.
 */
int udccp_options_set_close_at_exit(struct udccp_options *options,
                                    bool close);

/**
 * Where the connection stands: one of `UDCCP_CLOSED` to `UDCCP_TIMEWAIT`, or `-EBADF`.
 */
int udccp_socket_state(const struct udccp_socket *socket);

/**
 * What the connection ended with, as `SO_ERROR` gives it: 0 while it lives or after an orderly
 * end, else a negative error: `-ECONNRESET` (aborted), `-ETIMEDOUT` (the peer fell silent) and so
 * on, or that of the handshake. Asking does not change it.
 */
int udccp_socket_error(const struct udccp_socket *socket);

/**
 * Writes what the peer said in words when it reset the connection (RFC 4340 section 5.6). Returns
 * the length as `udccp_service_text` does; 0 where it said nothing.
 */
ssize_t udccp_socket_reset_text(const struct udccp_socket *socket,
                                char *buffer,
                                size_t size);

/**
 * Writes the peer's address and ports as `udccp_connect` takes them. Returns the length as
 * `udccp_service_text` does; 80 bytes are enough.
 */
ssize_t udccp_socket_peer(const struct udccp_socket *socket,
                          char *buffer,
                          size_t size);

/**
 * Writes our address and ports, as `udccp_socket_peer` does.
 */
ssize_t udccp_socket_local(const struct udccp_socket *socket, char *buffer, size_t size);

/**
 * The service code that client and server agreed on; 0 for NULL and in a forked child.
 */
uint32_t udccp_socket_service(const struct udccp_socket *socket);

/**
 * The largest message in bytes that fits in one packet of this path now; 0 before the handshake is
 * done, after the end and in a forked child.
 */
size_t udccp_socket_max_message_size(const struct udccp_socket *socket);

/**
 * Frees a socket. A connection that is open closes in order in the background: what is queued is
 * still sent, within the time to linger, and so at the end of the process. A handshake is
 * cancelled. NULL is allowed.
 */
void udccp_socket_free(struct udccp_socket *socket);

/**
 * Connects to a service and waits for the handshake. Frees nothing and gives NULL in `socket` on
 * failure.
 *
 * `address` is `host:port`, the host a name or a number (`[2001:db8::1]:5004`). One number stands
 * for the UDP port and the DCCP port inside it; `host:port/udp-port` tells them apart, and
 * `host:port/raw` goes without UDP (needs CAP_NET_RAW). The addresses of a name are tried in turn.
 * `options` may be NULL.
 *
 * Errors: `-EAGAIN`: not within the time, and the attempt is given up. `-ECONNREFUSED`,
 * `-EBADRQC` (another service), `-EHOSTUNREACH`, `-ETIMEDOUT`, `-EOPNOTSUPP` (CCID), `-ENOENT`
 * (unknown host), `-EINVAL` (address or service code).
 */
int udccp_connect(struct udccp_socket **socket,
                  const char *address,
                  uint32_t service,
                  const struct udccp_options *options,
                  int timeout_ms);

/**
 * Starts to connect and does not wait. The host has to be a number. The descriptor of the socket
 * (`udccp_socket_fd`) is writable once data can flow, and hangs up where the handshake fails;
 * `udccp_connect_finish` says which. Freeing the socket cancels the handshake.
 *
 * Errors: `-EINVAL`, `-EHOSTUNREACH` (no route), `-EOPNOTSUPP`.
 */
int udccp_connect_start(struct udccp_socket **socket,
                        const char *address,
                        uint32_t service,
                        const struct udccp_options *options);

/**
 * The result of a handshake, waiting for it: 0 once data can flow. Other calls do this by
 * themselves; `udccp_send` of a socket whose handshake is under way waits for it first.
 *
 * Errors: `-EAGAIN`: not within the time; it goes on. Otherwise as `udccp_connect`, each time.
 */
int udccp_connect_finish(struct udccp_socket *socket,
                         int timeout_ms);

/**
 * Listens for clients of `n` service codes (at least one). `address` is in numbers, for example
 * `[::]:5004`, which serves IPv4 too, or `127.0.0.1:0` for a free port; "/udp-port" or "/raw" may
 * follow. `options` are those of the connections accepted, too; NULL stands for the defaults.
 *
 * Errors: `-EADDRINUSE`, `-EADDRNOTAVAIL`, `-EACCES`, `-EPERM` (raw IP), `-EINVAL`.
 */
int udccp_listen(struct udccp_listener **listener,
                 const char *address,
                 const uint32_t *first_service,
                 size_t n,
                 const struct udccp_options *options);

/**
 * The next connection whose handshake is done, waiting for it.
 *
 * Errors: `-EAGAIN`: none within the time; `socket` is NULL then.
 */
int udccp_accept(struct udccp_listener *listener,
                 struct udccp_socket **socket,
                 int timeout_ms);

/**
 * The DCCP port; 0 for NULL and in a forked child.
 */
uint16_t udccp_listener_port(const struct udccp_listener *listener);

/**
 * Serves other service codes from here on; connections that exist stay.
 *
 * Errors: `-EINVAL`, `-EADDRINUSE`; nothing has changed then.
 */
int udccp_listener_set_services(struct udccp_listener *listener,
                                const uint32_t *first_service,
                                size_t n);

/**
 * Listens no more. Connections that were accepted live on; those that wait to be are reset. NULL
 * is allowed.
 */
void udccp_listener_free(struct udccp_listener *listener);

/**
 * Binds an address in numbers, for example `0.0.0.0:5004` or `[::]:0` (IPv4 too; port 0 picks a
 * free one), or with `/raw` behind it. `options` may be NULL.
 *
 * Errors: `-EADDRINUSE`, `-EADDRNOTAVAIL`, `-EACCES`, `-EPERM` (raw IP), `-EINVAL`.
 */
int udccp_endpoint_bind(struct udccp_endpoint **endpoint,
                        const char *address,
                        const struct udccp_options *options);

/**
 * As `udccp_connect_start`, from this endpoint.
 */
int udccp_endpoint_connect_start(struct udccp_endpoint *endpoint,
                                 struct udccp_socket **socket,
                                 const char *address,
                                 uint32_t service,
                                 const struct udccp_options *options);

/**
 * Serves `n` service codes on DCCP port `port` of this endpoint; 0 stands for the number of its
 * UDP port, or a free one over raw IP. `options` may be NULL.
 *
 * Errors: `-EADDRINUSE`: the port already serves one of them. `-EINVAL`: there is none, or one is
 * 0xFFFFFFFF.
 */
int udccp_endpoint_listen(struct udccp_endpoint *endpoint,
                          struct udccp_listener **listener,
                          uint16_t port,
                          const uint32_t *first_service,
                          size_t n,
                          const struct udccp_options *options);

/**
 * Writes the address bound, with the UDP port, as `udccp_socket_peer` does.
 */
ssize_t udccp_endpoint_local(const struct udccp_endpoint *endpoint,
                             char *buffer,
                             size_t size);

/**
 * Waits until every connection of this endpoint is over.
 *
 * Errors: `-EAGAIN`: not within the time.
 */
int udccp_endpoint_wait_idle(struct udccp_endpoint *endpoint, int timeout_ms);

/**
 * Frees an endpoint. Its listeners and sockets live on. NULL is allowed.
 */
void udccp_endpoint_free(struct udccp_endpoint *endpoint);

/**
 * Closes every open connection of this process in order, as `exit()` does, and waits for that
 * within the longest time to linger. For ends of a process that run no functions of `atexit`; and
 * for Windows, where every program calls it last: functions of a DLL run too late there.
 *
 * Connections with `udccp_options_set_close_at_exit` off stay as they are.
 */
void udccp_close_all(void);

#if !defined(_WIN32)
/**
 * A descriptor for `poll`, `epoll`, `select` and event loops, ready whenever a call would not
 * wait. Level-triggered, and the same for the whole life of the socket. Wait on it, and do nothing
 * else with it: it is not to be read, written or closed, and `udccp_socket_free` ends it.
 *
 * | `poll` says | means |
 * |---|---|
 * | `POLLIN` | `udccp_recv` would give a message, the end or an error |
 * | `POLLOUT` | the handshake is done, and `udccp_send` would take a message or give an error |
 * | `POLLRDHUP` | nothing more will arrive |
 * | `POLLHUP` | the connection has ended, or the handshake failed |
 * | `POLLERR` | it ended with an error |
 *
 * A connection that was closed here, and whose peer does not confirm that in its time, shows the
 * end with an error.
 *
 * Costs two descriptors of the process, from the first call on. Errors: `-EMFILE`; that of the
 * handshake, where it had failed before the first call.
 */
int udccp_socket_fd(struct udccp_socket *socket);
#endif

#if !defined(_WIN32)
/**
 * A descriptor that is readable whenever `udccp_accept` would not wait; see `udccp_socket_fd`.
 */
int udccp_listener_fd(struct udccp_listener *listener);
#endif

#if !defined(_WIN32)
/**
 * Takes a UDP socket that a service manager handed over, or with options of your own: bound and
 * not connected. The descriptor is duplicated; close yours when you like. The library reads
 * everything that arrives there.
 *
 * Errors: `-EBADF`: not a descriptor. `-EINVAL`: not a bound UDP socket.
 */
int udccp_endpoint_from_fd(struct udccp_endpoint **endpoint,
                           int fd,
                           const struct udccp_options *options);
#endif

/**
 * Sends one message of `len` bytes, waiting while the send queue is full. It arrives whole or not
 * at all. A message of no bytes is one, too.
 *
 * Errors: `-EAGAIN`: not sent within the time. `-EMSGSIZE`: larger than
 * `udccp_socket_max_message_size`. `-EPIPE`: closed. `-ECONNRESET`, `-ETIMEDOUT` and others: the
 * connection has failed.
 */
int udccp_send(struct udccp_socket *socket,
               const void *data,
               size_t len,
               int timeout_ms);

/**
 * As `udccp_send`, with a lifetime, a priority and a token.
 *
 * Errors: as `udccp_send`; `-EINVAL`: `reserved` is not 0.
 */
int udccp_send_message(struct udccp_socket *socket,
                       const struct udccp_message *message,
                       int timeout_ms);

/**
 * Sends `n` messages in order, with as few system calls as possible, waiting while the send queue
 * is full. Returns how many were queued: `n`, or those before the time was over or one failed, if
 * there are any.
 *
 * Errors: where none was queued, as `udccp_send_message`.
 */
ssize_t udccp_send_batch(struct udccp_socket *socket,
                         const struct udccp_message *first,
                         size_t n,
                         int timeout_ms);

/**
 * Waits until everything sent so far has left.
 *
 * Errors: `-EAGAIN`: not within the time. Else: the connection ended before.
 */
int udccp_flush(struct udccp_socket *socket, int timeout_ms);

/**
 * Waits until everything sent so far has left and is accounted for: reported by the peer, or
 * judged lost. The statistics have the counts.
 *
 * Errors: as `udccp_flush`.
 */
int udccp_acknowledged(struct udccp_socket *socket,
                       int timeout_ms);

/**
 * Closes: what is queued is still sent, within the time to linger, and then the peer is told.
 * Waits until the peer has confirmed it, or has had as long again for that (at least 14 round-trip
 * times); then the close goes on in the background. Sending ends with this call; what has arrived
 * can still be read. With a time of 0 it starts the close and does not wait.
 *
 * Errors: `-EAGAIN`: the close goes on; ask again, or free the socket. `-ETIMEDOUT`: not all that
 * was queued had left in time, or the peer did not confirm. `-ECONNRESET` and others: the
 * connection had failed before.
 */
int udccp_close(struct udccp_socket *socket,
                int timeout_ms);

/**
 * Waits for the end of the connection, whoever causes it: 0 where it was closed in order.
 *
 * Errors: `-EAGAIN`: it lives on. `-ECONNRESET` and others: it failed.
 */
int udccp_wait_closed(struct udccp_socket *socket, int timeout_ms);

/**
 * Ends the connection at once with Reset, Aborted. What is queued is dropped. During a handshake,
 * cancels it.
 */
int udccp_abort(struct udccp_socket *socket);

/**
 * Receives one message, waiting for it, and copies it into `buffer`. Returns the bytes written,
 * never more than `capacity`; 0 is an empty message. What does not fit is lost, as with `recv`:
 * `UDCCP_MAX_MESSAGE` is room for every message, `udccp_next_len` asks before, and
 * `udccp_recv_message` says it after.
 *
 * Errors: `UDCCP_EOF`: the connection was closed in order, and all was read. `-EAGAIN`: nothing
 * within the time. `-ECONNRESET`, `-ETIMEDOUT` and others: the connection has failed; what had
 * arrived before is read first.
 */
ssize_t udccp_recv(struct udccp_socket *socket,
                   void *buffer,
                   size_t capacity,
                   int timeout_ms);

/**
 * As `udccp_recv`, and says what is known of the message.
 */
int udccp_recv_message(struct udccp_socket *socket,
                       struct udccp_buffer *buffer,
                       int timeout_ms);

/**
 * Receives up to `n` messages, waiting for the first. Returns how many.
 *
 * Errors: as `udccp_recv`; `-EINVAL`: `n` is 0.
 */
ssize_t udccp_recv_batch(struct udccp_socket *socket,
                         struct udccp_buffer *first,
                         size_t n,
                         int timeout_ms);

/**
 * As `udccp_recv`, and the message stays.
 */
ssize_t udccp_peek(struct udccp_socket *socket,
                   void *buffer,
                   size_t capacity,
                   int timeout_ms);

/**
 * Length in bytes of the next message. 0 is an empty one.
 *
 * Errors: `-EAGAIN`: none waits. `-EBADF`.
 */
ssize_t udccp_next_len(const struct udccp_socket *socket);

/**
 * Reads no more: what waits is thrown away, `udccp_recv` gives `UDCCP_EOF`, and the peer is told
 * when it sends on. Sending goes on. This is all that DCCP has of a half-closed connection.
 */
int udccp_shutdown_read(struct udccp_socket *socket);

/**
 * How long a close may take to deliver what is queued, in milliseconds. 0: a close resets the
 * connection at once. A close that is under way keeps its time.
 *
 * Errors of all settings of a socket: `-EAGAIN`: its handshake is under way.
 */
int udccp_socket_set_linger_ms(struct udccp_socket *socket,
                               uint32_t ms);

/**
 * What may wait to be sent. What waits beyond stays.
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_socket_set_send_queue(struct udccp_socket *socket,
                                size_t bytes,
                                size_t messages);

/**
 * What a full send queue does: `UDCCP_QUEUE_REFUSE` or `UDCCP_QUEUE_DROP_LOWEST`.
 *
 * Errors: `-EINVAL`: neither.
 */
int udccp_socket_set_queue_policy(struct udccp_socket *socket, int number);

/**
 * Whether this server holds TIMEWAIT itself when it closes.
 */
int udccp_socket_set_server_timewait(struct udccp_socket *socket, bool holds);

/**
 * Asks the peer not to go faster, until taken back (Slow Receiver, RFC 4340 section 11.6). A
 * receive queue that fills does so by itself.
 */
int udccp_socket_set_slow_receiver(struct udccp_socket *socket,
                                   bool is_slow);

/**
 * The checksum coverage agreed on, of the data that we send and the least that we accept; 0 is
 * everything. Either pointer may be NULL.
 *
 * Errors: `-EAGAIN`: the handshake is under way.
 */
int udccp_socket_coverage(const struct udccp_socket *socket,
                          uint8_t *send,
                          uint8_t *least);

/**
 * Writes the connection's numbers to `stats`. `size` is `sizeof *stats`: it tells the library
 * which version of the structure the program was compiled with. Members that the library does not
 * know are unknown.
 *
 * Errors: `-EAGAIN`: the handshake is under way. `-EINVAL`: `size` is 0 or no multiple of 8.
 */
int udccp_socket_stats(const struct udccp_socket *socket,
                       struct udccp_stats *stats,
                       size_t size);

/**
 * The next event, waiting for it. The latest 64 are kept for who asks late, and the fates of
 * messages until they are read.
 *
 * Errors: `-EAGAIN`: none within the time. `UDCCP_EOF`: the connection has ended, and all were
 * read.
 */
int udccp_socket_event(struct udccp_socket *socket,
                       struct udccp_event *event,
                       int timeout_ms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* UDCCP_H */
