/* Voice: a frame of 160 bytes every 20 ms, each useless after 60 ms. Frames that congestion control
 * delays for longer are dropped before they are sent, so that the next frame is in time.
 *
 *     voice listen 127.0.0.1:5004
 *     voice speak  127.0.0.1:5004 250
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <udccp.h>

#define FRAME_BYTES 160
#define FRAME_NS 20000000L
#define LIFETIME_US 60000

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", what, udccp_last_error(), udccp_last_advice());
    return 1;
}

/* Settings for voice. */
static udccp_options *voice_options(void)
{
    udccp_options *options = udccp_options_new();
    /* CCID 4 (RFC 5622) is for small packets at a steady rate. */
    udccp_options_set_ccid(options, 4);
    /* Queue only frames that can leave in time. */
    udccp_options_set_send_queue(options, 16384, 4);
    return options;
}

static int listen_to(const char *address, uint32_t service)
{
    udccp_options *options = voice_options();
    udccp_listener *listener;
    udccp_socket *speaker;
    if (udccp_listen(&listener, address, &service, 1, options) < 0)
        return fail("listen");
    udccp_options_free(options);
    printf("listening on port %u\n", udccp_listener_port(listener));
    fflush(stdout);
    if (udccp_accept(listener, &speaker, -1) < 0)
        return fail("accept");
    udccp_listener_free(listener);

    unsigned char frame[FRAME_BYTES];
    unsigned heard = 0, missed = 0, expected = 0;
    ssize_t n;
    while ((n = udccp_recv(speaker, frame, sizeof frame, -1)) >= 0) {
        unsigned number = frame[0] | (unsigned)frame[1] << 8;
        if (number >= expected) {
            missed += number - expected;
            expected = number + 1;
        }
        heard++;
    }
    if (n != UDCCP_EOF)
        return fail("recv");
    udccp_socket_free(speaker);
    printf("heard %u frames, missed %u\n", heard, missed);
    return 0;
}

static int speak(const char *address, uint32_t service, unsigned frames)
{
    udccp_options *options = voice_options();
    udccp_socket *listener;
    if (udccp_connect(&listener, address, service, options, 10000) < 0)
        return fail("connect");
    udccp_options_free(options);
    for (unsigned i = 0; i < frames; i++) {
        unsigned char frame[FRAME_BYTES] = {(unsigned char)i, (unsigned char)(i >> 8)};
        udccp_message message = {
            .data = frame, .len = sizeof frame, .lifetime_us = LIFETIME_US};
        int error = udccp_send_message(listener, &message, 0);
        if (error < 0 && error != -EAGAIN)
            return fail("send");
        nanosleep(&(struct timespec){.tv_nsec = FRAME_NS}, NULL);
    }
    udccp_stats stats;
    if (udccp_socket_stats(listener, &stats, sizeof stats) < 0)
        return fail("stats");
    printf("sent %llu frames over CCID %llu, dropped %llu that were late\n",
           (unsigned long long)stats.messages_sent, (unsigned long long)stats.tx_ccid,
           (unsigned long long)stats.dropped_expired);
    if (udccp_close(listener, 5000) < 0)
        return fail("close");
    udccp_socket_free(listener);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t service;
    udccp_service_code("SC:voic", &service);
    if (argc == 3 && strcmp(argv[1], "listen") == 0)
        return listen_to(argv[2], service);
    if (argc == 4 && strcmp(argv[1], "speak") == 0)
        return speak(argv[2], service, (unsigned)strtoul(argv[3], NULL, 10));
    fprintf(stderr, "usage: voice listen ADDRESS | voice speak ADDRESS FRAMES\n");
    return 2;
}
