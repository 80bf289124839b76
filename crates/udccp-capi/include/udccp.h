/* libudccp: congestion-controlled datagrams (DCCP, RFC 4340) for C and C++.
 *
 * Made by cargo test -p udccp-capi --test header from crates/udccp-capi/src: do not edit.
 *
 * Rules for all calls:
 *
 * - Calls return 0, a count or a length, or a negative error: UDCCP_EOF, or an errno (-EAGAIN).
 *   udccp_strerror() gives its general meaning. udccp_last_error() and udccp_last_advice() describe
 *   the last failure of the calling thread, with names and numbers. errno is not changed.
 * - timeout_ms is as in poll(2): negative waits for ever, 0 not at all. If the time is over, a call
 *   returns -EAGAIN. Signals do not interrupt a call that waits; for that, wait on the descriptor
 *   with poll(2) and call with 0.
 * - A NULL handle gives -EBADF, any other pointer that must not be NULL -EFAULT, an invalid value
 *   -EINVAL. With a length of 0 the pointer is not used. Texts are UTF-8 and end with a zero byte.
 * - Each handle is freed once, by the _free function of its type, while no other call uses it.
 *   Threads may share sockets, listeners and endpoints.
 * - A bug in the library gives -ENOTRECOVERABLE. Nothing unwinds into C.
 * - Sockets belong to the process that opened them. In a forked child calls return -EBADF and send
 *   nothing; the child may free its copies.
 * - exit() and a return from main() close open connections in order, and wait for that within the
 *   linger time. _exit() and signals do not. On Windows nothing does: call udccp_close_all() first.
 * - Windows has no descriptors to wait on: wait in threads, or call with a timeout of 0.
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
 * The connection was closed in order and everything was read. Not an error, but no length either:
 * an empty message has length 0.
 */
#define UDCCP_EOF -4095

/**
 * When the send queue is full, `udccp_send` waits (the default).
 */
#define UDCCP_QUEUE_REFUSE 0

/**
 * When the send queue is full, the newest message of the lowest priority is dropped for one of
 * higher priority. `udccp_send` waits only if no queued message has a lower priority than the new
 * one.
 */
#define UDCCP_QUEUE_DROP_LOWEST 1

/**
 * No connection, or one that has ended. These are the states of RFC 4340 section 4.3.
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
 * The connection has ended; its addresses and ports stay in use for a while.
 */
#define UDCCP_TIMEWAIT 7

/**
 * Size of a buffer that holds any message, in bytes.
 */
#define UDCCP_MAX_MESSAGE 65535

/**
 * A value that is not known, or that the CCID does not have.
 */
#define UDCCP_UNKNOWN UINT64_MAX

/**
 * A message that was queued was dropped and will not be delivered; `amount` is its length in
 * bytes.
 */
#define UDCCP_EVENT_MESSAGE_DROPPED 1

/**
 * What happened to the message with this `token`. There is exactly one such event for each message
 * with a token that was queued, and it is kept until it is read.
 */
#define UDCCP_EVENT_MESSAGE_FATE 2

/**
 * The peer received data but did not deliver it to its application, or only damaged; `amount` is
 * the number of messages, and `reason` the Drop Code (RFC 4340 section 11.7).
 */
#define UDCCP_EVENT_PEER_DROPPED 3

/**
 * The peer can hardly keep up: do not send faster than now.
 */
#define UDCCP_EVENT_PEER_SLOW 4

/**
 * The size of the largest message that fits in one packet has changed; `amount` is the new one in
 * bytes.
 */
#define UDCCP_EVENT_MAX_MESSAGE_SIZE 5

/**
 * The peer's application reads no more. Nothing more can be sent.
 */
#define UDCCP_EVENT_PEER_SHUTDOWN_READ 6

/**
 * The peer's host received it.
 */
#define UDCCP_FATE_ACKNOWLEDGED 1

/**
 * The peer's host received it but did not deliver it to its application, or only damaged; `amount`
 * is the Drop Code.
 */
