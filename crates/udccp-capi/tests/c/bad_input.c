/* All calls with NULL, wrong values or wrong lengths give an error with a text, and never crash. */
#ifndef _WIN32
#include <fcntl.h>
#endif

#include "check.h"

static void options(void)
{
    udccp_options *o = udccp_options_new();
    const uint8_t ccids[] = {3, 2};
    GIVES(-EBADF, udccp_options_set_ccid(NULL, 2));
    GIVES(-EBADF, udccp_options_set_tx_ccids(NULL, ccids, 2));
    GIVES(-EBADF, udccp_options_set_rx_ccids(NULL, ccids, 2));
    GIVES(-EBADF, udccp_options_set_coverage(NULL, 0, 0));
    GIVES(-EBADF, udccp_options_set_send_queue(NULL, 1, 1));
    GIVES(-EBADF, udccp_options_set_recv_queue(NULL, 1, 1));
    GIVES(-EBADF, udccp_options_set_queue_policy(NULL, 0));
    GIVES(-EBADF, udccp_options_set_linger_ms(NULL, 1));
    GIVES(-EBADF, udccp_options_set_keep_alive_ms(NULL, 1));
    GIVES(-EBADF, udccp_options_set_idle_limit_ms(NULL, 1));
    GIVES(-EBADF, udccp_options_set_request_retries(NULL, 1, 1));
    GIVES(-EBADF, udccp_options_set_ecn(NULL, true));
    GIVES(-EBADF, udccp_options_set_data_checksum(NULL, true, true));
    GIVES(-EBADF, udccp_options_set_path_mtu(NULL, 1400));
    GIVES(-EBADF, udccp_options_set_server_timewait(NULL, true));
    GIVES(-EBADF, udccp_options_set_backlog(NULL, 1));
    GIVES(-EBADF, udccp_options_set_local_port(NULL, 1));
    GIVES(-EBADF, udccp_options_set_request_data(NULL, "x", 1));
    GIVES(-EBADF, udccp_options_set_ttl(NULL, 1));
    GIVES(-EBADF, udccp_options_set_dscp(NULL, 1));
    GIVES(-EBADF, udccp_options_set_mark(NULL, 1));
    GIVES(-EBADF, udccp_options_set_device(NULL, "lo"));
    GIVES(-EBADF, udccp_options_set_reuse_port(NULL, true));
    GIVES(-EBADF, udccp_options_set_kernel_buffers(NULL, 1, 1));
    GIVES(-EBADF, udccp_options_set_close_at_exit(NULL, true));

    GIVES(0, udccp_options_set_tx_ccids(o, ccids, 2));
    GIVES(-EFAULT, udccp_options_set_tx_ccids(o, NULL, 2));
    GIVES(-EINVAL, udccp_options_set_tx_ccids(o, ccids, 0));
    SAYS("list of CCIDs is empty");
    GIVES(-EINVAL, udccp_options_set_rx_ccids(o, ccids, SIZE_MAX));
    GIVES(-EINVAL, udccp_options_set_rx_ccids(o, ccids, UINT32_MAX));
    SAYS("250");
    GIVES(-EINVAL, udccp_options_set_coverage(o, 16, 0));
    SAYS("16");
    GIVES(-EINVAL, udccp_options_set_coverage(o, 0, 255));
    GIVES(-EINVAL, udccp_options_set_send_queue(o, 0, 1));
    GIVES(-EINVAL, udccp_options_set_recv_queue(o, 1, 0));
    GIVES(-EINVAL, udccp_options_set_queue_policy(o, 2));
    GIVES(-EINVAL, udccp_options_set_queue_policy(o, -1));
    GIVES(-EINVAL, udccp_options_set_request_retries(o, 1, 0));
    GIVES(-EINVAL, udccp_options_set_backlog(o, 0));
    GIVES(-EINVAL, udccp_options_set_local_port(o, 0));
    GIVES(-EFAULT, udccp_options_set_request_data(o, NULL, 1));
    GIVES(-EMSGSIZE, udccp_options_set_request_data(o, "x", UINT32_MAX));
    GIVES(0, udccp_options_set_request_data(o, NULL, 0));
    GIVES(-EINVAL, udccp_options_set_ttl(o, 0));
    GIVES(-EINVAL, udccp_options_set_dscp(o, 64));
    GIVES(-EFAULT, udccp_options_set_device(o, NULL));
    GIVES(-EINVAL, udccp_options_set_device(o, ""));
    GIVES(-EINVAL, udccp_options_set_device(o, "\xff"));
    GIVES(-EINVAL, udccp_options_set_kernel_buffers(o, 0, 1));
    udccp_options_free(o);
    udccp_options_free(NULL);
}

