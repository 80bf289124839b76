/* Sends a file. DCCP does not repeat lost data, so this program does: each block is a message
 * with a token, and an event reports what happened to it.
 *
 *     file receive 127.0.0.1:5004 copy
 *     file send    127.0.0.1:5004 original
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <udccp.h>

#define BLOCK 1024
#define HEADER 8

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", what, udccp_last_error(), udccp_last_advice());
    return 1;
}

static int receive(const char *address, uint32_t service, const char *path)
{
    udccp_listener *listener;
    udccp_socket *sender;
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    if (udccp_listen(&listener, address, &service, 1, NULL) < 0)
        return fail("listen");
    printf("listening on port %u\n", udccp_listener_port(listener));
    fflush(stdout);
    if (udccp_accept(listener, &sender, -1) < 0)
        return fail("accept");
    udccp_listener_free(listener);

    unsigned char message[UDCCP_MAX_MESSAGE];
    ssize_t n;
    while ((n = udccp_recv(sender, message, sizeof message, -1)) >= 0) {
        uint64_t block = 0;
        if (n < HEADER)
            continue;
        for (int i = 0; i < HEADER; i++)
            block = block << 8 | message[i];
        fseek(file, (long)(block * BLOCK), SEEK_SET);
        fwrite(message + HEADER, 1, (size_t)n - HEADER, file);
    }
    if (fclose(file) != 0) {
        perror(path);
        return 1;
    }
    /* The sender closes in order only after everything has arrived. */
    if (n != UDCCP_EOF)
        return fail("receive");
    udccp_socket_free(sender);
    return 0;
}

static int send_block(udccp_socket *socket, FILE *file, uint64_t block)
{
    unsigned char data[HEADER + BLOCK];
    for (int i = 0; i < HEADER; i++)
        data[i] = (unsigned char)(block >> (8 * (HEADER - 1 - i)));
    fseek(file, (long)(block * BLOCK), SEEK_SET);
    size_t n = fread(data + HEADER, 1, BLOCK, file);
    udccp_message message = {.data = data, .len = HEADER + n, .token = block + 1};
    return udccp_send_message(socket, &message, -1);
}

/* Waits for the fate of one block. Returns 1 if it arrived, 0 if it did not, or an error. */
static int settle(udccp_socket *socket, uint64_t *block, int timeout_ms)
{
    udccp_event event;
    int error;
    do {
        if ((error = udccp_socket_event(socket, &event, timeout_ms)) < 0)
            return error;
    } while (event.kind != UDCCP_EVENT_MESSAGE_FATE);
    *block = event.token - 1;
    return event.reason == UDCCP_FATE_ACKNOWLEDGED;
}

static int send_file(const char *address, uint32_t service, const char *path)
{
    udccp_socket *socket;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    uint64_t blocks = ((uint64_t)ftell(file) + BLOCK - 1) / BLOCK;
    if (udccp_connect(&socket, address, service, NULL, 10000) < 0)
        return fail("connect");
    uint64_t next = 0, arrived = 0, again = 0;
    while (arrived < blocks) {
        uint64_t block = next;
        if (next < blocks && send_block(socket, file, next++) < 0)
            return fail("send");
        /* Polls for events while there is something to send, and waits for them after that. */
        int is_there = settle(socket, &block, next < blocks ? 0 : 60000);
        if (is_there > 0) {
            arrived++;
        } else if (is_there == 0) {
            again++;
            if (send_block(socket, file, block) < 0)
                return fail("send again");
        } else if (is_there != -EAGAIN || next == blocks) {
            return fail("event");
        }
    }
    if (udccp_close(socket, 10000) < 0)
        return fail("close");
    printf("%llu blocks, %llu sent again\n", (unsigned long long)blocks,
           (unsigned long long)again);
    udccp_socket_free(socket);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t service;
    udccp_service_code("SC:file", &service);
    if (argc == 4 && strcmp(argv[1], "receive") == 0)
        return receive(argv[2], service, argv[3]);
    if (argc == 4 && strcmp(argv[1], "send") == 0)
        return send_file(argv[2], service, argv[3]);
    fprintf(stderr, "usage: file receive ADDRESS FILE | file send ADDRESS FILE\n");
    return 2;
}