#define UDCCP_FATE_PEER_DROPPED 2

/**
 * It counts as lost. It may have arrived nevertheless.
 */
#define UDCCP_FATE_LOST 3

/**
 * It was never sent; `amount` is one of `UDCCP_DROP_EXPIRED` to `UDCCP_DROP_TOO_LARGE`.
 */
#define UDCCP_FATE_DROPPED 4

/**
 * It was sent, and no report said what happened to it, or the connection ended first.
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
 * server that also connects to others. Most programs need none: `udccp_connect` and `udccp_listen`
 * create their own.
 */
typedef struct udccp_endpoint udccp_endpoint;

/**
 * Serves one or more service codes on a port. Threads may share it, like a socket.
 */
typedef struct udccp_listener udccp_listener;

/**
 * Settings of connections, and of the UDP or raw socket. One object can be used for any number of
 * calls, which copy what they need. NULL stands for the defaults. Only one thread at a time may
 * change it.
 */
typedef struct udccp_options udccp_options;

/**
 * One connection. Threads may share it: concurrent calls are safe. `udccp_socket_free` must be the
 * last call.
 */
typedef struct udccp_socket udccp_socket;

/**
 * A message to send, with a lifetime, a token and a priority. Each is unused if it is 0, so that
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
     * The message is dropped, and counted, if it has not left after this time in microseconds; 0:
     * never.
     */
    uint64_t lifetime_us;
    /**
     * If not 0, a `udccp_event` with this number says what happened to the message.
     */
    uint64_t token;
    /**
     * Messages of higher priority leave first; those of equal priority keep their order. 0 is the
     * lowest.
     */
    uint32_t priority;
    /**
     * Must be 0; for later versions.
     */
    uint32_t reserved;
} udccp_message;

/**
 * A buffer for a message, and what was written to it.
 */
typedef struct udccp_buffer {
    /**
     * Where the data goes. Set by the caller.
     */
    void *data;
    /**
     * Its size in bytes. Set by the caller.
     */
    size_t capacity;
    /**
     * Bytes that were written.
     */
    size_t len;
    /**
     * Length of the message in bytes. If it is more than `len`, the rest was discarded.
     */
    size_t message_len;
    /**
     * Its checksum shows that it was damaged on the way (`udccp_options_set_data_checksum`).
     */
    bool is_corrupt;
} udccp_buffer;

/**
 * State and counters of a connection. Counters start at 0 with the connection. A value that is not
 * known is `UDCCP_UNKNOWN`, or NaN for `loss_event_rate`. Later versions add members at the end.
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
     * Slow start threshold in packets (CCID 2); unknown while it is unlimited.
     */
    uint64_t ssthresh_packets;
    /**
     * Packets believed to be in the network (CCID 2).
     */
    uint64_t pipe_packets;
    /**
     * Allowed sending rate in bytes per second (CCIDs 3 and 4). CCID 4 also sends at most one
     * message in 10 ms, whatever the rate.
     */
    uint64_t x_bytes_per_sec;
    /**
     * Receive rate that the peer last reported, in bytes per second (CCIDs 3 and 4).
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
     * Smallest round-trip time measured, in nanoseconds.
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
     * Messages waiting to be sent.
     */
    uint64_t send_queue_messages;
    /**
     * Their bytes.
     */
    uint64_t send_queue_bytes;
    /**
     * Messages waiting to be read.
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
     * Messages that count as lost on the way.
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
    uint64_t dropped_ended;
    /**
     * Messages dropped here because the path's packets became too small for them.
     */
    uint64_t dropped_too_large;
    /**
     * Messages received and dropped because the receive queue was full.
     */
    uint64_t dropped_recv_queue_full;
    /**
     * Messages received and dropped because they were damaged.
     */
    uint64_t dropped_corrupt;
} udccp_stats;

/**
 * An event of a connection. All but the fates of single messages are also counted in the
 * statistics.
 */
