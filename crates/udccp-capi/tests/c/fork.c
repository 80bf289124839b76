/* A forked child does not disturb the connections of its parent, and opens its own. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FORKS 200

/* Queries and settings on a socket of the parent. */
static void queries_and_settings(udccp_socket *socket)
{
    char text[80];
    uint8_t send, least;
    udccp_stats stats;
    GIVES(-EBADF, udccp_socket_state(socket));
    SAYS("forked child");
    GIVES(-EBADF, udccp_socket_error(socket));
    GIVES(-EBADF, udccp_socket_reset_text(socket, text, sizeof text));
    GIVES(-EBADF, udccp_socket_peer(socket, text, sizeof text));
    GIVES(-EBADF, udccp_socket_local(socket, text, sizeof text));
    GIVES(-EBADF, udccp_socket_fd(socket));
    GIVES(-EBADF, udccp_socket_coverage(socket, &send, &least));
    GIVES(-EBADF, udccp_socket_stats(socket, &stats, sizeof stats));
    GIVES(-EBADF, udccp_socket_set_linger_ms(socket, 0));
    GIVES(-EBADF, udccp_socket_set_send_queue(socket, 1, 1));
    GIVES(-EBADF, udccp_socket_set_queue_policy(socket, UDCCP_QUEUE_REFUSE));
    GIVES(-EBADF, udccp_socket_set_server_timewait(socket, true));
    GIVES(-EBADF, udccp_socket_set_slow_receiver(socket, true));
    GIVES(0, udccp_socket_service(socket));
    GIVES(0, udccp_socket_max_message_size(socket));
}

/* The other calls. */
static void messages_and_ends(udccp_socket *socket)
{
    char room[8];
    udccp_message message = {.data = "x", .len = 1};
    udccp_buffer buffer = {.data = room, .capacity = sizeof room};
    udccp_event event;
    GIVES(-EBADF, udccp_connect_finish(socket, LONG_MS));
    GIVES(-EBADF, udccp_send(socket, "x", 1, LONG_MS));
    GIVES(-EBADF, udccp_send_message(socket, &message, 0));
    GIVES(-EBADF, udccp_send_batch(socket, &message, 1, LONG_MS));
    GIVES(-EBADF, udccp_flush(socket, LONG_MS));
    GIVES(-EBADF, udccp_wait_acknowledged(socket, LONG_MS));
    GIVES(-EBADF, udccp_recv(socket, room, sizeof room, LONG_MS));
    GIVES(-EBADF, udccp_recv_message(socket, &buffer, 0));
    GIVES(-EBADF, udccp_recv_batch(socket, &buffer, 1, LONG_MS));
    GIVES(-EBADF, udccp_peek(socket, room, sizeof room, LONG_MS));
    GIVES(-EBADF, udccp_next_len(socket));
    GIVES(-EBADF, udccp_socket_event(socket, &event, LONG_MS));
    GIVES(-EBADF, udccp_shutdown_read(socket));
    GIVES(-EBADF, udccp_wait_closed(socket, LONG_MS));
    GIVES(-EBADF, udccp_abort(socket));
    GIVES(-EBADF, udccp_close(socket, LONG_MS));
}

static void listener_and_endpoint(udccp_listener *listener, udccp_endpoint *endpoint)
{
    const uint32_t service = SERVICE;
    char text[80];
    udccp_socket *socket;
    udccp_listener *other;
    GIVES(-EBADF, udccp_accept(listener, &socket, LONG_MS));
    GIVES(-EBADF, udccp_listener_fd(listener));
    GIVES(-EBADF, udccp_listener_set_services(listener, &service, 1));
    GIVES(0, udccp_listener_port(listener));
    GIVES(-EBADF, udccp_endpoint_local(endpoint, text, sizeof text));
    GIVES(-EBADF, udccp_endpoint_wait_idle(endpoint, LONG_MS));
    GIVES(-EBADF, udccp_endpoint_listen(endpoint, &other, 7, &service, 1, NULL));
    GIVES(-EBADF, udccp_endpoint_connect_start(endpoint, &socket, "127.0.0.1:9", SERVICE, NULL));
}

