/* Each socket option of dccp.rst, on the sockets and in the states that it names. */
#include "common.h"

static const uint32_t SERVICES[] = {7, 42, 0x6563686f};

static void services(int server, struct sockaddr_in *at)
{
    const uint32_t wrong = 8, invalid = 0xffffffff;
    uint32_t codes[32];
    socklen_t len = sizeof codes;
    int client = dccp_socket();
    must(getsockopt(server, SOL_DCCP, DCCP_SOCKOPT_SERVICE, codes, &len) == 0);
    must(len == sizeof SERVICES);
    for (int i = 0; i < 3; i++)
        must(codes[i] == htonl(SERVICES[i]));
    must_fail(set_services(client, &invalid, 1), EINVAL);
    must(set_services(client, &wrong, 1) == 0);
    /* Reset Code "Bad Service Code". */
    must_fail(connect(client, (void *)at, sizeof *at), EBADRQC);
    close(client);
}

static void ccids(int client)
{
    uint8_t ccids[4] = {0}, both[] = {3, 2}, none = 99, three = 3;
    socklen_t len = sizeof ccids;
    must(getsockopt(client, SOL_DCCP, DCCP_SOCKOPT_AVAILABLE_CCIDS, ccids, &len) == 0);
    must(len >= 2 && memchr(ccids, 2, len) && memchr(ccids, 3, len));
    must_fail(setsockopt(client, SOL_DCCP, DCCP_SOCKOPT_CCID, &none, 1), EINVAL);
    must(setsockopt(client, SOL_DCCP, DCCP_SOCKOPT_CCID, both, sizeof both) == 0);
    must(setsockopt(client, SOL_DCCP, DCCP_SOCKOPT_TX_CCID, &three, 1) == 0);
    must(setsockopt(client, SOL_DCCP, DCCP_SOCKOPT_RX_CCID, &three, 1) == 0);
}

static void coverage(int fd)
{
    must_fail(set(fd, DCCP_SOCKOPT_SEND_CSCOV, 16), EINVAL);
    must_fail(set(fd, DCCP_SOCKOPT_RECV_CSCOV, -1), EINVAL);
    must(set(fd, DCCP_SOCKOPT_SEND_CSCOV, 4) == 0);
    must(set(fd, DCCP_SOCKOPT_RECV_CSCOV, 2) == 0);
}

/* Options that only exist for a connection. */
static void connected(int client, int accepted)
{
    uint64_t info[5];
    uint32_t code, room = 0;
    socklen_t len = sizeof info;
    must(get(client, DCCP_SOCKOPT_GET_CUR_MPS) >= 1300);
    must_fail(set(client, DCCP_SOCKOPT_GET_CUR_MPS, 100), ENOPROTOOPT);
    must(get(client, DCCP_SOCKOPT_TX_CCID) == 3 && get(client, DCCP_SOCKOPT_RX_CCID) == 3);
    must(get(accepted, DCCP_SOCKOPT_TX_CCID) == 3);
    must(getsockopt(client, SOL_DCCP, DCCP_SOCKOPT_CCID_TX_INFO, info, &len) == 0);
    /* The allowed sending rate, in 64ths of a byte a second. */
    must(len >= 36 && info[0] > 0);
    must_fail(set(client, DCCP_SOCKOPT_SEND_CSCOV, 5), EISCONN);
    must_fail(set(client, DCCP_SOCKOPT_QPOLICY_ID, DCCPQ_POLICY_PRIO), EISCONN);
    must_fail(set(client, DCCP_SOCKOPT_SERVER_TIMEWAIT, 1), EOPNOTSUPP);
    must(set(accepted, DCCP_SOCKOPT_SERVER_TIMEWAIT, 1) == 0);
    must(get(accepted, DCCP_SOCKOPT_SERVER_TIMEWAIT) == 1);
    len = sizeof code;
    must(getsockopt(accepted, SOL_DCCP, DCCP_SOCKOPT_SERVICE, &code, &len) == 0);
    must(code == htonl(SERVICES[1]));
    must(send(client, "two words", 9, 0) == 9);
    must(poll(&(struct pollfd){.fd = accepted, .events = POLLIN}, 1, 10000) == 1);
    must(ioctl(accepted, FIONREAD, &room) == 0 && room == 9);
}

int main(void)
{
    int server = dccp_socket(), client = dccp_socket(), accepted;
    char end;
    must(set_services(server, SERVICES, 3) == 0);
    struct sockaddr_in at = listen_at(server);
    must_fail(set(server, DCCP_SOCKOPT_SERVER_TIMEWAIT, 1), EOPNOTSUPP);
    services(server, &at);
    ccids(client);
    coverage(client);
    must(set_services(client, &SERVICES[1], 1) == 0);
    must(connect(client, (void *)&at, sizeof at) == 0);
    must((accepted = accept(server, NULL, NULL)) >= 0);
    connected(client, accepted);
    char words[20];
    must(recv(accepted, words, sizeof words, 0) == 9 && memcmp(words, "two words", 9) == 0);
    /* The server closes, and holds TIMEWAIT as requested. */
    must(close(accepted) == 0);
    must(recv(client, &end, 1, 0) == 0);
    return 0;
}