typedef struct udccp_event {
    /**
     * One of `UDCCP_EVENT_...`. Later versions may add kinds: ignore unknown ones.
     */
    int kind;
    /**
     * `UDCCP_EVENT_MESSAGE_FATE`: one of `UDCCP_FATE_...`. `UDCCP_EVENT_MESSAGE_DROPPED`: one of
     * `UDCCP_DROP_...`. `UDCCP_EVENT_PEER_DROPPED`: the Drop Code. Else 0.
     */
    int reason;
    /**
     * `UDCCP_EVENT_MESSAGE_FATE`: the message's token. Else 0.
     */
    uint64_t token;
    /**
     * See the kinds; else 0.
     */
    uint64_t amount;
} udccp_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The error text of this thread's last failed call, with names and numbers. Valid until another
 * call of this thread fails. Empty if none has failed; never NULL.
 */
const char *udccp_last_error(void);

/**
 * What to do about that error, in one sentence for a user. Valid as long as `udccp_last_error`.
 */
const char *udccp_last_advice(void);

/**
 * The general meaning of an error number of this library, negative as calls return it or positive
 * as in `errno`. Never NULL, and always valid.
 */
const char *udccp_strerror(int error);

/**
 * Version of the library in use, for example "0.1.0". `UDCCP_VERSION` is that of the header.
 */
const char *udccp_version(void);

/**
 * Parses a service code (RFC 4340 section 8.1.2) in one of its text forms: `SC:echo` (one to four
 * characters), `SC=1717858426` or `SC=x6664707A`.
 *
 * Errors: `-EINVAL`: `text` has none of these forms.
 */
int udccp_service_code(const char *text,
                       uint32_t *code);

/**
 * Writes a service code as text, as `SC:echo` if possible. Returns the length without the
 * terminating zero byte, like `snprintf`: if it is `size` or more, the text was cut.
 */
ssize_t udccp_service_text(uint32_t code, char *buffer, size_t size);

/**
 * Creates settings with the default values; NULL only if memory is exhausted.
 */
struct udccp_options *udccp_options_new(void);

/**
 * Frees settings. Connections made with them keep theirs. NULL is allowed.
 */
void udccp_options_free(struct udccp_options *options);

/**
 * Uses this CCID only, in both directions (default: 2, or 3 or 4 if the peer offers only that
 * one). A CCID that the library does not have fails when the settings are used: `-EOPNOTSUPP`.
 */
int udccp_options_set_ccid(struct udccp_options *options,
                           uint8_t ccid);

/**
 * CCIDs for the data that we send, the preferred one first (default 2, 3, 4). If both sides have
 * several in common, the server's order decides.
 *
 * Errors: `-EINVAL`: the list is empty or has more than 250 entries.
 */
int udccp_options_set_tx_ccids(struct udccp_options *options,
                               const uint8_t *first,
                               size_t n);

/**
 * CCIDs for the data that we receive, the preferred one first (default 2, 3, 4).
 *
 * Errors: `-EINVAL`: the list is empty or has more than 250 entries.
 */
int udccp_options_set_rx_ccids(struct udccp_options *options,
                               const uint8_t *first,
                               size_t n);

/**
 * Checksum coverage of the data that we send, and the smallest that we accept, each 0 to 15
 * (default 0: everything; RFC 4340 section 9.2).
 *
 * Errors: `-EINVAL`: above 15.
 */
int udccp_options_set_coverage(struct udccp_options *options,
                               uint8_t send,
                               uint8_t least);

/**
 * Limits of the send queue (default 1 MiB, 512 messages).
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_options_set_send_queue(struct udccp_options *options,
                                 size_t bytes,
                                 size_t messages);

/**
 * Limits of the receive queue (default 1 MiB, 1024 messages). The peer is slowed down as the queue
 * fills.
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_options_set_recv_queue(struct udccp_options *options,
                                 size_t bytes,
                                 size_t messages);

/**
 * What happens when the send queue is full: `UDCCP_QUEUE_REFUSE` (the default) or
 * `UDCCP_QUEUE_DROP_LOWEST`.
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
 * Silence of the peer after which it is sent a probe, in milliseconds (default 25,000; 0: no
 * probes). Must be shorter than the idle limit.
 */
