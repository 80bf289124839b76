/* Calls in every state: in the handshake, open, half closed, closed, aborted, refused; messages in
 * both directions; descriptors. */
#ifndef _WIN32
#include <poll.h>
#endif
#include <pthread.h>

#include "check.h"

#ifndef _WIN32
/* The events that a descriptor shows within a timeout. */
static int shown(int fd, int events, int timeout_ms)
{
    struct pollfd fds = {.fd = fd, .events = (short)events};
    return poll(&fds, 1, timeout_ms) < 0 ? -1 : fds.revents;
}
#endif

/* Sends three messages of 11 bytes in total, and receives them. Returns the fate of the first. */
static int fate_of_a_batch(udccp_socket *client, udccp_socket *server)
{
    char room[16];
    udccp_buffer buffers[3] = {{.data = room, .capacity = 4},
                               {.data = room + 4, .capacity = 8},
                               {.data = NULL, .capacity = 0}};
    udccp_message batch[3] = {{.data = "one", .len = 3, .token = 1},
                              {.data = "two", .len = 3, .priority = 9},
                              {.data = "three", .len = 5, .lifetime_us = 60000000}};
    GIVES(3, udccp_send_batch(client, batch, 3, LONG_MS));
    ssize_t n = 0;
    size_t bytes = 0;
    while (n < 3) {
        ssize_t more = udccp_recv_batch(server, buffers, 3, LONG_MS);
        if (more <= 0)
            break;
        for (ssize_t i = 0; i < more; i++)
            bytes += buffers[i].message_len;
        n += more;
    }
    GIVES(3, n);
    GIVES(11, bytes);
    GIVES(0, udccp_wait_acknowledged(client, LONG_MS));
    GIVES(0, udccp_flush(client, LONG_MS));
    udccp_event event;
    do
        GIVES(0, udccp_socket_event(client, &event, LONG_MS));
    while (wrong == 0 && event.kind != UDCCP_EVENT_MESSAGE_FATE);
    GIVES(1, event.token);
    return event.reason;
}

static void messages(void)
{
    udccp_socket *client, *server;
    char room[4];
    udccp_buffer buffer = {.data = room, .capacity = sizeof room};
    a_pair(&client, &server, NULL);
    GIVES(-EAGAIN, udccp_recv(server, room, sizeof room, 0));
    GIVES(-EAGAIN, udccp_recv(server, room, sizeof room, 10));
    GIVES(-EAGAIN, udccp_next_len(server));
    FD_GIVES(0, shown(udccp_socket_fd(server), POLLIN, 0));
    FD_GIVES(POLLOUT, shown(udccp_socket_fd(client), POLLOUT, LONG_MS));

    GIVES(0, udccp_send(client, "", 0, LONG_MS));
    FD_GIVES(POLLIN, shown(udccp_socket_fd(server), POLLIN, LONG_MS));
    GIVES(0, udccp_next_len(server));
    GIVES(0, udccp_recv(server, room, sizeof room, LONG_MS));

    GIVES(0, udccp_send(client, "0123456789", 10, LONG_MS));
    GIVES(4, udccp_peek(server, room, 4, LONG_MS));
    GIVES(10, udccp_next_len(server));
    GIVES(0, udccp_recv_message(server, &buffer, LONG_MS));
    GIVES(4, buffer.len);
    GIVES(10, buffer.message_len);
    GIVES(0, buffer.is_corrupt);
    GIVES(0, memcmp(room, "0123", 4));

    /* What is in flight counts as lost if this process does not run for the transmit timeout. */
    int batches = 0, fate;
    do {
        fate = fate_of_a_batch(client, server);
        batches++;
    } while (wrong == 0 && fate == UDCCP_FATE_LOST);
    GIVES(UDCCP_FATE_ACKNOWLEDGED, fate);
    udccp_stats stats;
    GIVES(0, udccp_socket_stats(client, &stats, sizeof stats));
    GIVES(2 + 3 * batches, stats.messages_sent);
    GIVES(10 + 11 * batches, stats.bytes_sent);
    GIVES(1, stats.srtt_ns > 0 && stats.srtt_ns != UDCCP_UNKNOWN);
    udccp_socket_free(client);
    udccp_socket_free(server);
}

