"""CPython's own tests of sockets, run with DCCP sockets.

They are taken from the running interpreter (`test.test_socket`); they are skipped if it lacks them,
as Debian's does. The tests of TCP and SCTP are used: DCCP is connection-oriented too, and has
SCTP's record flags. Omitted tests are listed with a reason, and fail if they would pass.
"""

from __future__ import annotations

import importlib
import re
import socket as std
import types
import unittest
from typing import Any, cast

import pytest

from udccp import socket

STREAM = "it cuts messages into pieces or joins them: DCCP keeps them whole"
FILE = "makefile() and sendfile() are refused: messages are not a stream"
DESCRIPTOR = "dup(), detach() and fileno=: the socket lives in its process, not in a descriptor"
TYPE = "it wants the type SOCK_STREAM"
INTERNALS = "it looks into the standard module's own parts"
DUAL = "dualstack_ipv6: '::' always serves both"
SLOW = "it takes seconds, and test_socket and test_socket_waiting have the same"
LATE = "it sends to a peer that has closed: TCP takes that once, DCCP gives EPIPE"

#: By the name of the test, as a regular expression.
LEFT_OUT = {
    r"testOverFlowRecv(From)?|testSendAll|testRecvmsgOverflow": STREAM,
    r"test_makefile_.*|test_(name|unusable)_closed_socketio|test_dealloc_warn": FILE,
    r"test__sendfile.*": FILE,
    r"testDetach|test_?[dD]up|testFromFd|test_socket_fileno.*|test_unknown_socket.*": DESCRIPTOR,
    r"test_setblocking_invalidfd|test_[sg]et_inheritable.*|testCloseException": DESCRIPTOR,
    r"testSetBlocking": "fcntl(): the descriptor has no mode",
    r"testSetBlocking_overflow": "fcntl() in some versions: the descriptor has no mode; " + SLOW,
    r"testNewAttributes|test_socket_consistent_sock_type|test_SOCK_CLOEXEC": TYPE,
    r"test_family_and_type": TYPE,
    r"test_SocketType_is_socketobject|test_socket_methods|test_str_for_enums": INTERNALS,
    r"test_repr|testCreateConnection(Base|Close)": INTERNALS,
    r"test_create_connection_timeout": "it replaces the class that create_connection() makes",
    r"test_dual.*|test_ipv6_only_default": DUAL,
    r"testSendtoErrors": "it wants the checks of a socket that is not connected",
    r"testShutdown_overflow": "it wants OverflowError; any wrong number is EINVAL here",
    r"testOutsideTimeout": f"{LATE}; {SLOW}",
    r"testInsideTimeout|test_sendall_interrupted.*|testInterruptedTimeout": SLOW,
    r"testSendmsgTimeout|testSendmsgDontWait": "it sends until no reader is left; " + SLOW,
    r"testInterruptedSend.*": SLOW,
    r"testClose": "it gives the peer a second, which a busy machine may need; " + SLOW,
}

#: Test cases that run; those of `test.test_socket` but for the two at the end.
CASES = [
    "GeneralModuleTests", "BasicTCPTest", "TCPCloserTest", "NonBlockingTCPTests", "BufferIOTest",
    "ContextManagersTest", "InheritanceTest", "TCPTimeoutTest", "NetworkConnectionNoServer",
    "NetworkConnectionAttributesTest", "NetworkConnectionBehaviourTest", "TestExceptions",
    "CreateServerTest", "CreateServerFunctionalTest", "InterruptedSendTimeoutTest",
    "SendmsgSCTPStreamTest", "RecvmsgSCTPStreamTest", "RecvmsgIntoSCTPStreamTest",
]  # fmt: skip