int udccp_options_set_keep_alive_ms(struct udccp_options *options,
                                    uint32_t ms);

/**
 * Silence of the peer after which the connection ends with an error, in milliseconds (default
 * 120,000; 0: never).
 */
int udccp_options_set_idle_limit_ms(struct udccp_options *options,
                                    uint32_t ms);

/**
 * Retransmissions of a Request before connecting fails (default 6), and the time before the first
 * in milliseconds (default 1000; it doubles with each).
 *
 * Errors: `-EINVAL`: the time is 0.
 */
int udccp_options_set_request_retries(struct udccp_options *options,
                                      uint32_t retries,
                                      uint32_t first_after_ms);

/**
 * Use ECN (default true, RFC 4340 section 12).
 */
int udccp_options_set_ecn(struct udccp_options *options, bool ecn);

/**
 * Send a CRC-32c of the data, and ask the peer for one (default false); and deliver data that it
 * shows to be corrupt, with a mark, instead of dropping it (default false; RFC 4340 section 9.3).
 */
int udccp_options_set_data_checksum(struct udccp_options *options,
                                    bool checksum,
                                    bool deliver_corrupt);

/**
 * Upper limit of the path MTU in bytes, IP header included (default 1500).
 */
int udccp_options_set_path_mtu(struct udccp_options *options, uint16_t bytes);

/**
 * The server holds TIMEWAIT if it closes (default false: the client holds it).
 */
int udccp_options_set_server_timewait(struct udccp_options *options, bool holds);

/**
 * Listeners: how many connections may be in the handshake or wait for `udccp_accept` (default
 * 128).
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
 * Clients: data to send with the Request, which arrives a round-trip time earlier (default: none).
 * It is copied.
 *
 * Errors: `-EMSGSIZE`: longer than `UDCCP_MAX_MESSAGE`.
 */
int udccp_options_set_request_data(struct udccp_options *options,
                                   const void *data,
                                   size_t len);

/**
 * Time to live (IPv4) or hop limit (IPv6) of packets, 1 to 255 (default: the system's, usually
 * 64).
 *
 * Errors: `-EINVAL`: 0.
 */
int udccp_options_set_ttl(struct udccp_options *options,
                          uint8_t ttl);

/**
 * Differentiated services code point of packets, 0 to 63 (RFC 2474; default 0). 46 is expedited
 * forwarding, as for voice. UDP packets are then sent without segmentation offload.
 *
 * Errors: `-EINVAL`: above 63.
 */
int udccp_options_set_dscp(struct udccp_options *options,
                           uint8_t code_point);

/**
 * Firewall mark of packets, for routing and filter rules (Linux; needs CAP_NET_ADMIN; default:
 * none).
 */
int udccp_options_set_mark(struct udccp_options *options,
                           uint32_t mark);

/**
 * Send and receive only on this network interface, for example "eth0" (Linux; default: the routes
 * decide).
 */
int udccp_options_set_device(struct udccp_options *options,
                             const char *name);

/**
 * Share the UDP port with other sockets that set this too (default false). The kernel distributes
 * clients among them by address.
 */
int udccp_options_set_reuse_port(struct udccp_options *options,
                                 bool reuse);

/**
 * Sizes of the kernel's buffers in bytes (default 4 MiB to receive). A `send_bytes` of 0, the
 * default, stands for the system's.
 *
 * Errors: `-EINVAL`: nothing could be received.
 */
int udccp_options_set_kernel_buffers(struct udccp_options *options,
                                     size_t recv_bytes,
                                     size_t send_bytes);

/**
 * Whether the end of the process closes open connections and waits for it (default true). With
 * false, they end without any packet to their peers.
 */