/* The objects of the parent. */
struct parent {
    udccp_listener *listener;
    udccp_endpoint *endpoint;
    udccp_socket *client;
    udccp_socket *connecting;
    char address[64];
    char mute_address[64];
};

static void in_child(const struct parent *parent)
{
    udccp_socket *own;
    udccp_socket *theirs[] = {parent->client, parent->connecting};
    for (int i = 0; i < 2; i++) {
        queries_and_settings(theirs[i]);
        messages_and_ends(theirs[i]);
        udccp_socket_free(theirs[i]);
    }
    listener_and_endpoint(parent->listener, parent->endpoint);
    udccp_listener_free(parent->listener);
    udccp_endpoint_free(parent->endpoint);
    /* A connection of the child to the parent. */
    GIVES(0, udccp_connect(&own, parent->address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_send(own, "child", 5, LONG_MS));
    GIVES(0, udccp_close(own, LONG_MS));
    udccp_socket_free(own);
}

static void a_child(const struct parent *parent, udccp_socket *server)
{
    char room[8];
    udccp_socket *of_child;
    pid_t child = fork();
    if (child == 0) {
        forked();
        in_child(parent);
        exit(wrong != 0);
    }
    GIVES(0, udccp_accept(parent->listener, &of_child, LONG_MS));
    GIVES(5, udccp_recv(of_child, room, sizeof room, LONG_MS));
    GIVES(UDCCP_EOF, udccp_recv(of_child, room, sizeof room, LONG_MS));
    udccp_socket_free(of_child);
    int status = 0;
    GIVES(child, waitpid(child, &status, 0));
    GIVES(0, status);
    /* The parent's sockets still work. */
    GIVES(0, udccp_send(parent->client, "parent", 6, LONG_MS));
    GIVES(6, udccp_recv(server, room, sizeof room, LONG_MS));
    GIVES(UDCCP_REQUEST, udccp_socket_state(parent->connecting));
    GIVES(-EAGAIN, udccp_endpoint_wait_idle(parent->endpoint, 0));
}

static atomic_bool is_over;

static void *query_repeatedly(void *socket)
{
    while (!is_over)
        GIVES(-EAGAIN, udccp_connect_finish(socket, 0));
    return NULL;
}

/* A fork may copy a lock that another thread holds; in the child it would never be released. */
static void forks_during_calls(udccp_socket *connecting)
{
    pthread_t asking;
    GIVES(0, pthread_create(&asking, NULL, query_repeatedly, connecting));
    for (int i = 0; i < FORKS && wrong == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            forked();
            alarm(LONG_MS / 1000);
            _exit(udccp_socket_state(connecting) != -EBADF);
        }
        int status = 0;
        GIVES(child, waitpid(child, &status, 0));
        GIVES(0, status);
    }
    is_over = true;
    pthread_join(asking, NULL);
}

int main(void)
{
    struct parent parent;
    udccp_socket *server;
    parent.listener = a_listener(parent.address, NULL);
    int mute = a_mute_peer(parent.mute_address);
    GIVES(0, udccp_connect(&parent.client, parent.address, SERVICE, NULL, LONG_MS));
    GIVES(0, udccp_accept(parent.listener, &server, LONG_MS));
    GIVES(0, udccp_endpoint_bind(&parent.endpoint, "127.0.0.1:0", NULL));
    GIVES(0, udccp_endpoint_connect_start(parent.endpoint, &parent.connecting, parent.mute_address,
                                          SERVICE, NULL));
    a_child(&parent, server);
    forks_during_calls(parent.connecting);
    GIVES(0, udccp_close(parent.client, LONG_MS));
    udccp_socket_free(parent.client);
    udccp_socket_free(parent.connecting);
    udccp_socket_free(server);
    udccp_endpoint_free(parent.endpoint);
    udccp_listener_free(parent.listener);
    close(mute);
    return wrong != 0;
}