static void null_sockets(void)
{
    char room[8];
    udccp_stats stats;
    udccp_event event;
    udccp_buffer buffer = {.data = room, .capacity = sizeof room};
    udccp_message message = {.data = room, .len = 1};
    GIVES(-EBADF, udccp_connect_finish(NULL, 0));
    FD_GIVES(-EBADF, udccp_socket_fd(NULL));
    GIVES(-EBADF, udccp_socket_state(NULL));
    GIVES(-EBADF, udccp_socket_error(NULL));
    GIVES(-EBADF, udccp_socket_reset_text(NULL, room, sizeof room));
    GIVES(-EBADF, udccp_socket_peer(NULL, room, sizeof room));
    GIVES(-EBADF, udccp_socket_local(NULL, room, sizeof room));
    GIVES(0, udccp_socket_service(NULL));
    GIVES(0, udccp_socket_max_message_size(NULL));
    GIVES(-EBADF, udccp_send(NULL, room, 1, 0));
    GIVES(-EBADF, udccp_send_message(NULL, &message, 0));
    GIVES(-EBADF, udccp_send_batch(NULL, &message, 1, 0));
    GIVES(-EBADF, udccp_recv(NULL, room, sizeof room, 0));
    GIVES(-EBADF, udccp_recv_message(NULL, &buffer, 0));
    GIVES(-EBADF, udccp_recv_batch(NULL, &buffer, 1, 0));
    GIVES(-EBADF, udccp_peek(NULL, room, sizeof room, 0));
    GIVES(-EBADF, udccp_next_len(NULL));
    GIVES(-EBADF, udccp_flush(NULL, 0));
    GIVES(-EBADF, udccp_wait_acknowledged(NULL, 0));
    GIVES(-EBADF, udccp_close(NULL, 0));
    GIVES(-EBADF, udccp_wait_closed(NULL, 0));
    GIVES(-EBADF, udccp_abort(NULL));
    GIVES(-EBADF, udccp_shutdown_read(NULL));
    GIVES(-EBADF, udccp_socket_set_linger_ms(NULL, 1));
    GIVES(-EBADF, udccp_socket_set_send_queue(NULL, 1, 1));
    GIVES(-EBADF, udccp_socket_set_queue_policy(NULL, 0));
    GIVES(-EBADF, udccp_socket_set_server_timewait(NULL, true));
    GIVES(-EBADF, udccp_socket_set_slow_receiver(NULL, true));
    GIVES(-EBADF, udccp_socket_coverage(NULL, NULL, NULL));
    GIVES(-EBADF, udccp_socket_stats(NULL, &stats, sizeof stats));
    GIVES(-EBADF, udccp_socket_event(NULL, &event, 0));
    SAYS("handle is NULL");
    udccp_socket_free(NULL);
}