int udccp_options_set_close_at_exit(struct udccp_options *options,
                                    bool close);

/**
 * The state of the connection: one of `UDCCP_CLOSED` to `UDCCP_TIMEWAIT`, or `-EBADF`.
 */
int udccp_socket_state(const struct udccp_socket *socket);

/**
 * How the connection ended, as in `SO_ERROR`: 0 while it is open and after an orderly close,
 * otherwise a negative error, such as `-ECONNRESET` (aborted), `-ETIMEDOUT` (the peer fell
 * silent), or that of the handshake. Reading it does not clear it.
 */
int udccp_socket_error(const struct udccp_socket *socket);

/**
 * Writes the text with which the peer explained its Reset (RFC 4340 section 5.6). Returns the
 * length as `udccp_service_text` does; 0 if it sent none.
 */
ssize_t udccp_socket_reset_text(const struct udccp_socket *socket,
                                char *buffer,
                                size_t size);

/**
 * Writes the peer's address and ports in the form that `udccp_connect` takes. Returns the length
 * as `udccp_service_text` does; 80 bytes are enough.
 */
ssize_t udccp_socket_peer(const struct udccp_socket *socket,
                          char *buffer,
                          size_t size);

/**
 * Writes our address and ports in the same form.
 */
ssize_t udccp_socket_local(const struct udccp_socket *socket, char *buffer, size_t size);

/**
 * The service code that client and server agreed on; 0 for NULL and in a forked child.
 */
uint32_t udccp_socket_service(const struct udccp_socket *socket);

/**
 * The largest message that fits in one packet of this path now, in bytes; 0 before the handshake
 * is complete, for NULL, and in a forked child.
 */
size_t udccp_socket_max_message_size(const struct udccp_socket *socket);

/**
 * Frees a socket. An open connection closes in order in the background, or at the end of the
 * process: what is queued is still sent, within the linger time. A handshake is cancelled. NULL is
 * allowed.
 */
void udccp_socket_free(struct udccp_socket *socket);

/**
 * Connects to a service and waits for the handshake. On failure, `*socket` is NULL and there is
 * nothing to free.
 *
 * `address` is `host:port`, with a name or a numeric address as the host (`[2001:db8::1]:5004`).
 * By default one number is both the UDP port and the DCCP port inside it. `host:port/udp-port`
 * gives two different ones, and `host:port/raw` goes without UDP (needs CAP_NET_RAW). The
 * addresses of a name are tried in turn. `options` may be NULL.
 *
 * Errors: `-EAGAIN`: not connected in time, and the attempt is cancelled. `-ECONNREFUSED`,
 * `-EBADRQC` (service code not served), `-EHOSTUNREACH`, `-ETIMEDOUT`, `-EOPNOTSUPP` (CCID),
 * `-ENOENT` (unknown host), `-EINVAL` (address or service code).
 */
int udccp_connect(struct udccp_socket **socket,
                  const char *address,
                  uint32_t service,
                  const struct udccp_options *options,
                  int timeout_ms);

/**
 * Starts to connect without waiting. The host has to be a numeric address. The descriptor of the
 * socket (`udccp_socket_fd`) becomes writable once data can flow, and hangs up if the handshake
 * fails; `udccp_connect_finish` returns the result. Freeing the socket cancels the handshake.
 *
 * Errors: `-EINVAL`, `-EHOSTUNREACH` (no route), `-EOPNOTSUPP`.
 */
int udccp_connect_start(struct udccp_socket **socket,
                        const char *address,
                        uint32_t service,
                        const struct udccp_options *options);

/**
 * Waits for the handshake and returns its result: 0 once data can flow. A call to it is not
 * required: `udccp_send` and others wait for the handshake first.
 *
 * Errors: `-EAGAIN`: not complete in time; it continues. Otherwise as `udccp_connect`, with each
 * call.
 */
int udccp_connect_finish(struct udccp_socket *socket,
                         int timeout_ms);