#: Test cases that do not run, by a regular expression.
CASES_LEFT_OUT = {
    r".*(CAN|ISOTP|J1939|QIPCRTR|VSOCK|Bluetooth|HyperV|TIPC|RDS).*": "another protocol",
    r".*(UDP|UDPLITE|Unix|Abstract|CryptoAPI).*": "another protocol",
    r".*TCPTest$|.*TCPTest2": "the SCTP ones are the same tests with boundaries of messages",
    r"InterruptedRecvTimeoutTest": "it reads unconnected; test_socket_waiting has the same",
    r".*FileObject.*|Sendfile.*": FILE,
    r".*SocketPairTest": "there is no socketpair()",
    r"CmsgMacroTests|.*SCMRights.*|SendRecvFdsTests": "no control messages are received",
    r"TestMacOS.*|TestMSWindows.*|TestSocketSharing|NonblockConstantTest": "another system or type",
}


def loaded() -> Any:  # noqa: ANN401
    """CPython's tests, with our sockets instead of the kernel's."""
    tests: Any = pytest.importorskip("test.test_socket")
    helper: Any = importlib.import_module("test.support.socket_helper")

    class Socket(socket.socket):
        """Accepts every type and protocol, and has a name that the tests check."""

        def __init__(
            self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
        ) -> None:
            flags = 0 if type == -1 else type & ~0xF
            super().__init__(family, socket.SOCK_DCCP | flags, -1, fileno)

        @property
        def _closed(self) -> bool:
            return self.fileno() == -1

    shim: Any = types.ModuleType("socket")
    for module, names in ((std, dir(std)), (socket, socket.__all__)):
        for name in names:
            setattr(shim, name, getattr(module, name))
    shim.socket = Socket
    tests.socket = helper.socket = shim
    return tests


def cases() -> list[unittest.TestCase]:
    """Every test that is run or omitted by name."""
    tests = loaded()
    found: list[unittest.TestCase] = []
    for name in CASES:
        case: Any = getattr(tests, name, None)
        if case and getattr(case, "__unittest_skip__", False):
            # The kernel may lack SCTP, which is not needed.
            fields = {"__unittest_skip__": False, "__module__": case.__module__}
            case = type(name, case.__bases__, fields)
        if case:
            methods = unittest.defaultTestLoader.getTestCaseNames(case)
            found += [case(method) for method in methods]
    return found


def cases_if_any() -> list[unittest.TestCase]:
    """The same; empty if the interpreter has no tests."""
    try:
        return cases()
    except pytest.skip.Exception:
        return []


ALL = cases_if_any()


def name_of(test: unittest.TestCase) -> str:
    """Names of case and method."""
    return ".".join(test.id().split(".")[-2:])


@pytest.mark.parametrize("test", ALL, ids=name_of)
@pytest.mark.filterwarnings("ignore")
def test_as_cpython_has_it(test: unittest.TestCase) -> None:
    """The test passes, or it is omitted and fails."""
    method = name_of(test).split(".")[1]
    reason = next((why for at, why in LEFT_OUT.items() if re.fullmatch(at, method)), None)
    if reason and reason.endswith(SLOW):
        pytest.skip(reason)
    result = unittest.TestResult()
    test.run(result)
    failures = [text for _, text in result.errors + result.failures]
    if reason:
        assert failures or result.skipped, f"it passes: {reason}"
        pytest.skip(reason)
    if result.skipped and not failures:
        pytest.skip(result.skipped[0][1])
    assert not failures, failures[0]


@pytest.mark.skipif(not ALL, reason="this interpreter has no tests")
def test_every_case_runs_or_is_left_out_with_a_reason() -> None:
    """Every test case is either run or omitted."""
    tests = loaded()
    members = cast("dict[str, Any]", vars(tests))
    known = [
        name
        for name, case in members.items()
        if isinstance(case, type)
        and issubclass(case, unittest.TestCase)
        and any(method.startswith("test") for method in dir(case))
    ]
    bases = re.compile(r".*(Base|Mixin|Tests)$|RFC3542AncillaryTest")
    rest = [name for name in known if name not in CASES and not bases.fullmatch(name)]
    forgotten = [n for n in rest if not any(re.fullmatch(at, n) for at in CASES_LEFT_OUT)]
    assert forgotten == []