#ifndef _WIN32
static void other_descriptors(void)
{
    udccp_endpoint *endpoint;
    GIVES(-EBADF, udccp_endpoint_from_fd(&endpoint, -1, NULL));
    GIVES(-EBADF, udccp_endpoint_from_fd(&endpoint, 1000000, NULL));
    int pipe_ends[2];
    GIVES(0, pipe(pipe_ends));
    GIVES(1, udccp_endpoint_from_fd(&endpoint, pipe_ends[0], NULL) < 0);
    GIVES(0, fcntl(pipe_ends[0], F_GETFD));
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    GIVES(1, udccp_endpoint_from_fd(&endpoint, tcp, NULL) < 0);
    GIVES(1, endpoint == NULL);
    close(tcp);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}
#endif

static void null_listeners_and_endpoints(void)
{
    const uint32_t service = SERVICE;
    char room[8];
    udccp_socket *made;
    udccp_listener *listener;
    GIVES(-EBADF, udccp_accept(NULL, &made, 0));
    FD_GIVES(-EBADF, udccp_listener_fd(NULL));
    GIVES(0, udccp_listener_port(NULL));
    GIVES(-EBADF, udccp_listener_set_services(NULL, &service, 1));
    udccp_listener_free(NULL);
    GIVES(-EBADF, udccp_endpoint_connect_start(NULL, &made, "127.0.0.1:1", 0, NULL));
    GIVES(-EBADF, udccp_endpoint_listen(NULL, &listener, 1, &service, 1, NULL));
    GIVES(-EBADF, udccp_endpoint_local(NULL, room, sizeof room));
    GIVES(-EBADF, udccp_endpoint_wait_idle(NULL, 0));
    udccp_endpoint_free(NULL);
    GIVES(-EFAULT, udccp_endpoint_bind(NULL, "127.0.0.1:0", NULL));
    udccp_endpoint *endpoint = (udccp_endpoint *)room;
    GIVES(-EFAULT, udccp_endpoint_bind(&endpoint, NULL, NULL));
    GIVES(1, endpoint == NULL);
    GIVES(-EINVAL, udccp_endpoint_bind(&endpoint, "here", NULL));
    WITH_DESCRIPTORS(other_descriptors();)
}

static void addresses(void)
{
    const uint32_t service = SERVICE, invalid = UINT32_MAX;
    udccp_socket *socket = (udccp_socket *)&service;
    udccp_listener *listener = (udccp_listener *)&service;
    GIVES(-EFAULT, udccp_connect(NULL, "127.0.0.1:1", SERVICE, NULL, 0));
    GIVES(-EFAULT, udccp_connect(&socket, NULL, SERVICE, NULL, 0));
    GIVES(1, socket == NULL);
    GIVES(-EINVAL, udccp_connect(&socket, "", SERVICE, NULL, 0));
    GIVES(-EINVAL, udccp_connect(&socket, "127.0.0.1", SERVICE, NULL, 0));
    GIVES(-EINVAL, udccp_connect(&socket, "127.0.0.1:99999", SERVICE, NULL, 0));
    GIVES(-EINVAL, udccp_connect(&socket, "127.0.0.1:1/", SERVICE, NULL, 0));
    GIVES(-EINVAL, udccp_connect(&socket, "\xff:1", SERVICE, NULL, 0));
    GIVES(-ENOENT, udccp_connect(&socket, "nobody.invalid:1", SERVICE, NULL, LONG_MS));
    SAYS("nobody.invalid");
    GIVES(-EINVAL, udccp_connect(&socket, "127.0.0.1:1", invalid, NULL, LONG_MS));
    GIVES(-EINVAL, udccp_connect_start(&socket, "localhost:1", SERVICE, NULL));
    GIVES(-EFAULT, udccp_connect_start(NULL, "127.0.0.1:1", SERVICE, NULL));
    udccp_options *o = udccp_options_new();
    GIVES(0, udccp_options_set_ccid(o, 199));
    GIVES(-EOPNOTSUPP, udccp_connect(&socket, "127.0.0.1:1", SERVICE, o, LONG_MS));
    GIVES(0, udccp_options_set_ccid(o, 2));
    GIVES(0, udccp_options_set_device(o, "no-such-if0"));
    GIVES(1, udccp_connect(&socket, "127.0.0.1:1", SERVICE, o, LONG_MS) < 0);
    udccp_options_free(o);

    GIVES(-EFAULT, udccp_listen(NULL, "127.0.0.1:0", &service, 1, NULL));
    GIVES(-EFAULT, udccp_listen(&listener, NULL, &service, 1, NULL));
    GIVES(-EFAULT, udccp_listen(&listener, "127.0.0.1:0", NULL, 1, NULL));
    GIVES(-EINVAL, udccp_listen(&listener, "127.0.0.1:0", &service, 0, NULL));
    GIVES(-EINVAL, udccp_listen(&listener, "127.0.0.1:0", &invalid, 1, NULL));
    GIVES(-EINVAL, udccp_listen(&listener, "127.0.0.1:0", &service, SIZE_MAX / 2, NULL));
#ifndef _WIN32
    /* Wine binds to any address. */
    GIVES(-EADDRNOTAVAIL, udccp_listen(&listener, "192.0.2.1:5004", &service, 1, NULL));
    GIVES(1, listener == NULL);
#endif
    char address[64];
    udccp_listener *first = a_listener(address, NULL);
    GIVES(-EADDRINUSE, udccp_listen(&listener, address, &service, 1, NULL));
    GIVES(-EINVAL, udccp_listener_set_services(first, &invalid, 1));
    GIVES(-EFAULT, udccp_listener_set_services(first, NULL, 1));
    GIVES(-EFAULT, udccp_accept(first, NULL, 0));
    GIVES(-EAGAIN, udccp_accept(first, &socket, 0));
    GIVES(-EAGAIN, udccp_accept(first, &socket, 10));
    GIVES(1, socket == NULL);
    udccp_listener_free(first);
}