/**
 * Listens for clients of `n` service codes (at least one). `address` is numeric, for example
 * `[::]:5004`, which serves IPv4 too, or `127.0.0.1:0` for a free port; "/udp-port" or "/raw" may
 * follow. `options` also apply to the connections accepted; NULL stands for the defaults.
 *
 * Errors: `-EADDRINUSE`, `-EADDRNOTAVAIL`, `-EACCES`, `-EPERM` (raw IP), `-EINVAL`.
 */
int udccp_listen(struct udccp_listener **listener,
                 const char *address,
                 const uint32_t *first_service,
                 size_t n,
                 const struct udccp_options *options);

/**
 * Accepts the next connection whose handshake is complete, waiting for it.
 *
 * Errors: `-EAGAIN`: none in time; `*socket` is then NULL.
 */
int udccp_accept(struct udccp_listener *listener,
                 struct udccp_socket **socket,
                 int timeout_ms);

/**
 * The DCCP port; 0 for NULL and in a forked child.
 */
uint16_t udccp_listener_port(const struct udccp_listener *listener);

/**
 * Serves other service codes from now on. Existing connections are not affected.
 *
 * Errors: `-EINVAL`, `-EADDRINUSE`; nothing has changed then.
 */
int udccp_listener_set_services(struct udccp_listener *listener,
                                const uint32_t *first_service,
                                size_t n);

/**
 * Stops listening and frees the listener. Connections that were accepted stay open; those not yet
 * accepted are reset. NULL is allowed.
 */
void udccp_listener_free(struct udccp_listener *listener);

/**
 * Binds a numeric address, for example `0.0.0.0:5004` or `[::]:0` (which serves IPv4 too; port 0
 * picks a free one), or one that ends in `/raw`. `options` may be NULL.
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
 * Serves `n` service codes on DCCP port `port` of this endpoint. 0 stands for the number of its
 * UDP port or, over raw IP, for a free one. `options` may be NULL.
 *
 * Errors: `-EADDRINUSE`: the port already serves one of them. `-EINVAL`: there is no service code,
 * or one is 0xFFFFFFFF.
 */
int udccp_endpoint_listen(struct udccp_endpoint *endpoint,
                          struct udccp_listener **listener,
                          uint16_t port,
                          const uint32_t *first_service,
                          size_t n,
                          const struct udccp_options *options);

/**
 * Writes the bound address, with the UDP port, as `udccp_socket_peer` does.
 */
ssize_t udccp_endpoint_local(const struct udccp_endpoint *endpoint,
                             char *buffer,
                             size_t size);

/**
 * Waits until every connection of this endpoint has ended.
 *
 * Errors: `-EAGAIN`: not in time.
 */
int udccp_endpoint_wait_idle(struct udccp_endpoint *endpoint, int timeout_ms);

/**
 * Frees an endpoint. Its listeners and sockets stay open. NULL is allowed.
 */
void udccp_endpoint_free(struct udccp_endpoint *endpoint);

/**
 * Closes every open connection of this process in order, as `exit()` does, and waits for them to
 * end, for at most the longest linger time. Call it before an end of the process that runs no
 * `atexit` functions; on Windows, before every end, because functions of a DLL run too late there.
 *
 * Connections with `udccp_options_set_close_at_exit` off are left alone.
 */
void udccp_close_all(void);

#if !defined(_WIN32)
/**
 * A descriptor for `poll`, `epoll`, `select` and event loops, which is ready whenever a call would
 * not wait. It is level-triggered, and stays the same for the whole life of the socket. Only wait
 * on it: do not read, write or close it. `udccp_socket_free` closes it.
 *
 * | `poll` says | means |
 * |---|---|
 * | `POLLIN` | `udccp_recv` would return a message, the end or an error |
 * | `POLLOUT` | the handshake is complete, and `udccp_send` would take a message or fail |
 * | `POLLRDHUP` | nothing more will arrive |
 * | `POLLHUP` | the connection has ended, or the handshake has failed |
 * | `POLLERR` | it ended with an error |
 *
 * If the connection was closed here and the peer does not confirm in time, the descriptor shows
 * the end with an error.
 *
 * It uses two descriptors of the process, from the first call on. Errors: `-EMFILE`; that of the
 * handshake, if it failed before the first call.
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
 * Uses a UDP socket that is bound and not connected, from a service manager or with options of
 * your own. The descriptor is duplicated, so yours can be closed at any time. The library reads
 * everything that arrives on the socket.
 *
 * Errors: `-EBADF`: not a descriptor. `-EINVAL`: not a bound, unconnected UDP socket.
 */
