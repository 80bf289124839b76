/* Echo: a server that serves many clients in one thread with poll(2), and a client that waits.
 *
 *     echo server 127.0.0.1:5004
 *     echo client 127.0.0.1:5004 hello world
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <udccp.h>

#define MAX_CLIENTS 64

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", what, udccp_last_error(), udccp_last_advice());
    return 1;
}

/* Sends back all messages that have arrived. Returns whether the client is still connected. */
static int answer(udccp_socket *client)
{
    static char message[UDCCP_MAX_MESSAGE];
    for (;;) {
        ssize_t n = udccp_recv(client, message, sizeof message, 0);
        if (n == -EAGAIN)
            return 1;
        if (n < 0)
            return 0;
        /* A client that reads too slowly loses answers, and does not delay others. */
        int sent = udccp_send(client, message, (size_t)n, 0);
        if (sent < 0 && sent != -EAGAIN)
            return 0;
    }
}

static int serve(const char *address, uint32_t service)
{
    udccp_listener *listener;
    if (udccp_listen(&listener, address, &service, 1, NULL) < 0)
        return fail("listen");
    printf("listening on port %u\n", udccp_listener_port(listener));
    fflush(stdout);

    udccp_socket *clients[MAX_CLIENTS];
    struct pollfd fds[1 + MAX_CLIENTS];
    size_t n = 0;
    for (;;) {
        /* Clients above the limit wait in the backlog, and must not wake the loop. */
        short accepts = n < MAX_CLIENTS ? POLLIN : 0;
        fds[0] = (struct pollfd){.fd = udccp_listener_fd(listener), .events = accepts};
        for (size_t i = 0; i < n; i++)
            fds[1 + i] = (struct pollfd){.fd = udccp_socket_fd(clients[i]), .events = POLLIN};
        if (poll(fds, (nfds_t)(1 + n), -1) < 0)
            continue;
        for (size_t i = n; i-- > 0;) {
            if (fds[1 + i].revents != 0 && !answer(clients[i])) {
                udccp_socket_free(clients[i]);
                clients[i] = clients[--n];
            }
        }
        while (n < MAX_CLIENTS && udccp_accept(listener, &clients[n], 0) == 0)
            n++;
    }
}

static int ask(const char *address, uint32_t service, char **words, int n)
{
    udccp_socket *server;
    if (udccp_connect(&server, address, service, NULL, 10000) < 0)
        return fail("connect");
    for (int i = 0; i < n; i++) {
        char answer[UDCCP_MAX_MESSAGE];
        if (udccp_send(server, words[i], strlen(words[i]), -1) < 0)
            return fail("send");
        ssize_t len = udccp_recv(server, answer, sizeof answer, 5000);
        if (len < 0)
            return fail("recv");
        printf("%.*s\n", (int)len, answer);
    }
    if (udccp_close(server, 5000) < 0)
        return fail("close");
    udccp_socket_free(server);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t service;
    udccp_service_code("SC:echo", &service);
    if (argc == 3 && strcmp(argv[1], "server") == 0)
        return serve(argv[2], service);
    if (argc > 3 && strcmp(argv[1], "client") == 0)
        return ask(argv[2], service, argv + 3, argc - 3);
    fprintf(stderr, "usage: echo server ADDRESS | echo client ADDRESS WORD...\n");
    return 2;
}