static void texts(void)
{
    char room[8];
    uint32_t code = 7;
    GIVES(0, udccp_service_code("SC:test", &code));
    GIVES(SERVICE, code);
    GIVES(-EFAULT, udccp_service_code(NULL, &code));
    GIVES(-EFAULT, udccp_service_code("SC:test", NULL));
    GIVES(-EINVAL, udccp_service_code("test", &code));
    SAYS("SC:abcd");
    GIVES(-EINVAL, udccp_service_code("SC:\xff", &code));
    GIVES(SERVICE, code);
    memset(room, 'x', sizeof room);
    GIVES(7, udccp_service_text(SERVICE, NULL, 0));
    GIVES(-EFAULT, udccp_service_text(SERVICE, NULL, 1));
    GIVES(7, udccp_service_text(SERVICE, room, 4));
    GIVES(0, memcmp(room, "SC:\0xxxx", 8));
    GIVES(7, udccp_service_text(SERVICE, room, 8));
    GIVES(0, strcmp(room, "SC:test"));
    GIVES(1, udccp_strerror(-EAGAIN)[0] != '\0' && udccp_strerror(12345)[0] != '\0');
    GIVES(0, strcmp(udccp_version(), UDCCP_VERSION));
}

static void open_sockets(void)
{
    udccp_socket *client, *server;
    char room[8];
    udccp_event event;
    union {
        udccp_stats known;
        uint64_t words[sizeof(udccp_stats) / 8 + 2];
    } stats;
    a_pair(&client, &server, NULL);
    size_t most = udccp_socket_max_message_size(client);
    char *large = calloc(1, most + 1);
    GIVES(-EFAULT, udccp_send(client, NULL, 1, 0));
    GIVES(-EINVAL, udccp_send(client, room, SIZE_MAX, 0));
    GIVES(-EMSGSIZE, udccp_send(client, large, most + 1, 0));
    SAYS("exceeds the maximum");
    /* A negative 32-bit length, and lengths above the maximum: nothing is read. */
    const size_t wild[] = {UINT32_MAX, SIZE_MAX / 2, UDCCP_MAX_MESSAGE + 1};
    for (size_t i = 0; i < 3; i++) {
        udccp_message messages[2] = {{.data = "a", .len = 1}, {.data = room, .len = wild[i]}};
        GIVES(-EMSGSIZE, udccp_send(client, room, wild[i], 0));
        SAYS("exceeds the maximum");
        GIVES(-EMSGSIZE, udccp_send_message(client, messages + 1, 0));
        GIVES(-EMSGSIZE, udccp_send_batch(client, messages + 1, 1, 0));
        GIVES(1, udccp_send_batch(client, messages, 2, LONG_MS));
        GIVES(1, udccp_recv(server, room, sizeof room, LONG_MS));
    }
    GIVES(-EFAULT, udccp_send_message(client, NULL, 0));
    udccp_message message = {.data = room, .len = 1, .reserved = 1};
    GIVES(-EINVAL, udccp_send_message(client, &message, 0));
    GIVES(-EFAULT, udccp_send_batch(client, NULL, 1, 0));
    GIVES(0, udccp_send_batch(client, NULL, 0, 0));
    udccp_message batch[3] = {{.data = "a", .len = 1}, {.data = large, .len = most + 1}};
    GIVES(1, udccp_send_batch(client, batch, 3, LONG_MS));
    GIVES(-EMSGSIZE, udccp_send_batch(client, batch + 1, 2, LONG_MS));
    free(large);

    /* An invalid buffer does not lose the message. */
    GIVES(-EFAULT, udccp_recv(server, NULL, 8, LONG_MS));
    GIVES(-EINVAL, udccp_recv(server, room, SIZE_MAX, LONG_MS));
    GIVES(-EFAULT, udccp_recv_message(server, NULL, LONG_MS));
    udccp_buffer buffer = {.data = NULL, .capacity = 8};
    GIVES(-EFAULT, udccp_recv_message(server, &buffer, LONG_MS));
    GIVES(-EFAULT, udccp_recv_batch(server, NULL, 1, LONG_MS));
    GIVES(-EINVAL, udccp_recv_batch(server, NULL, 0, LONG_MS));
    GIVES(-EFAULT, udccp_peek(server, NULL, 8, LONG_MS));
    GIVES(1, udccp_recv(server, room, sizeof room, LONG_MS));

    GIVES(-EFAULT, udccp_socket_event(client, NULL, 0));
    GIVES(-EFAULT, udccp_socket_stats(client, NULL, sizeof stats.known));
    GIVES(-EINVAL, udccp_socket_stats(client, &stats.known, 0));
    GIVES(-EINVAL, udccp_socket_stats(client, &stats.known, 12));
    memset(&stats, 0, sizeof stats);
    GIVES(0, udccp_socket_stats(client, &stats.known, 8));
    GIVES(2, stats.known.tx_ccid);
    GIVES(0, stats.words[1]);
    GIVES(0, udccp_socket_stats(client, &stats.known, sizeof stats));
    GIVES(1, stats.words[sizeof(udccp_stats) / 8 + 1] == UDCCP_UNKNOWN);
    GIVES(1, stats.known.x_bytes_per_sec == UDCCP_UNKNOWN);
    GIVES(-EINVAL, udccp_socket_set_send_queue(client, 0, 1));
    GIVES(-EINVAL, udccp_socket_set_queue_policy(client, 7));
    GIVES(0, udccp_socket_coverage(client, NULL, NULL));
    GIVES(-EFAULT, udccp_socket_peer(client, NULL, 1));
    GIVES(0, udccp_socket_error(client));
    while (udccp_socket_event(client, &event, 0) == 0)
        ;
    GIVES(-EAGAIN, udccp_socket_event(client, &event, 0));
    udccp_socket_free(client);
    udccp_socket_free(server);
}

int main(void)
{
    options();
    null_sockets();
    null_listeners_and_endpoints();
    addresses();
    texts();
    open_sockets();
    return wrong != 0;
}