int udccp_endpoint_from_fd(struct udccp_endpoint **endpoint,
                           int fd,
                           const struct udccp_options *options);
#endif

/**
 * Sends one message of `len` bytes, waiting while the send queue is full. It arrives whole or not
 * at all. An empty message is allowed.
 *
 * Errors: `-EAGAIN`: not sent in time. `-EMSGSIZE`: larger than `udccp_socket_max_message_size`.
 * `-EPIPE`: the connection is closed. `-ECONNRESET`, `-ETIMEDOUT` and others: it has failed.
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
 * Sends `n` messages in order, waiting while the send queue is full, with as few system calls as
 * possible. Returns how many were queued: `n`, or fewer if the time was over or a message failed,
 * but at least one.
 *
 * Errors: if none was queued, as `udccp_send_message`.
 */
ssize_t udccp_send_batch(struct udccp_socket *socket,
                         const struct udccp_message *first,
                         size_t n,
                         int timeout_ms);

/**
 * Waits until everything sent so far has been handed to the network or dropped.
 *
 * Errors: `-EAGAIN`: not in time. Others: the connection ended first.
 */
int udccp_flush(struct udccp_socket *socket, int timeout_ms);

/**
 * Waits until the fate of everything sent so far is known: the peer has reported it received, or
 * it counts as lost. The statistics have the numbers.
 *
 * Errors: as `udccp_flush`.
 */
int udccp_wait_acknowledged(struct udccp_socket *socket,
                            int timeout_ms);

/**
 * Closes the connection: sends what is queued, within the linger time, then tells the peer, and
 * waits until the peer has confirmed. The peer has another linger time for that, at least 14
 * round-trip times; after it the call fails, and the close goes on in the background. From this
 * call on nothing can be sent; what has arrived can still be read. With a timeout of 0 it starts
 * the close and does not wait.
 *
 * Errors: `-EAGAIN`: not complete in time; the close goes on. Call again, or free the socket.
 * `-ETIMEDOUT`: not everything queued was sent in time, or the peer did not confirm. `-ECONNRESET`
 * and others: the connection had failed before.
 */
int udccp_close(struct udccp_socket *socket,
                int timeout_ms);

/**
 * Waits until the connection has ended, whichever side ends it. Returns 0 if it was closed in
 * order.
 *
 * Errors: `-EAGAIN`: it is still open. `-ECONNRESET` and others: it failed.
 */
int udccp_wait_closed(struct udccp_socket *socket,
                      int timeout_ms);

/**
 * Ends the connection at once with a Reset of code Aborted. Queued messages are dropped. During a
 * handshake, cancels it.
 */
int udccp_abort(struct udccp_socket *socket);

/**
 * Receives one message, waiting for it, and copies it into `buffer`. Returns the bytes written, at
 * most `capacity`; 0 is an empty message. What does not fit is discarded, as with `recv`. A buffer
 * of `UDCCP_MAX_MESSAGE` holds any message; `udccp_next_len` returns the length before, and
 * `udccp_recv_message` after the message is taken.
 *
 * Errors: `UDCCP_EOF`: the connection was closed in order, and everything was read. `-EAGAIN`: no
 * message in time. `-ECONNRESET`, `-ETIMEDOUT` and others: the connection has failed, and what had
 * arrived before was read.
 */
