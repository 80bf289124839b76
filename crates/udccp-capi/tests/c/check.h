/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <udccp.h>

#define LONG_MS 30000

/* Counts what is wrong, and says where. */
static int wrong;
#define GIVES(expected, call)                                                                      \
    do {                                                                                           \
        long long got_ = (long long)(call), expected_ = (long long)(expected);                     \
        if (got_ != expected_) {                                                                   \
            fprintf(stderr, "%s:%d: %s gives %lld (%s), not %lld\n", __FILE__, __LINE__, #call,    \
                    got_, udccp_last_error(), expected_);                                          \
            wrong++;                                                                               \
        }                                                                                          \
    } while (0)
#define SAYS(part)                                                                                 \
    GIVES(1, strstr(udccp_last_error(), part) != NULL && udccp_last_advice()[0] != '\0')

#define SERVICE 0x74657374u

/* A listener on a free port of this host, and its address. */
static inline udccp_listener *a_listener(char address[64], const udccp_options *options)
{
    const uint32_t service = SERVICE;
    udccp_listener *listener;
    GIVES(0, udccp_listen(&listener, "127.0.0.1:0", &service, 1, options));
    snprintf(address, 64, "127.0.0.1:%u", udccp_listener_port(listener));
    return listener;
}

/* Both ends of a connection. */
static inline void a_pair(udccp_socket **client, udccp_socket **server, const udccp_options *options)
{
    char address[64];
    udccp_listener *listener = a_listener(address, options);
    GIVES(0, udccp_connect(client, address, SERVICE, options, LONG_MS));
    GIVES(0, udccp_accept(listener, server, LONG_MS));
    udccp_listener_free(listener);
}

#endif