static void settings(void)
{
    udccp_options *o = udccp_options_new();
    uint8_t send = 0, least = 0;
    const uint8_t ccids[] = {3, 2};
    GIVES(0, udccp_options_set_coverage(o, 5, 5));
    GIVES(0, udccp_options_set_ccid(o, 3));
    GIVES(0, udccp_options_set_tx_ccids(o, ccids, 2));
    GIVES(0, udccp_options_set_rx_ccids(o, ccids, 2));
    GIVES(0, udccp_options_set_keep_alive_ms(o, 0));
    GIVES(0, udccp_options_set_data_checksum(o, true, true));
    GIVES(0, udccp_options_set_request_data(o, "early", 5));
    GIVES(0, udccp_options_set_ttl(o, 9));
    GIVES(0, udccp_options_set_dscp(o, 46));
    udccp_socket *client, *server;
    a_pair(&client, &server, o);
    udccp_options_free(o);
    char room[8];
    GIVES(5, udccp_recv(server, room, sizeof room, LONG_MS));
    udccp_stats stats;
    GIVES(0, udccp_socket_stats(client, &stats, sizeof stats));
    GIVES(3, stats.tx_ccid);
    GIVES(0, udccp_socket_coverage(server, &send, &least));
    GIVES(5, least);
    GIVES(0, udccp_socket_set_linger_ms(client, 100));
    GIVES(0, udccp_socket_set_send_queue(client, 2000, 2));
    GIVES(0, udccp_socket_set_queue_policy(client, UDCCP_QUEUE_DROP_LOWEST));
    GIVES(0, udccp_socket_set_server_timewait(server, true));
    GIVES(0, udccp_socket_set_slow_receiver(server, true));
    /* Each has a higher priority than those before, so it never waits. */
    for (uint32_t i = 0; i < 1000; i++) {
        udccp_message message = {.data = "x", .len = 1, .priority = i};
        GIVES(0, udccp_send_message(client, &message, 0));
    }
    GIVES(0, udccp_abort(client));
    udccp_socket_free(client);
    udccp_socket_free(server);
}

static void handshake(void)
{
    char address[64], text[80];
    udccp_listener *listener = a_listener(address, NULL);
    udccp_socket *client, *server;
    GIVES(0, udccp_connect_start(&client, address, SERVICE, NULL));
    WITH_DESCRIPTORS(int fd = udccp_socket_fd(client);)
    GIVES(0, udccp_connect_finish(client, LONG_MS));
    GIVES(0, udccp_connect_finish(client, 0));
    FD_GIVES(fd, udccp_socket_fd(client));
    FD_GIVES(POLLOUT, shown(fd, POLLOUT, LONG_MS));
    GIVES(strlen(address), udccp_socket_peer(client, text, sizeof text));
    GIVES(0, strcmp(text, address));
    GIVES(1, udccp_socket_local(client, text, sizeof text) > 0);
    GIVES(SERVICE, udccp_socket_service(client));
    FD_GIVES(POLLIN, shown(udccp_listener_fd(listener), POLLIN, LONG_MS));
    GIVES(0, udccp_accept(listener, &server, 0));
    udccp_socket_free(server);
    udccp_socket_free(client);

    /* A service that is not offered, and a port without listener. */
    GIVES(-EBADRQC, udccp_connect(&client, address, SERVICE + 1, NULL, LONG_MS));
    GIVES(0, udccp_connect_start(&client, address, SERVICE + 1, NULL));
    WITH_DESCRIPTORS(fd = udccp_socket_fd(client);)
    GIVES(-EBADRQC, udccp_connect_finish(client, LONG_MS));
    FD_GIVES(fd, udccp_socket_fd(client));
    FD_GIVES(POLLHUP, shown(fd, 0, LONG_MS) & (POLLHUP | POLLNVAL));
    udccp_socket_free(client);
    GIVES(0, udccp_connect_start(&client, address, SERVICE + 1, NULL));
    GIVES(-EBADRQC, udccp_connect_finish(client, LONG_MS));
    GIVES(-EBADRQC, udccp_connect_finish(client, 0));
    GIVES(-EBADRQC, udccp_send(client, "x", 1, 0));
    GIVES(-EBADRQC, udccp_socket_error(client));
    FD_GIVES(-EBADRQC, udccp_socket_fd(client));
    GIVES(UDCCP_CLOSED, udccp_socket_state(client));
    udccp_socket_free(client);
    udccp_listener_free(listener);
    GIVES(-ECONNREFUSED, udccp_connect(&client, address, SERVICE, NULL, LONG_MS));

    int mute = a_mute_peer(address);
    GIVES(-EAGAIN, udccp_connect(&client, address, SERVICE, NULL, 10));
    GIVES(1, client == NULL);
    GIVES(0, udccp_connect_start(&client, address, SERVICE, NULL));
    GIVES(UDCCP_REQUEST, udccp_socket_state(client));
    FD_GIVES(0, shown(udccp_socket_fd(client), POLLIN | POLLOUT, 0));
    GIVES(-EAGAIN, udccp_connect_finish(client, 0));
    GIVES(-EAGAIN, udccp_connect_finish(client, 10));
    GIVES(-EAGAIN, udccp_send(client, "x", 1, 0));
    GIVES(-EAGAIN, udccp_recv(client, text, sizeof text, 0));
    GIVES(-EAGAIN, udccp_next_len(client));
    GIVES(-EAGAIN, udccp_socket_set_linger_ms(client, 0));
    udccp_stats stats;
    GIVES(-EAGAIN, udccp_socket_stats(client, &stats, sizeof stats));
    GIVES(0, udccp_socket_max_message_size(client));
    GIVES(0, udccp_socket_error(client));
    GIVES(0, udccp_close(client, 0));
    GIVES(-EPIPE, udccp_connect_finish(client, 0));
    GIVES(-EPIPE, udccp_send(client, "x", 1, 0));
    udccp_socket_free(client);
    close(mute);
}