ssize_t udccp_recv(struct udccp_socket *socket,
                   void *buffer,
                   size_t capacity,
                   int timeout_ms);

/**
 * As `udccp_recv`; also returns the message's length and whether it was damaged.
 */
int udccp_recv_message(struct udccp_socket *socket,
                       struct udccp_buffer *buffer,
                       int timeout_ms);

/**
 * Receives up to `n` messages, waiting for the first. Returns their number.
 *
 * Errors: as `udccp_recv`; `-EINVAL`: `n` is 0.
 */
ssize_t udccp_recv_batch(struct udccp_socket *socket,
                         struct udccp_buffer *first,
                         size_t n,
                         int timeout_ms);

/**
 * As `udccp_recv`, but the message stays in the queue.
 */
ssize_t udccp_peek(struct udccp_socket *socket,
                   void *buffer,
                   size_t capacity,
                   int timeout_ms);

/**
 * Length of the next message in bytes; 0 if it is empty.
 *
 * Errors: `-EAGAIN`: there is none. `-EBADF`.
 */
ssize_t udccp_next_len(const struct udccp_socket *socket);

/**
 * Stops reading: discards what waits to be read, and `udccp_recv` returns `UDCCP_EOF`. If the peer
 * sends more, it is told that nobody reads. Sending is not affected. DCCP has no other half-closed
 * state.
 */
int udccp_shutdown_read(struct udccp_socket *socket);

/**
 * How long a close may take to deliver what is queued, in milliseconds. 0: a close resets the
 * connection at once. A close in progress keeps its time.
 *
 * Error of all settings of a socket: `-EAGAIN`: its handshake is in progress.
 */
int udccp_socket_set_linger_ms(struct udccp_socket *socket,
                               uint32_t ms);

/**
 * Limits of the send queue. Messages that already wait stay, even beyond them.
 *
 * Errors: `-EINVAL`: a limit is 0.
 */
int udccp_socket_set_send_queue(struct udccp_socket *socket,
                                size_t bytes,
                                size_t messages);

/**
 * What happens when the send queue is full: `UDCCP_QUEUE_REFUSE` or `UDCCP_QUEUE_DROP_LOWEST`.
 *
 * Errors: `-EINVAL`: neither.
 */
int udccp_socket_set_queue_policy(struct udccp_socket *socket,
                                  int number);

/**
 * Whether this server holds TIMEWAIT itself when it closes.
 */
int udccp_socket_set_server_timewait(struct udccp_socket *socket, bool holds);

/**
 * Asks the peer not to send faster than now, until it is called with false (Slow Receiver, RFC
 * 4340 section 11.6). A receive queue that fills up does so by itself.
 */
int udccp_socket_set_slow_receiver(struct udccp_socket *socket,
                                   bool is_slow);

/**
 * Checksum coverage as negotiated: that of the data we send, and the smallest that we accept; 0
 * covers everything. Either pointer may be NULL.
 *
 * Errors: `-EAGAIN`: the handshake is in progress.
 */
int udccp_socket_coverage(const struct udccp_socket *socket,
                          uint8_t *send,
                          uint8_t *least);

/**
 * Writes the connection's state and counters to `stats`. `size` is `sizeof *stats`; it tells the
 * library which version of the structure the program was compiled with. Members that the library
 * does not know get `UDCCP_UNKNOWN`.
 *
 * Errors: `-EAGAIN`: the handshake is in progress. `-EINVAL`: `size` is 0 or not a multiple of 8.
 */
int udccp_socket_stats(const struct udccp_socket *socket,
                       struct udccp_stats *stats,
                       size_t size);

/**
 * Waits for the next event. Up to 64 unread events are kept, of more the newest; the fates of
 * messages are all kept until they are read.
 *
 * Errors: `-EAGAIN`: none in time. `UDCCP_EOF`: the connection has ended, and all events were
 * read.
 */
int udccp_socket_event(struct udccp_socket *socket,
                       struct udccp_event *event,
                       int timeout_ms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* UDCCP_H */
