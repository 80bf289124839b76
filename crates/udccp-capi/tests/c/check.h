/* Helpers of all test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <winsock2.h>
#else
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#endif
#include <udccp.h>

/* WITH_DESCRIPTORS is code for systems with descriptors to wait on. */
#ifdef _WIN32
#define WITH_DESCRIPTORS(...)
#define EBADRQC EINVAL
#define close closesocket
#define nap(ms) Sleep(ms)
typedef int socklen_t;
#else
#define WITH_DESCRIPTORS(...) __VA_ARGS__
#define nap(ms) poll(NULL, 0, ms)
#endif

#define LONG_MS 30000

/* Counts failed checks, and prints their places. */
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

#define FD_GIVES(expected, call) WITH_DESCRIPTORS(GIVES(expected, call))

#define SERVICE 0x74657374u

/* A forked child has no copy of its parent's other threads, so memory that only they point to would
 * count as leaked. Leaks are checked in the parents. */
static int is_forked;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_forked;
}
#if defined __has_include
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
static inline void forked(void)
{
    is_forked = 1;
#ifdef VALGRIND_CLO_CHANGE
    VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

/* A listener on a free port of this host, and its address. */
static inline udccp_listener *a_listener(char address[64], const udccp_options *options)
{
    const uint32_t service = SERVICE;
    udccp_listener *listener;
    GIVES(0, udccp_listen(&listener, "127.0.0.1:0", &service, 1, options));
    snprintf(address, 64, "127.0.0.1:%u", udccp_listener_port(listener));
    return listener;
}

/* A UDP socket that nobody reads, as a peer that never answers. */
static inline int a_mute_peer(char address[64])
{
#ifdef _WIN32
    WSADATA data;
    GIVES(0, WSAStartup(MAKEWORD(2, 2), &data));
#endif
    int mute = (int)socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    GIVES(0, bind(mute, (struct sockaddr *)&at, sizeof at));
    GIVES(0, getsockname(mute, (struct sockaddr *)&at, &len));
    snprintf(address, 64, "127.0.0.1:%u", ntohs(at.sin_port));
    return mute;
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