static void endpoint(void)
{
    udccp_endpoint *endpoint;
    udccp_listener *listener;
    udccp_socket *client, *server;
    const uint32_t services[] = {SERVICE, SERVICE + 1}, last = SERVICE + 2;
    char address[80];
    GIVES(0, udccp_endpoint_bind(&endpoint, "127.0.0.1:0", NULL));
    GIVES(1, udccp_endpoint_local(endpoint, address, sizeof address) > 0);
    unsigned port = (unsigned)atoi(strrchr(address, ':') + 1);
    GIVES(0, udccp_endpoint_listen(endpoint, &listener, (uint16_t)port, services, 2, NULL));
    GIVES(0, udccp_connect(&client, address, SERVICE + 1, NULL, LONG_MS));
    GIVES(0, udccp_accept(listener, &server, LONG_MS));
    GIVES(0, udccp_listener_set_services(listener, &last, 1));
    udccp_socket *other;
    GIVES(-EBADRQC, udccp_connect(&other, address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_endpoint_connect_start(endpoint, &other, address, last, NULL));
    udccp_socket_free(other);
    GIVES(-EAGAIN, udccp_endpoint_wait_idle(endpoint, 0));
    GIVES(0, udccp_close(client, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);
    udccp_listener_free(listener);
    GIVES(0, udccp_endpoint_wait_idle(endpoint, LONG_MS));
    udccp_endpoint_free(endpoint);
}

static void ends(void)
{
    udccp_socket *client, *server;
    udccp_event event;
    char room[8];
    a_pair(&client, &server, NULL);
    GIVES(0, udccp_send(client, "last", 4, LONG_MS));
    GIVES(0, udccp_close(client, LONG_MS));
    GIVES(0, udccp_close(client, 0));
    GIVES(-EPIPE, udccp_send(client, "x", 1, LONG_MS));
    udccp_message one = {.data = "x", .len = 1};
    GIVES(-EPIPE, udccp_send_message(client, &one, LONG_MS));
    GIVES(-EPIPE, udccp_send_batch(client, &one, 1, LONG_MS));
    GIVES(UDCCP_EOF, udccp_recv(client, room, sizeof room, LONG_MS));
    GIVES(0, udccp_wait_closed(server, LONG_MS));
    GIVES(4, udccp_recv(server, room, sizeof room, LONG_MS));
    GIVES(UDCCP_EOF, udccp_recv(server, room, sizeof room, LONG_MS));
    GIVES(UDCCP_EOF, udccp_recv(server, room, sizeof room, 0));
    GIVES(UDCCP_EOF, udccp_peek(server, room, sizeof room, 0));
    udccp_buffer buffer = {.data = room, .capacity = sizeof room};
    GIVES(UDCCP_EOF, udccp_recv_batch(server, &buffer, 1, LONG_MS));
    while (udccp_socket_event(server, &event, LONG_MS) == 0)
        ;
    GIVES(UDCCP_EOF, udccp_socket_event(server, &event, LONG_MS));
    GIVES(0, udccp_socket_error(server));
    FD_GIVES(POLLIN | POLLHUP, shown(udccp_socket_fd(server), POLLIN, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);

    a_pair(&client, &server, NULL);
    GIVES(0, udccp_abort(client));
    GIVES(-ECONNRESET, udccp_recv(server, room, sizeof room, LONG_MS));
    SAYS("connection lost");
    GIVES(-ECONNRESET, udccp_send(server, "x", 1, LONG_MS));
    GIVES(-ECONNRESET, udccp_wait_closed(server, LONG_MS));
    GIVES(-ECONNRESET, udccp_close(server, LONG_MS));
    GIVES(-ECONNRESET, udccp_socket_error(server));
    GIVES(1, udccp_socket_reset_text(server, room, sizeof room) >= 0);
    FD_GIVES(POLLERR | POLLHUP, shown(udccp_socket_fd(server), 0, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);

    a_pair(&client, &server, NULL);
    GIVES(0, udccp_shutdown_read(client));
    GIVES(UDCCP_EOF, udccp_recv(client, room, sizeof room, LONG_MS));
    GIVES(0, udccp_send(client, "still", 5, LONG_MS));
    GIVES(5, udccp_recv(server, room, sizeof room, LONG_MS));
    /* The sender gets an event when the peer has stopped reading. */
    GIVES(0, udccp_send(server, "unread", 6, LONG_MS));
    do
        GIVES(0, udccp_socket_event(server, &event, LONG_MS));
    while (wrong == 0 && event.kind != UDCCP_EVENT_PEER_SHUTDOWN_READ);
    GIVES(-EPIPE, udccp_send(server, "x", 1, 0));
    FD_GIVES(POLLOUT, shown(udccp_socket_fd(server), POLLOUT, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);
}

static void *close_it(void *socket)
{
    GIVES(0, udccp_close(socket, LONG_MS));
    return NULL;
}

/* A thread that waits for a message returns when another one closes the socket. */
static void threads(void)
{
    udccp_socket *client, *server;
    pthread_t closer;
    char room[8];
    a_pair(&client, &server, NULL);
    GIVES(0, pthread_create(&closer, NULL, close_it, client));
    GIVES(UDCCP_EOF, udccp_recv(client, room, sizeof room, LONG_MS));
    pthread_join(closer, NULL);
    udccp_socket_free(client);
    udccp_socket_free(server);
}

static void *finish_it(void *socket)
{
    GIVES(-EPIPE, udccp_connect_finish(socket, -1));
    return NULL;
}

static void *receive_it(void *socket)
{
    char room[8];
    GIVES(-EPIPE, udccp_recv(socket, room, sizeof room, -1));
    return NULL;
}

/* Threads that wait for a handshake return when another one cancels it. */
static void cancelled(int (*cancel)(udccp_socket *))
{
    udccp_socket *client;
    pthread_t waiting[3];
    char address[64];
    int mute = a_mute_peer(address);
    GIVES(0, udccp_connect_start(&client, address, SERVICE, NULL));
    WITH_DESCRIPTORS(int fd = udccp_socket_fd(client);)
    for (int i = 0; i < 3; i++)
        GIVES(0, pthread_create(&waiting[i], NULL, i ? finish_it : receive_it, client));
    /* Usually long enough for all of them to wait. */
    nap(100);
    GIVES(0, cancel(client));
    for (int i = 0; i < 3; i++)
        pthread_join(waiting[i], NULL);
    /* The descriptor is still that of the socket, and shows the end. */
    FD_GIVES(fd, udccp_socket_fd(client));
    FD_GIVES(POLLHUP, shown(fd, 0, LONG_MS) & (POLLHUP | POLLNVAL));
    udccp_socket_free(client);
    FD_GIVES(POLLNVAL, shown(fd, 0, 0));
    close(mute);
}

/* All open connections close in order after sending their queues, except those that opted out. */
static void everything_closes(void)
{
    enum { MESSAGES = 100 };
    udccp_socket *client, *server;
    char address[64];
    int message, n = 0;
    udccp_options *stays = udccp_options_new();
    GIVES(0, udccp_options_set_close_at_exit(stays, false));
    udccp_listener *listener = a_listener(address, stays);
    GIVES(0, udccp_connect(&client, address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_accept(listener, &server, LONG_MS));
    udccp_listener_free(listener);
    udccp_options_free(stays);
    for (int i = 0; i < MESSAGES; i++)
        GIVES(0, udccp_send(client, &i, sizeof i, LONG_MS));
    udccp_close_all();
    while (udccp_recv(server, &message, sizeof message, LONG_MS) == sizeof message)
        GIVES(n++, message);
    GIVES(MESSAGES, n);
    GIVES(UDCCP_EOF, udccp_recv(server, &message, sizeof message, LONG_MS));
    GIVES(0, udccp_wait_closed(client, LONG_MS));
    udccp_socket_free(client);
    udccp_socket_free(server);
}

static int close_at_once(udccp_socket *socket)
{
    return udccp_close(socket, 0);
}

int main(void)
{
    messages();
    settings();
    handshake();
    endpoint();
    ends();
    threads();
    cancelled(udccp_abort);
    cancelled(close_at_once);
    everything_closes();
    return wrong != 0;
}
